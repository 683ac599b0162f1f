"""The one writer of a `delivery-k.db`. Saves are groups: one transaction, one fsync, for all lanes together."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from operator import itemgetter
from pathlib import Path

import msgspec

from tidings.clock import Instant
from tidings.delivery.push.sqlite.offset_bins import bin_of
from tidings.delivery.push.sqlite.schema import (
    ATTEMPT_BYTES,
    ATTEMPT_COLUMNS,
    DELIVERY,
    FIRSTS_BYTES,
    FIRSTS_COLUMNS,
    ITEM_COLUMNS,
    LANE_COLUMNS,
    WAL_BYTES,
    delivery_file,
)
from tidings.delivery.push.store import Attempted, Burial, Flush, LaneTally, Loaded, SavedLane, Stage
from tidings.lanes.port import Mark
from tidings.log.position import LaneNumber, Offset, Partition, Position
from tidings.log.sqlite.identity import OpenedFile
from tidings.log.sqlite.retention import give_back_pages
from tidings.sqlite.files import open_writer, translating
from tidings.sqlite.lock import FileLock
from tidings.sqlite.write_ahead_log import Wal

SLICE = 500
RECORDS_BYTES = 1 << 30
GIVE_BACKS = 64
"""Turns of giving pages back (128 pages each) after a trim at the most: saves wait for it."""

# Each looks at the oldest few rows only, so that a trim that finds nothing costs nothing.
_TRIMS = tuple(
    f"DELETE FROM {table} WHERE {key} IN "
    f"(SELECT {key} FROM (SELECT {key}, {age} FROM {table} {order} LIMIT ?) WHERE {age} < ?) RETURNING {size}"
    for table, key, age, order, size in (
        ("firsts", "first", "upto", "ORDER BY first", FIRSTS_BYTES),
        ("attempts", "number", "at", "ORDER BY number", ATTEMPT_BYTES),
        ("dead_letters", "number", "last_at", "WHERE raised = 0 ORDER BY last_at", "0"),
        ("applied", "id", "at", "ORDER BY at", "0"),
        ("lanes", "lane", "saved_at", "WHERE state = 'deleted' ORDER BY saved_at", "0"),
    )
)
_OLDEST = """SELECT max(n) FROM (SELECT n FROM (
  SELECT * FROM (SELECT first AS n FROM firsts ORDER BY first LIMIT :slice)
  UNION ALL SELECT * FROM (SELECT number FROM attempts ORDER BY number LIMIT :slice)) ORDER BY n LIMIT :slice)"""
_CUTS = (
    f"DELETE FROM firsts WHERE first <= ? RETURNING upto, {FIRSTS_BYTES}",
    f"DELETE FROM attempts WHERE number <= ? RETURNING at, {ATTEMPT_BYTES}",
)


_LANES = f"INSERT OR REPLACE INTO lanes ({LANE_COLUMNS})"
_FIRSTS = f"INSERT INTO firsts (first, {FIRSTS_COLUMNS})"
_ATTEMPTS = f"INSERT INTO attempts (number, {ATTEMPT_COLUMNS})"
_ITEMS = f"INSERT OR REPLACE INTO items ({ITEM_COLUMNS})"
_OFFSET = itemgetter(1)
_ROWS = 64
"""Rows in one statement at the most."""


class SqliteDeliveryStore:
    """Implements DeliveryStore. A lock keeps saves (on a thread) and look-ups (on the loop) apart."""

    def __init__(self, folder: Path, worker: int = 0, records_bytes: int = RECORDS_BYTES) -> None:
        self._path = delivery_file(folder, worker)
        self._records_bytes = records_bytes
        self._hold = FileLock(self._path)
        self._db = open_writer(self._path, DELIVERY, WAL_BYTES)
        self._file = OpenedFile(self._path)
        self._wal = Wal(self._db, WAL_BYTES)
        self._lock = threading.Lock()

    def load(self) -> Loaded:
        lanes = {}
        columns = (
            "lane, state, body, low_number, low_partition, low_water, open_items, next_due, delivered, failed_attempts, expired, "
            "last_error, counted"
        )
        for lane, state, body, number, partition, low, open_items, due, *tally, more in self._db.execute(
            f"SELECT {columns} FROM lanes"
        ):
            lanes[LaneNumber(lane)] = SavedLane(
                lane=LaneNumber(lane),
                state=state,
                body=body,
                low_water=Mark(number, Position(partition, low)),
                open_items=open_items,
                next_due=due,
                tally=LaneTally(*tally, *msgspec.msgpack.decode(more)),
                items=tuple(self._db.execute("SELECT number, body FROM items WHERE lane = ?", (lane,))),
            )
        marks = {Partition(p): Offset(o) for p, o in self._db.execute("SELECT partition, commands FROM marks")}
        return Loaded(lanes, marks)

    def save(self, flush: Flush) -> None:
        with self._lock, self._transaction():
            self._write(flush)

    def buried(self, lane: LaneNumber, positions: Sequence[Position] | None) -> Mapping[Position, Burial]:
        columns = 'partition, "offset", reason, tries, first_at, last_at, head, data'
        query = f"SELECT {columns} FROM dead_letters WHERE lane = ?"
        with self._lock, translating(self._path):
            if positions is None:
                rows = self._db.execute(f"{query} AND raised = 0 ORDER BY number", (lane,)).fetchall()
            else:
                rows = [
                    row
                    for at in positions
                    for row in self._db.execute(f'{query} AND partition = ? AND "offset" = ?', (lane, *at))
                ]
        return {at: Burial(lane, at, *rest) for partition, offset, *rest in rows for at in (Position(partition, offset),)}

    def letters(self, lane: LaneNumber, stages: Sequence[Stage] = tuple(Stage), limit: int = -1) -> Sequence[Position]:
        among = ",".join("?" * len(stages))
        here = f"lane = ? AND raised IN ({among})"
        query = f'SELECT partition, "offset" FROM dead_letters WHERE {here} ORDER BY partition, "offset" LIMIT ?'
        with self._lock, translating(self._path):
            return [Position(*row) for row in self._db.execute(query, (lane, *stages, limit))]

    def result(self, command_id: str) -> str | None:
        with self._lock, translating(self._path):
            row = self._db.execute("SELECT result FROM applied WHERE id = ?", (command_id,)).fetchone()
        return None if row is None else str(row[0])

    def trim(self, before: Instant) -> int:
        with self._lock, self._transaction():
            gone = [size for statement in _TRIMS for (size,) in self._db.execute(statement, (SLICE, before)).fetchall()]
            self._db.execute("UPDATE numbers SET bytes = max(0, bytes - ?)", (sum(gone),))
            self._db.execute("DELETE FROM items WHERE lane NOT IN (SELECT lane FROM lanes)")
            count = len(gone) + self._cut()
        if not count:
            self._tidy()
        return count

    def _cut(self) -> int:
        """Remove a slice of the oldest records while all of them take more bytes than they may; how many."""
        if self._db.execute("SELECT bytes FROM numbers").fetchone()[0] <= self._records_bytes:
            return 0
        upto = self._db.execute(_OLDEST, {"slice": SLICE}).fetchone()
        gone = [row for statement in _CUTS for row in self._db.execute(statement, upto).fetchall()]
        newest, size = max((at for at, _ in gone), default=0), sum(size for _, size in gone)
        self._db.execute("UPDATE numbers SET bytes = max(0, bytes - ?), cut = max(cut, ?)", (size, newest))
        return len(gone)

    def close(self) -> None:
        with self._lock:
            self._db.close()
            self._hold.release()

    def _tidy(self) -> None:
        """Nothing is left to remove: give free pages back, with look-ups in between, and cut the write-ahead file."""
        for _ in range(GIVE_BACKS):
            if not self._give_back():
                break
        with self._lock:
            self._wal.rest()

    def _give_back(self) -> bool:
        with self._lock, translating(self._path):
            more = give_back_pages(self._db)
            self._wal.committed(0)
            return more

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All or nothing; durable afterwards. Raises LogUnavailable."""
        self._file.check()
        with translating(self._path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
        self._wal.committed(4096)

    def _write(self, flush: Flush) -> None:
        run, many = self._db.execute, self._db.executemany
        self._insert(_LANES, list(map(_lane_row, _stamped(flush))))
        many("DELETE FROM items WHERE lane = ? AND number = ?", _removed(flush))
        self._insert(_ITEMS, [(lane.lane, number, body) for lane in flush.lanes for number, body in lane.items])
        number, size = int(run("SELECT next FROM numbers").fetchone()[0]), 0
        rows: list[tuple[object, ...]] = []
        for lane, firsts in flush.firsts.items():
            # The embedded log has one partition.
            (partition, _), count, upto = firsts.positions[0], len(firsts.positions), firsts.at[-1]
            offsets = array("q", map(_OFFSET, firsts.positions))
            packed = [column.tobytes() for column in (offsets, firsts.at, firsts.milliseconds, firsts.status)]
            low, high = min(offsets), max(offsets)
            filed = (low, high, bin_of(low, high), firsts.target)
            rows.append((number, lane, partition, count, upto, *packed, *filed))
            number += count
            size += 150 + len(firsts.target) + 22 * count
        self._insert(_FIRSTS, rows)
        self._insert(_ATTEMPTS, [_attempt_row(number + n, attempt) for n, attempt in enumerate(flush.attempts)])
        size += sum(150 + len(a.target) + len(a.cause) for a in flush.attempts)
        run("UPDATE numbers SET next = ?, bytes = bytes + ?", (number + len(flush.attempts), size))
        self._write_letters(flush)
        many("INSERT OR IGNORE INTO applied VALUES (?, ?, ?)", ((a.id, a.at, a.result) for a in flush.applied))
        if flush.commands is not None:
            many("INSERT OR REPLACE INTO marks VALUES (?, ?)", flush.commands.items())

    def _insert(self, into: str, rows: Sequence[tuple[object, ...]]) -> None:
        """Many rows in one statement: each lets go of the interpreter lock, and has to get it back from a busy event loop."""
        for first in range(0, len(rows), _ROWS):
            some = rows[first : first + _ROWS]
            row = f"({','.join('?' * len(some[0]))})"
            self._db.execute(f"{into} VALUES {','.join([row] * len(some))}", list(chain.from_iterable(some)))

    def _write_letters(self, flush: Flush) -> None:
        here = 'lane = ? AND partition = ? AND "offset" = ?'
        many = self._db.executemany
        many(f"UPDATE dead_letters SET raised = {Stage.RAISED:d} WHERE {here}", _flat(flush.raised))
        waiting = f"UPDATE dead_letters SET raised = {Stage.WAITING:d} WHERE lane = ? AND raised = 0"
        many(waiting, [(lane,) for lane in flush.recalled])
        many(f"DELETE FROM dead_letters WHERE {here}", _flat(flush.released))
        many(
            'INSERT OR REPLACE INTO dead_letters (lane, partition, "offset", reason, tries, first_at, last_at, head, data) '
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            ((b.lane, *b.position, b.reason, b.tries, b.first_at, b.last_at, b.head, b.data) for b in flush.burials),
        )


def _stamped(flush: Flush) -> Iterable[tuple[SavedLane, Instant]]:
    return ((lane, flush.at) for lane in flush.lanes)


def _lane_row(stamped: tuple[SavedLane, Instant]) -> tuple[object, ...]:
    lane, at = stamped
    tally = lane.tally
    columns = (tally.delivered, tally.failed_attempts, tally.expired, tally.last_error)
    counted = msgspec.msgpack.encode(msgspec.structs.astuple(tally)[len(columns) :])
    detail = msgspec.json.encode(lane.detail)
    first = (lane.lane, lane.state, lane.body, *lane.low_water.position, lane.open_items, lane.next_due)
    return (*first, *columns, at, detail, counted, lane.low_water.number)


def _removed(flush: Flush) -> Iterable[tuple[int, int]]:
    return ((lane.lane, number) for lane in flush.lanes for number in lane.removed)


def _attempt_row(number: int, a: Attempted) -> tuple[object, ...]:
    upto = None if a.upto is None else a.upto.offset
    return (number, a.lane, *a.position, a.state, a.tries, a.at, a.status, a.milliseconds, a.cause, a.target, upto)


def _flat(letters: Sequence[tuple[LaneNumber, Position]]) -> Iterable[tuple[int, int, int]]:
    return ((lane, *position) for lane, position in letters)
