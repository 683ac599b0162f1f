"""The write-ahead file of a writer: copied back often, cut when it grew or when nothing happens."""

from __future__ import annotations

import sqlite3

from tidings.errors import tolerating
from tidings.sqlite.files import PAGE_BYTES

_COPY_BYTES = 4 << 20
_COMMIT_PAGES = 3
_PATIENCE_MS = 200
_IDLE_PATIENCE_MS = 10


class Wal:
    """Keeps one writer's WAL small. Used by the thread that writes, between its commits.

    Readers that are in the middle of a page hold the WAL for some milliseconds; beyond `wal_bytes` the writer waits for them.
    """

    def __init__(self, connection: sqlite3.Connection, wal_bytes: int) -> None:
        self._connection = connection
        self._limit = wal_bytes
        self._step = min(_COPY_BYTES, max(wal_bytes // 4, PAGE_BYTES))
        self._written = 0
        self.dirty = True

    def committed(self, size: int) -> None:
        """A commit of about `size` bytes was made. Copies the WAL back when enough has gathered."""
        self.dirty = True
        self._written += size + _COMMIT_PAGES * PAGE_BYTES
        if self._written >= self._step:
            self._written = 0
            with tolerating(sqlite3.Error, doing="copying the write-ahead file back"):
                _, frames = self._checkpoint("PASSIVE", 0)
                if frames * PAGE_BYTES >= self._limit - 2 * self._step:
                    self._cut(_PATIENCE_MS)

    def rest(self) -> None:
        """Nothing happens now: copy everything back and cut the file to nothing. Stays dirty when a reader is in the way.

        Hardly waits for that reader, for an append may come any moment.
        """
        with tolerating(sqlite3.Error, doing="cutting the write-ahead file"):
            self._cut(_IDLE_PATIENCE_MS)

    def _cut(self, patience_ms: int) -> None:
        busy, _ = self._checkpoint("TRUNCATE", patience_ms)
        self.dirty = bool(busy)

    def _checkpoint(self, mode: str, patience_ms: int) -> tuple[int, int]:
        """Whether a reader was in the way, and how many frames the file has."""
        (usual,) = self._connection.execute("PRAGMA busy_timeout").fetchone()
        self._connection.execute(f"PRAGMA busy_timeout={patience_ms}").fetchall()
        try:
            busy, frames, _ = self._connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
        finally:
            self._connection.execute(f"PRAGMA busy_timeout={usual}").fetchall()
        return busy, frames
