"""Reading one topic in small slices for feeds: only events of the wanted key hashes, and never far in one go."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from itertools import accumulate
from operator import itemgetter
from pathlib import Path

import msgspec

from tidings.log.port import Extent, Limit, Row, Share, Slice
from tidings.log.position import Offset, TopicNumber
from tidings.log.sqlite.entries import LOG, last_offset, log_file
from tidings.sqlite.shared_reader import SharedReader

_WITHIN = 'topic = ? AND "offset" > ? AND "offset" <= ?'
_COLUMNS = '"offset", key_hash, head, data, size'
_ALL = f'SELECT {_COLUMNS} FROM entries WHERE {_WITHIN} ORDER BY "offset" LIMIT ?'
_ONE = f'SELECT {_COLUMNS} FROM entries WHERE {_WITHIN} AND key_hash % ? = ? ORDER BY "offset" LIMIT ?'
_SOME = f"""SELECT {_COLUMNS} FROM entries WHERE {_WITHIN} AND key_hash % ? IN (SELECT value FROM json_each(?))
            ORDER BY "offset" LIMIT ?"""
# Answered from the index alone, which holds nothing but topics and offsets.
_AHEAD = f'SELECT "offset" FROM entries WHERE {_WITHIN} ORDER BY "offset" LIMIT 1 OFFSET ?'
_LAST = 'SELECT "offset" FROM entries WHERE topic = ? ORDER BY "offset" DESC LIMIT 1'
_REMOVED = "SELECT upto FROM removals WHERE topic = ?"
# One row, however many: between two rows the interpreter lock is let go of, and a busy event loop is slow to give it back.
_NEWEST = """SELECT group_concat("offset"), group_concat(key_hash)
             FROM (SELECT "offset", key_hash FROM entries WHERE topic = ? AND "offset" > ? ORDER BY "offset" DESC LIMIT ?)"""
_TOPICS = 'SELECT DISTINCT topic FROM entries WHERE "offset" > ? AND "offset" <= ?'

_MOST_LOOKED_AT = 2000
"""Entries that one slice may look at: reading their key hashes takes about half a millisecond."""

_CHUNK = 32
_size = itemgetter(4)


class SqliteSlices:
    """`TopicSlices` on log.db. Threads may share one, their calls then take turns."""

    def __init__(self, folder: Path) -> None:
        self._file = SharedReader(log_file(folder), LOG)
        # Counting may take a while, and nobody who reads shall wait for it.
        self._counting = SharedReader(log_file(folder), LOG)

    def extent(self, topic: TopicNumber) -> Extent:
        """See `TopicSlices.extent`."""
        with self._file.statements() as connection:
            last = connection.execute(_LAST, (topic,)).fetchone()
            removed = _removed(connection, topic)
        return Extent(Offset(removed), Offset(max(removed, last[0] if last else 0)))

    def slice(self, topic: TopicNumber, after: Offset, upto: Offset, share: Share, limit: Limit) -> Slice:
        """See `TopicSlices.slice`."""
        with self._file.statements() as connection:
            if share.residues:
                ahead = connection.execute(_AHEAD, (topic, after, upto, _looked_at(share, limit))).fetchone()
                upto = upto if ahead is None else ahead[0]
            rows, cut = _within(_selected(connection, (topic, after, upto), share, limit.entries), limit.bytes)
            removed = _removed(connection, topic)
        full = cut or len(rows) == limit.entries
        return Slice(rows, Offset(rows[-1][0] if full else upto), overtaken=removed > after)

    def newest(self, topic: TopicNumber, after: Offset, most: int) -> Sequence[tuple[Offset, int]]:
        """See `TopicSlices.newest`."""
        with self._counting.statements() as connection:
            offsets, hashes = connection.execute(_NEWEST, (topic, after, most)).fetchone()
        if offsets is None:
            return []
        return sorted(zip(map(Offset, map(int, offsets.split(","))), map(int, hashes.split(",")), strict=True))

    def topics(self, after: Offset, upto: Offset) -> frozenset[TopicNumber]:
        """See `TopicSlices.topics`."""
        with self._file.statements() as connection:
            return frozenset(TopicNumber(row[0]) for row in connection.execute(_TOPICS, (after, upto)).fetchall())

    def end(self) -> Offset:
        """See `TopicSlices.end`."""
        with self._file.statements() as connection:
            return Offset(last_offset(connection))

    def close(self) -> None:
        """Release the file. Safe to call twice."""
        self._file.close()
        self._counting.close()


def _selected(connection: sqlite3.Connection, bounds: tuple[int, ...], share: Share, limit: int) -> sqlite3.Cursor:
    match share.residues:
        case ():
            return connection.execute(_ALL, (*bounds, limit))
        case (residue,):
            return connection.execute(_ONE, (*bounds, share.modulus, residue, limit))
        case several:
            return connection.execute(_SOME, (*bounds, share.modulus, msgspec.json.encode(several).decode(), limit))


def _looked_at(share: Share, limit: Limit) -> int:
    """How many entries to look at for a full slice, if keys are evenly spread."""
    return min(_MOST_LOOKED_AT, limit.entries * share.modulus // len(share.residues))


def _removed(connection: sqlite3.Connection, topic: TopicNumber) -> int:
    row = connection.execute(_REMOVED, (topic,)).fetchone()
    return row[0] if row else 0


def _within(found: sqlite3.Cursor, room: int) -> tuple[Sequence[Row], bool]:
    """The rows that fit, at least one, and whether some were left out."""
    rows: list[Row] = []
    with closing(found):
        while chunk := found.fetchmany(_CHUNK):
            size = sum(map(_size, chunk))
            if size > room:
                fitting = sum(total <= room for total in accumulate(map(_size, chunk)))
                rows += chunk[:fitting] if rows else chunk[: max(1, fitting)]
                return rows, True
            room -= size
            rows += chunk
    return rows, False
