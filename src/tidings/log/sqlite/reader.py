"""Reading the embedded log: pages of a topic, scans over all topics, single entries by position."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from itertools import accumulate
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec

from tidings.clock import Instant
from tidings.log.port import Between, Entry, Limit, Page
from tidings.log.position import EMBEDDED, START, Marks, Offset, Position, TopicNumber, embedded
from tidings.log.ranges import Columns
from tidings.log.sqlite.entries import LOG, count, last_offset, log_file
from tidings.sqlite.shared_reader import SharedReader

Row: TypeAlias = tuple[Any, ...]

_COLUMNS = '"offset", topic, at, key_hash, head, data, size'
_READ = f'SELECT {_COLUMNS} FROM entries WHERE topic = ? AND "offset" > ? AND "offset" <= ? ORDER BY "offset" LIMIT ?'
_NEWEST = f'SELECT {_COLUMNS} FROM entries WHERE topic = ? AND "offset" > ? AND "offset" <= ? ORDER BY "offset" DESC LIMIT ?'
_FIRST = 'SELECT "offset", at FROM entries WHERE "offset" > ? AND "offset" <= ? AND topic <> 0 ORDER BY "offset" LIMIT 1'
_SCAN = f'SELECT {_COLUMNS} FROM entries WHERE "offset" > ? AND "offset" <= ? AND topic <> 0 ORDER BY "offset" LIMIT ?'
_FETCH = f'SELECT {_COLUMNS} FROM entries WHERE "offset" IN (SELECT value FROM json_each(?))'
_REMAINING = 'SELECT "offset" FROM entries WHERE "offset" IN (SELECT value FROM json_each(?))'
_SIZES = 'SELECT "offset", size FROM entries WHERE "offset" > ? AND "offset" <= ? AND topic <> 0 ORDER BY "offset" LIMIT ?'
_TOTAL = f'SELECT count(*), total(size), max("offset") FROM ({_SIZES})'
_COMMANDS = 'SELECT count(*) FROM entries WHERE topic = 0 AND "offset" > ? AND "offset" <= ?'
_size = itemgetter(6)
_CHUNK = 16


class BatchEnd(NamedTuple):
    """How far a bounded step may go, and what it holds. Commands are not counted."""

    end: Offset
    entries: int
    bytes: int


class SqliteLogReader:
    """`LogReader` and `Remains` on log.db. Threads may share one, their calls then take turns.

    Made anew in a forked or other process.
    """

    def __init__(self, folder: Path) -> None:
        self._file = SharedReader(log_file(folder), LOG)

    def read(self, topic: TopicNumber, after: Marks, limit: Limit) -> Page:
        """See `LogReader.read`."""
        with self._file.statements() as connection:
            end = last_offset(connection)
            return _page(connection.execute(_READ, (topic, _from(after), end, limit.entries)), limit, _from(after), end)

    def scan(self, after: Marks, upto: Marks, limit: Limit) -> Page:
        """See `LogReader.scan`."""
        with self._file.statements() as connection:
            # What lies above the committed end may still come, so a scan never claims to have passed it.
            end = min(_from(upto), last_offset(connection))
            return _page(connection.execute(_SCAN, (_from(after), end, limit.entries)), limit, _from(after), end)

    def scan_columns(self, after: Marks, upto: Marks, limit: Limit) -> Columns:
        """The same entries as `scan`, as columns. Nothing came: the scan is at `upto`. Else it goes on after the last offset."""
        with self._file.statements() as connection:
            rows, _ = _within(connection.execute(_SCAN, (_from(after), _from(upto), limit.entries)), limit)
        if not rows:
            return Columns((), (), (), ())
        offsets, topics, _, _, heads, datas, _ = zip(*rows, strict=True)
        return Columns(offsets, topics, heads, datas)

    def cut(self, after: Marks, limit: Limit) -> BatchEnd:
        """The largest end such that the entries after `after` up to it are within the limit (one entry always is)."""
        with self._file.statements() as connection:
            end = last_offset(connection)
            bounds = (_from(after), end, limit.entries)
            count, size, last = connection.execute(_TOTAL, bounds).fetchone()
            if size > limit.bytes and count > 1:
                return _cut_by_bytes(connection.execute(_SIZES, bounds).fetchall(), limit.bytes)
        return BatchEnd(Offset(last if count == limit.entries else max(end, _from(after))), count, int(size))

    def newest(self, topic: TopicNumber, between: Between, limit: Limit) -> Sequence[Entry]:
        """See `EventLog.newest`."""
        with self._file.statements() as connection:
            bounds = (_from(between.above), _from(between.upto))
            rows, _ = _within(connection.execute(_NEWEST, (topic, *bounds, limit.entries)), limit)
        return [_entry(row) for row in rows]

    def before(self, instant: Instant) -> Marks:
        """See `EventLog.before`. Found by halving, so it reads little."""
        with self._file.statements() as connection:
            low, high = 0, last_offset(connection)
            end = high
            while low < high:
                middle = (low + high) // 2
                row = connection.execute(_FIRST, (middle, end)).fetchone()
                if row is not None and row[1] < instant:
                    low = row[0]
                else:
                    high = middle
            return embedded(low)

    def fetch(self, positions: Sequence[Position]) -> Mapping[Position, Entry]:
        """See `LogReader.fetch`."""
        with self._file.statements() as connection:
            rows = connection.execute(_FETCH, (_wanted(positions),)).fetchall()
        return {entry.position: entry for entry in map(_entry, rows)}

    def ends(self) -> Marks:
        """See `LogReader.ends`."""
        with self._file.statements() as connection:
            return embedded(last_offset(connection))

    def count(self, after: Marks, upto: Marks) -> int:
        """See `LogReader.count`."""
        bounds = (_from(after), _from(upto))
        with self._file.statements() as connection:
            (commands,) = connection.execute(_COMMANDS, bounds).fetchone()
            return count(connection, *bounds) - int(commands)

    def removed(self, topic: TopicNumber) -> Marks:
        """See `LogReader.removed`."""
        with self._file.statements() as connection:
            row = connection.execute("SELECT upto FROM removals WHERE topic = ?", (topic,)).fetchone()
        return embedded(row[0] if row else 0)

    def removals(self) -> Mapping[TopicNumber, Marks]:
        """See `Remains.removals`."""
        with self._file.statements() as connection:
            return {topic: embedded(upto) for topic, upto in connection.execute("SELECT topic, upto FROM removals").fetchall()}

    def remaining(self, positions: Sequence[Position]) -> frozenset[Position]:
        """See `Remains.remaining`."""
        with self._file.statements() as connection:
            rows = connection.execute(_REMAINING, (_wanted(positions),)).fetchall()
        return frozenset(Position(EMBEDDED, offset) for (offset,) in rows)

    def close(self) -> None:
        """See `LogReader.close`."""
        self._file.close()


def _wanted(positions: Sequence[Position]) -> str:
    return msgspec.json.encode([position.offset for position in positions if position.partition == EMBEDDED]).decode()


def _from(marks: Marks) -> Offset:
    return marks.get(EMBEDDED, START)


def _page(rows: sqlite3.Cursor, limit: Limit, after: Offset, end: int) -> Page:
    """The rows as a page. When these were all, the reading came to `end`, whatever other topics have in between."""
    kept, all_of_them = _within(rows, limit)
    passed = all_of_them and len(kept) < limit.entries
    return Page(entries=[_entry(row) for row in kept], reached=embedded(max(end, after) if passed else kept[-1][0]))


def _within(rows: sqlite3.Cursor, limit: Limit) -> tuple[list[Row], bool]:
    """The rows that fit into the limit's bytes, at least one, and whether these were all. Ends the read transaction.

    Rows come in small chunks, so that large entries beyond the limit are not read for nothing.
    """
    kept: list[Row] = []
    room = limit.bytes
    with closing(rows):
        while chunk := rows.fetchmany(_CHUNK):
            size = sum(map(_size, chunk))
            if size > room:
                kept += _fitting(chunk, room)
                return kept or list(chunk[:1]), False
            room -= size
            kept += chunk
    return kept, True


def _fitting(rows: Sequence[Row], room: int) -> Sequence[Row]:
    sizes = accumulate(map(_size, rows))
    return rows[: sum(size <= room for size in sizes)]


def _cut_by_bytes(rows: Sequence[tuple[Offset, int]], room: int) -> BatchEnd:
    sizes = list(accumulate(size for _, size in rows))
    count = max(1, sum(size <= room for size in sizes))
    return BatchEnd(rows[count - 1][0], count, sizes[count - 1])


def _entry(row: Row) -> Entry:
    offset, topic, at, key_hash, head, data, _ = row
    return Entry(Position(EMBEDDED, offset), topic, Instant(at), key_hash, head, data)
