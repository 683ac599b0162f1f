"""Positions. An offset is a place in one partition of the log; marks are one offset per partition.

The embedded log is one partition (number 0) whose offsets rise over all topics. A Kafka log has a partition number for every
(topic, partition) pair and no order between them, so nothing outside an adapter may compare offsets of two partitions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, NewType, TypeAlias, overload

Offset = NewType("Offset", int)
"""0 is the place before the first entry; the first entry has offset 1 in the embedded log."""

Partition = NewType("Partition", int)

TopicNumber = NewType("TopicNumber", int)
"""The small number under which the registry knows a topic, for ever. 0 is the hub's own `commands` stream."""

LaneNumber = NewType("LaneNumber", int)
"""The small number of one subscription's lane, for ever."""

COMMANDS = TopicNumber(0)
EMBEDDED = Partition(0)
START = Offset(0)
_LAST = Offset((1 << 58) - 1)


class Position(NamedTuple):
    """The place of one entry."""

    partition: Partition
    offset: Offset


class PositionRange(Sequence[Position]):
    """Consecutive positions of one partition. A value for each is made only when it is looked at."""

    __slots__ = ("_offsets", "_partition")

    def __init__(self, partition: Partition, offsets: range) -> None:
        self._partition = partition
        self._offsets = offsets

    def __len__(self) -> int:
        return len(self._offsets)

    @overload
    def __getitem__(self, index: int) -> Position: ...

    @overload
    def __getitem__(self, index: slice) -> PositionRange: ...

    def __getitem__(self, index: int | slice) -> Position | PositionRange:
        if isinstance(index, slice):
            return PositionRange(self._partition, self._offsets[index])
        return Position(self._partition, Offset(self._offsets[index]))


Marks: TypeAlias = Mapping[Partition, Offset]
"""How far, per partition: the end of the log, how far was routed, from where a change holds. A missing partition is START."""


def before(position: Position, other: Position) -> bool:
    """Whether one place is before another. Nothing is said of two partitions: then both are neither."""
    return position.partition == other.partition and position.offset < other.offset


def at_or_before(position: Position, other: Position) -> bool:
    """Whether one place is another or before it."""
    return position.partition == other.partition and position.offset <= other.offset


def place_before(position: Position) -> Position:
    """The place just before an entry: everything before the entry is at or before it."""
    return Position(position.partition, Offset(position.offset - 1))


def place_after(position: Position) -> Position:
    """The place just after an entry."""
    return Position(position.partition, Offset(position.offset + 1))


def last_place(partition: Partition) -> Position:
    """A place beyond every entry of a partition."""
    return Position(partition, _LAST)


def marks_below(position: Position) -> Marks:
    """Marks that everything before an entry of its partition is at or below."""
    return {position.partition: Offset(position.offset - 1)}


def reached(marks: Marks, position: Position) -> bool:
    """Whether a position is at or below these marks."""
    return position.offset <= marks.get(position.partition, START)


def lesser(one: Marks, other: Marks) -> Marks:
    """The smaller mark of each partition; a partition that one of them does not name is at its start."""
    return {partition: min(offset, other.get(partition, START)) for partition, offset in one.items()}


def embedded(offset: int) -> Marks:
    """Marks of the embedded log, which has one partition."""
    return {EMBEDDED: Offset(offset)}
