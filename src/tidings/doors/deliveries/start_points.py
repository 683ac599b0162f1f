"""Places in the log as clients name them: a cursor, `_first`, `_last`, or a time."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from tidings.clock import SECOND, Instant
from tidings.errors import Malformed
from tidings.log.cursor import marks_of, position_of
from tidings.log.port import Between, EventLog
from tidings.log.position import Marks, Partition, Position, lesser, marks_below

FIRST = "_first"
LAST = "_last"


async def marks_at(events: EventLog, place: str) -> Marks:
    """The marks to go on from at this place: a cursor, `_first` or `_last`. Raises Malformed."""
    match place:
        case "_first":
            return {}
        case "_last":
            return await events.ends()
        case cursor:
            marks = marks_of(cursor)
            await _refuse_strange(events, marks)
            return marks


async def positions_at(events: EventLog, cursors: Sequence[str]) -> Sequence[Position]:
    """The events that cursors stand for; whether they are there is another question. Raises Malformed."""
    positions = tuple(map(position_of, cursors))
    await _refuse_strange(events, {position.partition for position in positions})
    return positions


async def _refuse_strange(events: EventLog, partitions: Collection[Partition]) -> None:
    """Marks without a partition mean its beginning: a cursor of another one would silently stand for that."""
    known = (await events.ends()).keys()
    strange = sorted(partition for partition in partitions if partition not in known)
    if strange:
        expected = f"a cursor of partition {', '.join(map(str, sorted(known)))}, such as {min(known)}-1234"
        raise Malformed("the log has no such partition", at="cursor", found=strange[0], expected=expected)


async def marks_at_any(events: EventLog, place: str) -> Marks:
    """As `marks_at`; a time means: from the first event published then or later."""
    if ":" in place:
        return await events.before(instant_of(place))
    return await marks_at(events, place)


def instant_of(text: str) -> Instant:
    """A time with its zone. Raises Malformed."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise Malformed("this is no time", found=text, expected="such as 2030-01-31T12:00:00Z") from error
    if moment.tzinfo is None:
        raise Malformed("the time says no zone", found=text, expected="such as 2030-01-31T12:00:00Z")
    return Instant(int(moment.timestamp() * SECOND))


async def between_times(
    events: EventLog, since: Instant | None, until: Instant | None, before: Position | None = None
) -> Between:
    """What was published from one time on and before another, and before an event where one is named."""
    above = {} if since is None else await events.before(since)
    upto = await events.ends() if until is None else await events.before(until)
    return Between(above, upto if before is None else lesser(upto, marks_below(before)))
