"""cursorsets.db: one row for every cursor that the hub keeps for a reader. The api process is its only writer."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from tidings.clock import Instant
from tidings.delivery.feeds.cursorsets import Kept, SetKey
from tidings.log.position import Offset
from tidings.log.sqlite.files import FileKind, open_writer, transaction, translating
from tidings.log.sqlite.identity import OpenedFile
from tidings.log.sqlite.reading import Reading

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
_LIST = 'SELECT consumer, feed, name, version, count, partition, "offset", used FROM cursors'


class SqliteCursorSets:
    """`CursorSets` on cursorsets.db. Any thread may call; saves take turns."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "cursorsets.db"
        self._writer = open_writer(self._path, CURSOR_SETS, WAL_BYTES)
        # Few and small commits: SQLite itself moves them into the file now and then.
        self._writer.execute("PRAGMA wal_autocheckpoint=1000").fetchall()
        self._file = OpenedFile(self._path)
        self._turn = threading.Lock()
        self._reader = Reading(self._path, CURSOR_SETS)

    def save(self, kept: Sequence[Kept]) -> None:
        """See `CursorSets.save`."""
        self._file.check()
        with self._turn, translating(self._path), transaction(self._writer):
            self._writer.executemany(_SAVE, [(*one.key, *one[1:]) for one in kept])

    def load(self, key: SetKey) -> Mapping[int, Offset]:
        """See `CursorSets.load`."""
        with self._reader.statements() as connection:
            return dict(connection.execute(_LOAD, key).fetchall())

    def listed(self, feed: str | None = None) -> Sequence[Kept]:
        """See `CursorSets.listed`."""
        wanted, values = ("", ()) if feed is None else (" WHERE feed = ?", (feed,))
        with self._reader.statements() as connection:
            rows = connection.execute(f"{_LIST}{wanted} ORDER BY feed, consumer, name, version, count, partition", values)
            return [Kept(SetKey(*row[:5]), row[5], Offset(row[6]), Instant(row[7])) for row in rows.fetchall()]

    def delete(self, feed: str, consumer: str, name: str) -> int:
        """See `CursorSets.delete`."""
        with self._turn, translating(self._path), transaction(self._writer):
            found = self._writer.execute(
                "DELETE FROM cursors WHERE feed = ? AND consumer = ? AND name = ?", (feed, consumer, name)
            )
            return found.rowcount

    def close(self) -> None:
        """Release the file. Safe to call twice."""
        self._reader.close()
        with self._turn:
            self._writer.close()
