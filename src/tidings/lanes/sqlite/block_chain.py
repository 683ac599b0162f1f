"""lanes.db: the blocks of every lane as a chain, newest first, with a station every 32 blocks.

An index over (lane, offset) would be written at a random page for every block: with 10,000 lanes a batch took four times
as long once a hundred batches were stored, and went on growing. Here blocks are only appended. Each names the one before
it, `heads` names each lane's newest, and `stations` is a sparse index, so that a walk is never longer than 32 blocks.

`bodies` holds what projections left of payloads, once for all lanes with the same; `swept` is how far they followed the log's
removals (see bodies.py).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tidings.lanes.sqlite.block import Block, LaneBegin
from tidings.lanes.sqlite.fillings import FILLINGS
from tidings.log.position import START, LaneNumber, Offset, Partition
from tidings.sqlite.files import FileKind

STATION_EVERY = 32

_BODIES = """CREATE TABLE bodies (
  partition INTEGER NOT NULL, "offset" INTEGER NOT NULL, digest BLOB NOT NULL, data BLOB NOT NULL,
  PRIMARY KEY (partition, "offset", digest)) WITHOUT ROWID"""

_SWEPT = """CREATE TABLE swept (
  topic INTEGER NOT NULL, partition INTEGER NOT NULL, upto INTEGER NOT NULL, PRIMARY KEY (topic, partition)) WITHOUT ROWID"""

_HEAD = "block, total, number, filling, begin_number, begin_offset"

LANES = FileKind(
    name="the lanes file",
    application_id=0x54444C4E,
    version=4,
    schema=(
        # AUTOINCREMENT: an id is never given twice, so the name of a removed block never means another one.
        """CREATE TABLE blocks (
             id INTEGER PRIMARY KEY AUTOINCREMENT, lane INTEGER NOT NULL, partition INTEGER NOT NULL, first INTEGER NOT NULL,
             last INTEGER NOT NULL, count INTEGER NOT NULL, total INTEGER NOT NULL, number INTEGER NOT NULL,
             before INTEGER NOT NULL, offsets BLOB NOT NULL, digests BLOB)""",
        """CREATE TABLE heads (
             lane INTEGER NOT NULL, partition INTEGER NOT NULL, block INTEGER NOT NULL, total INTEGER NOT NULL,
             number INTEGER NOT NULL, filling INTEGER NOT NULL DEFAULT 0, begin_number INTEGER NOT NULL DEFAULT 0,
             begin_offset INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (lane, partition)) WITHOUT ROWID""",
        """CREATE TABLE stations (
             lane INTEGER NOT NULL, partition INTEGER NOT NULL, last INTEGER NOT NULL, block INTEGER NOT NULL,
             PRIMARY KEY (lane, partition, last)) WITHOUT ROWID""",
        "CREATE TABLE routed (partition INTEGER PRIMARY KEY, upto INTEGER NOT NULL)",
        "CREATE TABLE touches (number INTEGER PRIMARY KEY, lanes BLOB NOT NULL)",
        """CREATE TABLE asides (
             partition INTEGER NOT NULL, "offset" INTEGER NOT NULL, lane INTEGER NOT NULL, reason TEXT NOT NULL,
             PRIMARY KEY (partition, "offset", lane)) WITHOUT ROWID""",
        _BODIES,
        _SWEPT,
        FILLINGS,
    ),
)

_WALK = """
WITH RECURSIVE back (id) AS (
  SELECT ?
  UNION ALL
  SELECT blocks.before FROM back JOIN blocks ON blocks.id = back.id WHERE blocks.first > ?
)
SELECT lane, partition, first, last, count, offsets, digests, total - count, total FROM blocks
WHERE id IN back AND last > ? ORDER BY id LIMIT ?
"""


_BACK = """
WITH RECURSIVE back (id, found) AS (
  SELECT ?1, 0
  UNION ALL
  SELECT blocks.before, found + CASE WHEN blocks.first <= ?2 THEN blocks.count ELSE 0 END
  FROM back JOIN blocks ON blocks.id = back.id
  WHERE blocks.first > ?2 OR found + blocks.count < ?3
)
SELECT lane, partition, first, last, count, offsets, digests, total - count, total FROM blocks
WHERE id IN (SELECT id FROM back) AND first <= ?2 ORDER BY id DESC
"""


def lanes_file(folder: Path) -> Path:
    """The lanes of a data folder."""
    return folder / "lanes.db"


class LaneHead(NamedTuple):
    """The newest block of a lane: its id, how many entries and blocks the lane has had up to it.

    `filling`: how often the lane was filled anew; then it begins after an entry number and an offset.
    """

    block: int = 0
    total: int = 0
    number: int = 0
    filling: int = 0
    begin_number: int = 0
    begin_offset: Offset = START

    @property
    def begin(self) -> LaneBegin | None:
        return LaneBegin(*self[3:]) if self.filling else None


class FoundBlock(NamedTuple):
    """A block, and how many entries its lane has had up to its end."""

    block: Block
    total: int


def heads(connection: sqlite3.Connection) -> dict[tuple[LaneNumber, Partition], LaneHead]:
    """The newest block of every lane."""
    rows = connection.execute(f"SELECT lane, partition, {_HEAD} FROM heads")
    return {(lane, partition): LaneHead(*head) for lane, partition, *head in rows}


def head(connection: sqlite3.Connection, lane: LaneNumber, partition: Partition) -> LaneHead:
    """The newest block of one lane."""
    row = connection.execute(f"SELECT {_HEAD} FROM heads WHERE lane = ? AND partition = ?", (lane, partition)).fetchone()
    return LaneHead(*row) if row else LaneHead()


def walk(
    connection: sqlite3.Connection, lane: LaneNumber, partition: Partition, after: Offset, limit: int
) -> Sequence[FoundBlock]:
    """The first blocks of a lane that end after `after`, in order: at least one if there is any, at most `limit`.

    It starts at the first station after `after`, or at the lane's head, and goes back.
    """
    start = _start(connection, lane, partition, after)
    rows = connection.execute(_WALK, (start, after, after, limit)).fetchall()
    return [FoundBlock(Block(*row[:-1]), row[-1]) for row in rows]


def walk_back(
    connection: sqlite3.Connection, lane: LaneNumber, partition: Partition, upto: Offset, entries: int
) -> Sequence[FoundBlock]:
    """The last blocks of a lane that begin at or before `upto`, newest first: as many as hold about so many entries."""
    rows = connection.execute(_BACK, (_start(connection, lane, partition, upto), upto, entries)).fetchall()
    return [FoundBlock(Block(*row[:-1]), row[-1]) for row in rows]


def _start(connection: sqlite3.Connection, lane: LaneNumber, partition: Partition, after: Offset) -> int:
    """The block from where to go back to what comes after an offset: the first station there, or the lane's head."""
    station = connection.execute(
        "SELECT block FROM stations WHERE lane = ? AND partition = ? AND last > ? ORDER BY last LIMIT 1",
        (lane, partition, after),
    ).fetchone()
    return int(station[0]) if station else head(connection, lane, partition).block
