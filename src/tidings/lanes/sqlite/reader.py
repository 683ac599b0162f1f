"""Reading lanes.db: where work is, a lane's blocks, its lag, and what was set aside."""

from __future__ import annotations

import contextlib
import sqlite3
import struct
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec

from tidings.errors import LogUnavailable
from tidings.lanes.port import Touched
from tidings.lanes.sink import Aside, Filling, PartKey
from tidings.lanes.sqlite.block import Block, LaneBegin, count_above
from tidings.lanes.sqlite.block_chain import LANES, FoundBlock, head, lanes_file, walk, walk_back
from tidings.lanes.sqlite.fillings import read
from tidings.log.position import LaneNumber, Marks, Offset, Partition, Position
from tidings.sqlite.shared_reader import SharedReader

ALL_LANES = -1
_TOUCHES = 256
_BODY = 'SELECT data FROM bodies WHERE partition = ? AND "offset" = ? AND digest = ?'


class SqliteLanesReader:
    """Reads lanes.db. Threads may share one, their calls then take turns.

    While routing has never run there is no file; then every lane is empty.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: SharedReader | None = None
        self._nothing = _no_lanes()

    def touched(self, after: int) -> Touched:
        """Which lanes got entries since `after`, without polling every lane. Cheap when nothing happened."""
        with self._snapshot() as connection:
            oldest, newest = connection.execute("SELECT min(number), max(number) FROM touches").fetchone()
            if newest == after or (newest is None and after == 0):
                return Touched(frozenset(), after)
            if newest is None or newest < after or oldest > after + 1:
                return Touched(frozenset(), newest or 0, lost=True)
            rows = connection.execute(
                "SELECT number, lanes FROM touches WHERE number > ? ORDER BY number LIMIT ?", (after, _TOUCHES)
            ).fetchall()
        lanes = frozenset(LaneNumber(lane) for _, packed in rows for (lane,) in struct.iter_unpack("<I", packed))
        return Touched(lanes, rows[-1][0])

    def blocks(self, lane: LaneNumber, after: Offset, partition: Partition, limit: int) -> Sequence[Block]:
        """The blocks with an entry after `after`, in order, at most `limit` of them. A block may begin before `after`."""
        found: list[FoundBlock] = []
        with self._snapshot() as connection:
            newest = head(connection, lane, partition)
            while len(found) < limit and (not found or found[-1].total < newest.total):
                more = walk(connection, lane, partition, found[-1].block.last if found else after, limit - len(found))
                if not more:
                    break
                found += more
        if newest.filling:
            return [msgspec.structs.replace(item.block, begin=newest.begin) for item in found]
        return [item.block for item in found]

    def begin(self, lane: LaneNumber, partition: Partition) -> LaneBegin | None:
        """Where the lane begins, if it was ever filled from the log. Cheap."""
        with self._snapshot() as connection:
            return head(connection, lane, partition).begin

    def fillings(self) -> Mapping[LaneNumber, Filling]:
        """The newest filling of every lane. What one may go up to is what is routed."""
        with self._snapshot() as connection:
            return read(connection)

    def blocks_back(self, lane: LaneNumber, upto: Offset, partition: Partition, entries: int) -> Sequence[Block]:
        """The last blocks that begin at or before `upto`, newest first: as many as hold about so many entries."""
        with self._snapshot() as connection:
            return [found.block for found in walk_back(connection, lane, partition, upto, entries)]

    def bodies(self, keys: Sequence[PartKey]) -> Mapping[PartKey, bytes]:
        """What is kept under these keys; what was removed is missing from the answer."""
        found: dict[PartKey, bytes] = {}
        with self._snapshot() as connection:
            for key in keys:
                row = connection.execute(_BODY, (*key.position, key.key)).fetchone()
                if row is not None:
                    found[key] = row[0]
        return found

    def routed(self) -> Marks:
        """How far routing is durable."""
        with self._snapshot() as connection:
            return dict(connection.execute("SELECT partition, upto FROM routed").fetchall())

    def count_after(self, lane: LaneNumber, after: Offset, partition: Partition) -> int:
        """How many entries of the lane are after `after`. Removed ones do not count."""
        return self.backlog(lane, after, partition)[0]

    def backlog(self, lane: LaneNumber, after: Offset, partition: Partition) -> tuple[int, Block | None]:
        """How many entries of the lane are after `after`, and the block with the first of them."""
        with self._snapshot() as connection:
            first = walk(connection, lane, partition, after, 1)
            if not first:
                return 0, None
            later = head(connection, lane, partition).total - first[0].total
            return later + count_above(first[0].block, after), first[0].block

    def total(self, lane: LaneNumber, partition: Partition) -> int:
        """How many entries the lane has had, removed ones included. Cheap: asked whenever a lane has nothing more to read."""
        with self._snapshot() as connection:
            return head(connection, lane, partition).total

    def asides(self, after: Position | None, limit: int) -> Sequence[Aside]:
        """What was set aside, oldest first. All asides of one position come together, also beyond the limit."""
        start = after or (-1, -1)
        with self._snapshot() as connection:
            rows = connection.execute(
                """WITH page AS (SELECT partition, "offset" FROM asides WHERE (partition, "offset") > (?, ?)
                     ORDER BY partition, "offset" LIMIT ?)
                   SELECT partition, "offset", lane, reason FROM asides
                   WHERE (partition, "offset") IN page ORDER BY partition, "offset", lane""",
                (*start, limit),
            ).fetchall()
        return [_aside(*row) for row in rows]

    def close(self) -> None:
        """Release the file. Safe to call twice."""
        if self._file is not None:
            self._file.close()

    def _snapshot(self) -> AbstractContextManager[sqlite3.Connection]:
        if self._file is None:
            try:
                self._file = SharedReader(lanes_file(self._folder), LANES)
            except LogUnavailable:
                return contextlib.nullcontext(self._nothing)
        return self._file.snapshot()


def _no_lanes() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    for statement in LANES.schema:
        connection.execute(statement)
    return connection


def _aside(partition: Partition, offset: Offset, lane: int, reason: str) -> Aside:
    return Aside(Position(partition, offset), None if lane == ALL_LANES else LaneNumber(lane), reason)
