"""The one writer of a `delivery-k.db`. Saves are groups: one transaction, one fsync, for all lanes together."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from tidings.clock import Instant
from tidings.delivery.push.sqlite.schema import DELIVERY, WAL_BYTES, delivery_file
from tidings.delivery.push.store import Burial, Flush, LaneKey, Loaded, SavedLane, Tally
from tidings.log.position import LaneNumber, Offset, Partition
from tidings.log.sqlite.files import open_writer, translating
from tidings.log.sqlite.hold import Hold
from tidings.log.sqlite.retention import give_back_pages
from tidings.log.sqlite.wal import Wal

SLICE = 500
GIVE_BACKS = 64
"""Turns of giving pages back (128 pages each) after a trim at the most: saves wait for it."""

# Each looks at the oldest few rows only, so that a trim that finds nothing costs nothing.
_TRIMS = tuple(
    f"DELETE FROM {table} WHERE {key} IN (SELECT {key} FROM (SELECT {key}, {age} FROM {table} {order} LIMIT ?) WHERE {age} < ?)"
    for table, key, age, order in (
        ("firsts", "first", "upto", "ORDER BY first"),
        ("attempts", "number", "at", "ORDER BY number"),
        ("dead_letters", "number", "last_at", "WHERE raised = 0 ORDER BY last_at"),
        ("applied", "id", "at", "ORDER BY at"),
        ("lanes", "lane", "saved_at", "WHERE state = 'deleted' ORDER BY saved_at"),
    )
)


class SqliteDeliveryStore:
    """Implements DeliveryStore. A lock keeps saves (on a thread) and look-ups (on the loop) apart."""

    def __init__(self, folder: Path, worker: int = 0) -> None:
        self._path = delivery_file(folder, worker)
        self._hold = Hold(self._path)
        self._db = open_writer(self._path, DELIVERY, WAL_BYTES)
        self._wal = Wal(self._db, WAL_BYTES)
        self._lock = threading.Lock()

    def load(self) -> Loaded:
        lanes = {}
        columns = (
            "lane, partition, state, body, low_water, open_items, next_due, delivered, failed_attempts, expired, last_error"
        )
        for lane, partition, state, body, low, open_items, due, *tally in self._db.execute(f"SELECT {columns} FROM lanes"):
            key = LaneKey(LaneNumber(lane), Partition(partition))
            lanes[key] = SavedLane(
                key=key, state=state, body=body, low_water=low, open_items=open_items, next_due=due, tally=Tally(*tally)
            )
        marks = {Partition(p): Offset(o) for p, o in self._db.execute("SELECT partition, commands FROM marks")}
        return Loaded(lanes, marks)

    def save(self, flush: Flush) -> None:
        with self._lock, self._transaction():
            self._write(flush)

    def buried(self, key: LaneKey, offsets: Sequence[Offset] | None) -> Mapping[Offset, Burial]:
        columns = '"offset", reason, tries, first_at, last_at, head, data'
        query = f"SELECT {columns} FROM dead_letters WHERE lane = ? AND partition = ?"
        with self._lock, translating(self._path):
            if offsets is None:
                rows = self._db.execute(f"{query} AND raised = 0 ORDER BY number", key).fetchall()
            else:
                rows = [row for o in offsets for row in self._db.execute(f'{query} AND "offset" = ?', (*key, o))]
        return {Offset(row[0]): Burial(key, *row) for row in rows}

    def result(self, command_id: str) -> str | None:
        with self._lock, translating(self._path):
            row = self._db.execute("SELECT result FROM applied WHERE id = ?", (command_id,)).fetchone()
        return None if row is None else str(row[0])

    def trim(self, before: Instant) -> int:
        with self._lock, self._transaction():
            gone = sum(self._db.execute(statement, (SLICE, before)).rowcount for statement in _TRIMS)
        if not gone:
            self._tidy()
        return gone

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
        many("INSERT OR REPLACE INTO lanes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", map(_lane_row, _stamped(flush)))
        number = int(run("SELECT next FROM numbers").fetchone()[0])
        for key, firsts in flush.firsts.items():
            packed = [column.tobytes() for column in (firsts.offsets, firsts.at, firsts.milliseconds, firsts.status)]
            count, upto = len(firsts.offsets), firsts.at[-1]
            run("INSERT INTO firsts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (number, *key, count, upto, *packed))
            number += count
        many(
            "INSERT INTO attempts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (number + n, *a.key, a.offset, a.state, a.tries, a.at, a.status, a.milliseconds, a.cause)
                for n, a in enumerate(flush.attempts)
            ),
        )
        run("UPDATE numbers SET next = ?", (number + len(flush.attempts),))
        self._write_letters(flush)
        many("INSERT OR IGNORE INTO applied VALUES (?, ?, ?)", ((a.id, a.at, a.result) for a in flush.applied))
        if flush.commands is not None:
            many("INSERT OR REPLACE INTO marks VALUES (?, ?)", flush.commands.items())

    def _write_letters(self, flush: Flush) -> None:
        here = 'lane = ? AND partition = ? AND "offset" = ?'
        many = self._db.executemany
        many(f"UPDATE dead_letters SET raised = 1 WHERE {here}", _flat(flush.raised))
        many(f"DELETE FROM dead_letters WHERE {here}", _flat(flush.released))
        many(
            'INSERT OR REPLACE INTO dead_letters (lane, partition, "offset", reason, tries, first_at, last_at, head, data) '
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            ((*b.key, b.offset, b.reason, b.tries, b.first_at, b.last_at, b.head, b.data) for b in flush.burials),
        )


def _stamped(flush: Flush) -> Iterable[tuple[SavedLane, Instant]]:
    return ((lane, flush.at) for lane in flush.lanes)


def _lane_row(stamped: tuple[SavedLane, Instant]) -> tuple[object, ...]:
    lane, at = stamped
    tally = lane.tally
    counted = (tally.delivered, tally.failed_attempts, tally.expired, tally.last_error)
    detail = msgspec.json.encode(lane.detail)
    return (*lane.key, lane.state, lane.body, lane.low_water, lane.open_items, lane.next_due, *counted, at, detail)


def _flat(letters: Sequence[tuple[LaneKey, Offset]]) -> Iterable[tuple[int, int, int]]:
    return ((*key, offset) for key, offset in letters)
