"""Places in the log as clients name them: a cursor, `_first`, `_last`, or a time."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from tidings.clock import SECOND, Instant
from tidings.errors import Malformed
from tidings.log.cursor import marks_of, position_of
from tidings.log.port import Limit, LogReader
from tidings.log.position import START, Marks, Offset, Partition, Position

FIRST = "_first"
LAST = "_last"

_ONE = Limit(entries=1)


def marks_at(reader: LogReader, place: str) -> Marks:
    """The marks to go on from at this place: a cursor, `_first` or `_last`. Raises Malformed."""
    match place:
        case "_first":
            return {}
        case "_last":
            return reader.ends()
        case cursor:
            marks = marks_of(cursor)
            _refuse_strange(reader, marks)
            return marks


def positions_at(reader: LogReader, cursors: Sequence[str]) -> Sequence[Position]:
    """The events that cursors stand for; whether they are there is another question. Raises Malformed."""
    positions = tuple(map(position_of, cursors))
    _refuse_strange(reader, {position.partition for position in positions})
    return positions


def _refuse_strange(reader: LogReader, partitions: Collection[Partition]) -> None:
    """Marks without a partition mean its beginning: a cursor of another one would silently stand for that."""
    known = reader.ends().keys()
    strange = sorted(partition for partition in partitions if partition not in known)
    if strange:
        expected = f"a cursor of partition {', '.join(map(str, sorted(known)))}, such as {min(known)}-1234"
        raise Malformed("the log has no such partition", at="cursor", found=strange[0], expected=expected)


def marks_at_any(reader: LogReader, place: str) -> Marks:
    """As `marks_at`; a time means: from the first event published then or later."""
    if ":" in place:
        return marks_before(reader, instant_of(place))
    return marks_at(reader, place)


def instant_of(text: str) -> Instant:
    """A time with its zone. Raises Malformed."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise Malformed("this is no time", found=text, expected="such as 2030-01-31T12:00:00Z") from error
    if moment.tzinfo is None:
        raise Malformed("the time says no zone", found=text, expected="such as 2030-01-31T12:00:00Z")
    return Instant(int(moment.timestamp() * SECOND))


def marks_before(reader: LogReader, instant: Instant) -> Marks:
    """How far the log was just before the first entry of this time or later; found by halving, so it reads little."""
    return {partition: _before(reader, partition, end, instant) for partition, end in reader.ends().items()}


def _before(reader: LogReader, partition: Partition, end: Offset, instant: Instant) -> Offset:
    low, high = START, end
    while low < high:
        middle = Offset((low + high) // 2)
        entries = reader.scan({partition: middle}, {partition: end}, _ONE).entries
        if entries and entries[0].at < instant:
            low = entries[0].position.offset
        else:
            high = middle
    return low
