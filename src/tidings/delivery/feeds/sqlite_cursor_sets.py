"""cursorsets.db: one row for every cursor that the hub keeps for a reader. The api process is its only writer."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

from tidings.clock import Instant
from tidings.delivery.feeds.cursor_sets import KeptCursor, SetKey
from tidings.log.position import Offset
from tidings.log.sqlite.identity import OpenedFile
from tidings.sqlite.files import FileKind, open_writer, transaction, translating
from tidings.sqlite.shared_reader import SharedReader

WAL_BYTES = 4 << 20

CURSOR_SETS = FileKind(
    name="the file of cursor sets",
    application_id=0x54444353,
    version=1,
    schema=(
        """CREATE TABLE cursors (
             consumer TEXT NOT NULL, feed TEXT NOT NULL, name TEXT NOT NULL, version TEXT NOT NULL, count INTEGER NOT NULL,
             partition INTEGER NOT NULL, "offset" INTEGER NOT NULL, used INTEGER NOT NULL,
             PRIMARY KEY (feed, consumer, name, version, count, partition)) WITHOUT ROWID""",
    ),
)

_SAVE = "INSERT OR REPLACE INTO cursors VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_KEY = "consumer = ? AND feed = ? AND name = ? AND version = ? AND count = ?"
_LOAD = f'SELECT partition, "offset" FROM cursors WHERE {_KEY}'
_SET = "consumer, feed, name, version, count"
_UNUSED = f"SELECT {_SET} FROM cursors GROUP BY {_SET} HAVING max(used) < ?"
_LIST = 'SELECT consumer, feed, name, version, count, partition, "offset", used FROM cursors'


class SqliteCursorSets:
    """`CursorSets` and `CursorOverview` on cursorsets.db. Any thread may call; saves take turns."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "cursorsets.db"
        self._writer = open_writer(self._path, CURSOR_SETS, WAL_BYTES)
        # Few and small commits: SQLite itself moves them into the file now and then.
        self._writer.execute("PRAGMA wal_autocheckpoint=1000").fetchall()
        self._file = OpenedFile(self._path)
        self._turn = threading.Lock()
        self._reader = SharedReader(self._path, CURSOR_SETS)
        self._held: defaultdict[str, set[SetKey]] = defaultdict(set)
        for row in self._writer.execute(f"SELECT DISTINCT {_SET} FROM cursors").fetchall():
            self._held[row[0]].add(SetKey(*row))

    def save(self, kept: Sequence[KeptCursor]) -> None:
        """See `CursorSets.save`."""
        self._file.check()
        with self._turn, translating(self._path), transaction(self._writer):
            self._writer.executemany(_SAVE, [(*one.key, *one[1:]) for one in kept])
            for one in kept:
                self._held[one.key.consumer].add(one.key)

    def load(self, key: SetKey) -> Mapping[int, Offset]:
        """See `CursorSets.load`."""
        with self._reader.statements() as connection:
            return dict(connection.execute(_LOAD, key).fetchall())

    def listed(self, feed: str | None = None) -> Sequence[KeptCursor]:
        """See `CursorOverview.listed`."""
        wanted, values = ("", ()) if feed is None else (" WHERE feed = ?", (feed,))
        with self._reader.statements() as connection:
            rows = connection.execute(f"{_LIST}{wanted} ORDER BY feed, consumer, name, version, count, partition", values)
            return list(map(_kept, rows.fetchall()))

    def used_last(self, most: int) -> Sequence[KeptCursor]:
        """See `CursorOverview.used_last`."""
        with self._reader.statements() as connection:
            return list(map(_kept, connection.execute(f"{_LIST} ORDER BY used DESC LIMIT ?", (most,)).fetchall()))

    def held(self, consumer: str) -> AbstractSet[SetKey]:
        """See `CursorSets.held`."""
        return self._held.get(consumer, frozenset())

    def feeds(self) -> AbstractSet[str]:
        """See `CursorSets.feeds`."""
        with self._turn:
            return {key.feed for keys in self._held.values() for key in keys}

    def delete(self, feed: str, consumer: str, name: str) -> int:
        """See `CursorSets.delete`."""
        with self._turn, translating(self._path), transaction(self._writer):
            found = self._writer.execute(
                "DELETE FROM cursors WHERE feed = ? AND consumer = ? AND name = ?", (feed, consumer, name)
            )
            self._lose([key for key in self._held[consumer] if (key.feed, key.name) == (feed, name)])
            return found.rowcount

    def forget(self, unused_since: Instant | None, feeds: AbstractSet[str]) -> int:
        """See `CursorSets.forget`."""
        with self._turn, translating(self._path), transaction(self._writer):
            unused = [] if unused_since is None else self._writer.execute(_UNUSED, (unused_since,)).fetchall()
            gone = [key for keys in self._held.values() for key in keys if key.feed in feeds]
            lost = [*map(SetKey._make, unused), *gone]
            before = self._writer.total_changes
            self._writer.executemany(f"DELETE FROM cursors WHERE {_KEY}", lost)
            self._lose(lost)
            return self._writer.total_changes - before

    def _lose(self, keys: Sequence[SetKey]) -> None:
        for key in keys:
            self._held[key.consumer].discard(key)

    def close(self) -> None:
        """Release the file. Safe to call twice."""
        self._reader.close()
        with self._turn:
            self._writer.close()


def _kept(row: tuple[Any, ...]) -> KeptCursor:
    return KeptCursor(SetKey(*row[:5]), row[5], Offset(row[6]), Instant(row[7]))
