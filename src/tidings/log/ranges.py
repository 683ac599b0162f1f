"""Ranges of the log as routing reads them: closed ones of a backlog, open ones that are followed live.

The driver asks a `RoutingSource` which ranges there are. A `RangeReader` goes to the workers with their tasks and reads there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from tidings.log.port import Limit
from tidings.log.position import START, Marks, Offset, Partition, Position


class Range(NamedTuple):
    """The entries of one partition after `after` and at or below `upto`; an open range has no end: `upto` is None."""

    partition: Partition
    after: Offset
    upto: Offset | None = None


class Columns(NamedTuple):
    """Entries of one partition as parallel columns, so that no value is made for each."""

    offsets: Sequence[int]
    topics: Sequence[int]
    heads: Sequence[bytes]
    datas: Sequence[bytes | None]


class RangeReader(Protocol):
    """Reads ranges in a worker. It is pickled to get there, and opens its files or connections when it is first used."""

    def pages(self, wanted: Range, limit: Limit) -> Iterator[Columns]:
        """The entries of a closed range in order, commands left out, each page within the limit."""

    def end(self, partition: Partition) -> Offset:
        """The offset of the partition's newest entry. Very cheap: asked before every step of an open range."""

    def wait(self, partition: Partition, seconds: float) -> None:
        """Wait until the partition may have grown, at most so long. It may return early."""

    def close(self) -> None:
        """Release what waiting needed. Files for reading stay open for the next task of the process."""


class RoutingSource(Protocol):
    """The log as the driver of routing sees it."""

    def ends(self) -> Marks:
        """The newest offset of every partition."""

    def count(self, after: Marks, upto: Marks) -> int:
        """How many entries there are in between, about."""

    def ranges(self, after: Marks, limit: Limit, tasks: int) -> Sequence[Range]:
        """The next closed ranges: all entries up to now, but no more than the limit says for each of so many tasks."""

    def gone(self) -> Marks:
        """No entry at or below these marks is left in the log."""

    def fault(self) -> str | None:
        """What is wrong with the log itself, as a sentence, where some process has met it."""

    @property
    def reader(self) -> RangeReader:
        """What workers read with."""


def up_to(ranges: Sequence[Range], marks: Marks) -> Sequence[Range]:
    """What of closed ranges is at or below these marks."""
    cut = (Range(part, after, min(upto, marks.get(part, START))) for part, after, upto in ranges if upto is not None)
    return [one for one in cut if one.upto is not None and one.after < one.upto]


def halves(whole: Range) -> tuple[Range, Range] | None:
    """A closed range as two of about the same size; None when it cannot be divided."""
    partition, after, upto = whole
    if upto is None or upto - after < 2:
        return None
    middle = Offset((after + upto) // 2)
    return Range(partition, after, middle), Range(partition, middle, upto)


def only(position: Position) -> Range:
    """The range of one position."""
    return Range(position.partition, Offset(position.offset - 1), position.offset)


def following(one: Range) -> Range:
    """The position after a closed range."""
    assert one.upto is not None
    return Range(one.partition, one.upto, Offset(one.upto + 1))


def last_of(one: Range) -> Position:
    """The last position of a closed range."""
    assert one.upto is not None
    return Position(one.partition, one.upto)


def size_of(one: Range) -> int:
    """How many positions a closed range has; some may be empty."""
    assert one.upto is not None
    return one.upto - one.after


def cut_to(one: Range, size: int) -> Range:
    """The first positions of a closed range, so many at the most and one at the least."""
    assert one.upto is not None
    return Range(one.partition, one.after, Offset(min(one.upto, one.after + max(1, size))))


def marks_of(ranges: Sequence[Range]) -> Mapping[Partition, Offset]:
    """How far closed ranges go, per partition."""
    ends: dict[Partition, Offset] = {}
    for partition, _, upto in ranges:
        if upto is not None:
            ends[partition] = max(upto, ends.get(partition, START))
    return ends
