"""Facts about single events in one worker's file: found by offset, packed or not, without scanning a lane."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from tidings.clock import Instant
from tidings.delivery.push.reader import DeliveryRecord
from tidings.delivery.push.records.port import ENDS, Last
from tidings.delivery.push.sqlite.offset_bins import bins_between
from tidings.log.position import LaneNumber, Offset, Partition, Position

Rows = Callable[[str, Sequence[object]], list[Any]]
"""Runs a query on the file."""

FactsKey: TypeAlias = tuple[LaneNumber, Partition]
"""Facts are found by their offset in one partition of a lane's log."""

MOST_RANGES = 100

_ATTEMPT = 'number, partition, "offset", state, tries, at, status, milliseconds, cause, target, upto'
_HERE = "lane = ? AND partition = ?"
_NEWEST = f"""
SELECT {", ".join(f"newest.{column}" for column in _ATTEMPT.split(", "))}, oldest.at, facts.ended FROM (
  SELECT max(number) AS last, min(number) AS first,
    sum(CASE WHEN state IN ({", ".join(f"'{state}'" for state in ENDS)}) THEN tries ELSE 0 END) AS ended FROM attempts
  WHERE {_HERE} AND "offset" > ? AND "offset" < ? AND upto IS NULL GROUP BY "offset") AS facts
JOIN attempts AS newest ON newest.number = facts.last JOIN attempts AS oldest ON oldest.number = facts.first"""
_PACKED = (
    "SELECT first, partition, offsets, at, milliseconds, status, target FROM firsts "
    f"WHERE {_HERE} AND bin BETWEEN ? AND ? AND low <= ? AND high >= ?"
)


def attempt(row: Sequence[Any], base: int) -> DeliveryRecord:
    """The record that a row of the columns `_ATTEMPT` holds."""
    number, partition, offset, state, tries, at, status, milliseconds, cause, target, upto = row
    return DeliveryRecord(
        number=base + number,
        position=Position(partition, offset),
        state=state,
        tries=tries,
        at=at,
        status=status,
        duration_ms=milliseconds,
        cause=cause,
        target=target,
        upto=None if upto is None else Position(partition, upto),
    )


def attempts_before(rows: Rows, base: int, lane: int, number: int, limit: int) -> Iterator[DeliveryRecord]:
    """The newest records of a lane below a number that are not packed."""
    query = f"SELECT {_ATTEMPT} FROM attempts WHERE lane = ? AND number < ? ORDER BY number DESC LIMIT ?"
    return (attempt(row, base) for row in rows(query, (lane, number, limit)))


def history(rows: Rows, base: int, key: FactsKey, offset: Offset, limit: int) -> list[DeliveryRecord]:
    """The facts about one event, in no order."""
    query = f'SELECT {_ATTEMPT} FROM attempts WHERE {_HERE} AND "offset" = ? AND upto IS NULL ORDER BY number DESC LIMIT ?'
    singles = [attempt(row, base) for row in rows(query, (*key, offset, limit))]
    return [*singles, *_firsts(rows, base, key, offset, offset)]


def last_between(rows: Rows, base: int, key: FactsKey, above: Offset, below: Offset) -> dict[Offset, Last]:
    """The newest fact about every event between two offsets."""
    found: dict[Offset, Last] = {}
    for *row, first_at, ended in rows(_NEWEST, (*key, above, below)):
        record = attempt(row, base)
        found[record.position.offset] = Last(record, ended, first_at)
    newest_wins(found, ((one.position.offset, Last(one, 1, one.at)) for one in _firsts(rows, base, key, above + 1, below - 1)))
    return found


def newest_wins(found: dict[Offset, Last], more: Iterable[tuple[Offset, Last]]) -> None:
    """Put further facts to those that were found."""
    for offset, last in more:
        other = found.get(offset)
        if other is None:
            found[offset] = last
        else:
            record = max(other.record, last.record, key=age)
            found[offset] = Last(record, other.ended + last.ended, min(other.first_at, last.first_at))


def age(record: DeliveryRecord) -> tuple[int, int]:
    """Facts are ordered by time, and those of one moment by number."""
    return record.at, record.number


def noted(rows: Rows, key: FactsKey, below: Offset, states: Collection[str], limit: int) -> list[Offset]:
    """Offsets of events with facts of these states, newest first; nothing packed is among them."""
    query = (
        f'SELECT DISTINCT "offset" FROM attempts WHERE {_HERE} AND "offset" < ? AND upto IS NULL '
        f'AND state IN ({", ".join("?" * len(states))}) ORDER BY "offset" DESC LIMIT ?'
    )
    return [Offset(offset) for (offset,) in rows(query, (*key, below, *states, limit))]


def ranges(rows: Rows, base: int, key: FactsKey) -> list[DeliveryRecord]:
    """The newest records about ranges."""
    query = f"SELECT {_ATTEMPT} FROM attempts WHERE {_HERE} AND upto IS NOT NULL ORDER BY number DESC LIMIT ?"
    return [attempt(row, base) for row in rows(query, (*key, MOST_RANGES))]


def _firsts(rows: Rows, base: int, key: FactsKey, low: int, high: int) -> Iterator[DeliveryRecord]:
    """First-try successes with an offset in low … high."""
    if low > high:
        return
    for first_bin, last_bin in bins_between(low, high):
        for first, partition, *packed, target in rows(_PACKED, (*key, first_bin, last_bin, high, low)):
            yield from unpacked(first, partition, packed, target, base, (low, high))


def unpacked(
    first: int, partition: Any, packed: Sequence[bytes], target: str, base: int, within: tuple[int, int]
) -> Iterator[DeliveryRecord]:
    """The records of one packed row whose offsets are within a range, as they were packed."""
    offsets, at, milliseconds, status = (array(kind, column) for kind, column in zip("qqfH", packed, strict=True))
    for n in _within(offsets, *within):
        yield DeliveryRecord(
            number=base + first + n,
            position=Position(partition, Offset(offsets[n])),
            state="delivered",
            tries=1,
            at=Instant(at[n]),
            status=status[n] or None,
            duration_ms=round(milliseconds[n], 3),
            target=target,
        )


def _within(offsets: array[int], low: int, high: int) -> Iterable[int]:
    """Which of the offsets are in low … high. Answers come as they like, so they need not rise."""
    if len(offsets) > 1 and all(map(int.__lt__, offsets, offsets[1:])):
        return range(bisect_left(offsets, low), bisect_right(offsets, high))
    return [n for n, offset in enumerate(offsets) if low <= offset <= high]
