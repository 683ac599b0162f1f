"""Lanes on SQLite: what routing found, written exactly once, and read by delivery.

Entries, how far routing came, and which lanes were touched are one transaction. Whatever is at or below `routed` is
dropped before writing, so a batch that is written again, whole or in part, changes nothing.
"""

from __future__ import annotations

import sqlite3
import struct
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from tidings.lanes.sink import Aside, Filling, LaneRun, Part, Routed
from tidings.lanes.sqlite.block import within
from tidings.lanes.sqlite.block_chain import LANES, STATION_EVERY, LaneHead, heads, lanes_file
from tidings.lanes.sqlite.bodies import OffsetSpan, lost_of, lost_since, next_offsets, note_swept, remove_at, swept
from tidings.lanes.sqlite.fillings import Fillings, store
from tidings.lanes.sqlite.reader import ALL_LANES, SqliteLanesReader
from tidings.log.port import Remains
from tidings.log.position import EMBEDDED, START, LaneNumber, Marks, Offset, Partition, Position
from tidings.log.sqlite.identity import OpenedFile
from tidings.log.sqlite.retention import SLICE_ROWS, give_back_pages
from tidings.log.wake import Bell
from tidings.sqlite.files import open_writer, roll_back, transaction, translating
from tidings.sqlite.lock import FileLock
from tidings.sqlite.write_ahead_log import Wal

__all__ = ["SqliteLanesReader", "SqliteLanesWriter"]

_TOUCH_ROWS = 10_000
_TOUCH_LANES = 1_000_000
_BLOCK_OVERHEAD = 80
_REASON_CHARS = 500


class StoredRows(NamedTuple):
    """What one transaction writes. The lanes `begun` lose their entries."""

    blocks: Sequence[LaneRun]
    bodies: Sequence[Part]
    asides: Sequence[Aside]
    scanned: Marks
    fillings: Sequence[Filling] = ()
    begun: Sequence[Filling] = ()


class SqliteLanesWriter:
    """`LaneSink` on lanes.db. Threads may share it; `trim` and `sweep` let writes pass between their slices."""

    def __init__(self, folder: Path, wal_bytes: int = 64 << 20) -> None:
        self._path = lanes_file(folder)
        self._lock = threading.Lock()
        self._loaded = False
        self._hold = FileLock(self._path)
        try:
            self._connection = open_writer(self._path, LANES, wal_bytes)
            with translating(self._path, opening=True):
                self._load()
        except BaseException:
            self._hold.release()
            raise
        self._file = OpenedFile(self._path)
        self._wal = Wal(self._connection, wal_bytes)
        self._bell = Bell(folder, "lanes")

    def routed(self) -> Marks:
        """See `LaneSink.routed`."""
        with self._lock:
            return dict(self._routed)

    def write(self, routed: Routed) -> None:
        """See `LaneSink.write`. Entries above `scanned` are dropped as well: they will be routed again."""
        with self._turn():
            self._file.check()
            self._load()
            if routed.begun or routed.filled:
                self._fill(routed)
                return
            routed_blocks = _in_order(self._new_blocks(routed))
            blocks = [block for block in routed_blocks if not self._fillings.keeps_back(block.lane)]
            asides = [aside for aside in routed.aside if self._is_new(aside.position, routed.scanned)]
            bodies = [body for body in routed.parts if self._is_new(body.key.position, routed.scanned)]
            if not blocks and not asides and not self._advances(routed.scanned):
                return
            self._commit(StoredRows(blocks, bodies, asides, routed.scanned))
            self._fillings.hold(block for block in routed_blocks if self._fillings.keeps_back(block.lane))

    def fillings(self) -> Mapping[LaneNumber, Filling]:
        """See `LaneSink.fillings`."""
        with self._turn():
            self._load()
            return self._fillings.all(self._routed)

    def _fill(self, routed: Routed) -> None:
        """A step of filling lanes. What was held back of those that are done now follows in the same transaction."""
        fillings, reached = self._fillings.open(routed.filled), routed.scanned.get(EMBEDDED, START)
        steps = [self._fillings.stepped(one, reached, self._routed.get(EMBEDDED, START)) for one in fillings.values()]
        blocks = [
            new
            for block in routed.runs
            if block.lane in fillings
            and (new := within(block, fillings[block.lane].reached.get(EMBEDDED, START), reached)) is not None
        ]
        blocks += [block for step, _ in steps if step.done for block in self._fillings.held(step.lane)]
        asides = [aside for aside in routed.aside if aside.lane in fillings]
        begun = self._fillings.fresh(routed.begun)
        rows = StoredRows(_in_order(blocks), routed.parts, asides, {}, [*begun, *(step for step, _ in steps)], begun)
        self._commit(rows)
        self._fillings.committed([*((one, None) for one in begun), *steps])

    def _commit(self, rows: StoredRows) -> None:
        self._loaded = False
        self._store(rows)
        self._loaded = True
        self._bell.ring()
        self._wal.committed(sum(map(_size, rows.blocks)) + sum(len(body.data) for body in rows.bodies))

    def trim(self, below: Marks) -> int:
        """See `LaneSink.trim`."""
        gone = gone_bodies = 0
        while removed := self._trim_slice(below):
            gone += removed
        with self._turn() as connection:
            connection.executemany('DELETE FROM asides WHERE partition = ? AND "offset" <= ?', list(below.items()))
        for partition, upto in below.items():
            while removed := self._trim_bodies(OffsetSpan(partition, START, upto)):
                gone_bodies += removed
        while gone + gone_bodies and self._give_back():
            pass
        return gone

    def sweep(self, log: Remains) -> Iterator[int]:
        """See `LaneSink.sweep`. A sweep that is left before its end begins again next time."""
        lost = lost_of(log)
        with self._turn() as connection:
            spans = lost_since(swept(connection), lost)
        gone = 0
        for span in spans:
            while offsets := self._look(span):
                there = log.remaining([Position(span.partition, offset) for offset in offsets])
                removed = self._remove(span.partition, [one for one in offsets if Position(span.partition, one) not in there])
                gone += removed
                span = span._replace(after=offsets[-1])
                yield removed
        if spans:
            with self._turn() as connection:
                note_swept(connection, lost)
        while gone and self._give_back():
            yield 0

    def rest(self) -> None:
        """Nothing is being routed now: cut the write-ahead file."""
        with self._lock:
            self._wal.rest()

    def close(self) -> None:
        """See `LaneSink.close`."""
        with self._lock:
            self._connection.close()
            self._bell.close()
            self._hold.release()

    def _load(self) -> None:
        """What the file says: how far routing came, the newest block of each lane, which touches are kept.

        Asked again after a write that failed: only the file knows whether a failed commit counts.
        """
        if self._loaded:
            return
        roll_back(self._connection)
        self._routed: dict[Partition, Offset] = dict(self._connection.execute("SELECT partition, upto FROM routed").fetchall())
        self._heads = heads(self._connection)
        self._fillings = Fillings(self._connection)
        # The newest block may be of a lane that has begun anew since.
        self._last_id: int = self._connection.execute("SELECT coalesce(max(seq), 0) FROM sqlite_sequence").fetchone()[0]
        rows = self._connection.execute("SELECT number, length(lanes) / 4 FROM touches ORDER BY number")
        self._touches: deque[tuple[int, int]] = deque(rows.fetchall())
        self._touched_lanes = sum(count for _, count in self._touches)
        self._loaded = True

    def _new_blocks(self, routed: Routed) -> Iterable[LaneRun]:
        for block in routed.runs:
            floor, ceiling = self._routed.get(block.partition, START), routed.scanned.get(block.partition, START)
            new = within(block, floor, ceiling)
            if new is not None:
                yield new

    def _is_new(self, position: Position, scanned: Marks) -> bool:
        partition, offset = position
        return self._routed.get(partition, START) < offset <= scanned.get(partition, START)

    def _advances(self, scanned: Marks) -> bool:
        return any(upto > self._routed.get(partition, START) for partition, upto in scanned.items())

    def _store(self, wanted: StoredRows) -> None:
        """One transaction. What is kept in memory follows only after the commit."""
        begun = {(one.lane, EMBEDDED): self._begun(one) for one in wanted.begun}
        rows, newest, stations = self._chained(wanted.blocks)
        newest = {**begun, **newest}
        routed = {partition: max(upto, self._routed.get(partition, START)) for partition, upto in wanted.scanned.items()}
        with transaction(self._connection):
            insert = self._connection.executemany
            insert("DELETE FROM stations WHERE lane = ? AND partition = ?", list(begun))
            store(self._connection, wanted.fillings)
            insert("INSERT INTO blocks VALUES (?,?,?,?,?,?,?,?,?,?,?)", rows)
            insert("INSERT OR REPLACE INTO heads VALUES (?,?,?,?,?,?,?,?)", [(*lane, *found) for lane, found in newest.items()])
            insert("INSERT INTO stations VALUES (?,?,?,?)", stations)
            insert(
                "INSERT OR IGNORE INTO bodies VALUES (?,?,?,?)",
                [(*b.key.position, b.key.key, b.data) for b in wanted.bodies],
            )
            insert("INSERT OR IGNORE INTO asides VALUES (?,?,?,?)", map(_aside_row, wanted.asides))
            insert("INSERT OR REPLACE INTO routed VALUES (?,?)", list(routed.items()))
            self._touch(newest)
        self._routed.update(routed)
        self._heads.update(newest)
        self._last_id += len(rows)

    def _begun(self, filling: Filling) -> LaneHead:
        """The head of a lane that begins anew: no entries, and numbers that go on."""
        before = self._heads.get((filling.lane, EMBEDDED), LaneHead())
        begin_offset = filling.after.get(EMBEDDED, START)
        return before._replace(block=0, filling=filling.number, begin_number=before.total, begin_offset=begin_offset)

    def _chained(
        self, blocks: Sequence[LaneRun]
    ) -> tuple[list[tuple[object, ...]], dict[tuple[LaneNumber, Partition], LaneHead], list[tuple[int, int, int, int]]]:
        """The rows of these blocks, the new heads, and the new stations."""
        rows: list[tuple[object, ...]] = []
        newest: dict[tuple[LaneNumber, Partition], LaneHead] = {}
        stations: list[tuple[int, int, int, int]] = []
        for number, block in enumerate(blocks, self._last_id + 1):
            lane = (block.lane, block.partition)
            before = newest.get(lane) or self._heads.get(lane) or LaneHead()
            after = newest[lane] = before._replace(block=number, total=before.total + block.count, number=before.number + 1)
            span = (block.first, block.last, block.count)
            rows.append((number, *lane, *span, after.total, after.number, before.block, block.offsets, block.keys))
            if after.number % STATION_EVERY == 0:
                stations.append((*lane, block.last, number))
        return rows, newest, stations

    def _touch(self, newest: Iterable[tuple[LaneNumber, Partition]]) -> None:
        """Note which lanes got something, and forget the oldest notes: a reader that far behind looks at all lanes."""
        lanes = sorted({lane for lane, _ in newest})
        if not lanes:
            return
        number = self._touches[-1][0] + 1 if self._touches else 1
        self._connection.execute("INSERT INTO touches VALUES (?,?)", (number, struct.pack(f"<{len(lanes)}I", *lanes)))
        self._touches.append((number, len(lanes)))
        self._touched_lanes += len(lanes)
        while len(self._touches) > _TOUCH_ROWS or (self._touched_lanes > _TOUCH_LANES and len(self._touches) > 1):
            oldest, count = self._touches.popleft()
            self._touched_lanes -= count
            self._connection.execute("DELETE FROM touches WHERE number = ?", (oldest,))

    @contextmanager
    def _turn(self) -> Iterator[sqlite3.Connection]:
        with self._lock, translating(self._path):
            yield self._connection

    def _give_back(self) -> bool:
        with self._turn() as connection:
            return give_back_pages(connection)

    def _trim_slice(self, below: Marks) -> int:
        """Remove the oldest blocks, as long as they end at or below the marks."""
        with self._turn() as connection:
            rows = connection.execute(
                "SELECT id, lane, partition, last FROM blocks ORDER BY id LIMIT ?", (SLICE_ROWS,)
            ).fetchall()
            old = list(takewhile(lambda row: row[3] <= below.get(row[2], START), rows))
            if old:
                with transaction(connection):
                    connection.execute("DELETE FROM blocks WHERE id <= ?", (old[-1][0],))
                    connection.executemany(
                        "DELETE FROM stations WHERE lane = ? AND partition = ? AND last = ?", [row[1:] for row in old]
                    )
                self._wal.committed(0)
            return len(old)

    def _trim_bodies(self, span: OffsetSpan) -> int:
        return self._remove(span.partition, self._look(span))

    def _look(self, span: OffsetSpan) -> Sequence[Offset]:
        with self._turn() as connection:
            return next_offsets(connection, span)

    def _remove(self, partition: Partition, offsets: Sequence[Offset]) -> int:
        if not offsets:
            return 0
        with self._turn() as connection:
            gone = remove_at(connection, partition, offsets)
            self._wal.committed(0)
            return gone


def _in_order(blocks: Iterable[LaneRun]) -> Sequence[LaneRun]:
    """The blocks, after checking that those of one lane rise. Raises ValueError: out of order, an entry could be there twice."""
    ends: dict[tuple[LaneNumber, Partition], Offset] = {}
    kept = []
    for block in blocks:
        lane = (block.lane, block.partition)
        if block.first <= ends.get(lane, START):
            raise ValueError(f"blocks of lane {block.lane} are not in order at offset {block.first}")
        ends[lane] = block.last
        kept.append(block)
    return kept


def _size(block: LaneRun) -> int:
    return len(block.offsets) + len(block.keys or b"") + _BLOCK_OVERHEAD


def _aside_row(aside: Aside) -> tuple[int, int, int, str]:
    return (*aside.position, ALL_LANES if aside.lane is None else aside.lane, aside.reason[:_REASON_CHARS])
