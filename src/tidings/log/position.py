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


def embedded(offset: int) -> Marks:
    """Marks of the embedded log, which has one partition."""
    return {EMBEDDED: Offset(offset)}
