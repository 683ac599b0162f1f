"""A read-only connection that threads may share: their calls take turns, and none leaves a read transaction behind."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidings.sqlite.files import FileKind, open_reader, translating


class SharedReader:
    """Reads one file. Made anew in every process: SQLite connections do not survive a fork."""

    def __init__(self, path: Path, kind: FileKind) -> None:
        self._path = path
        self._connection = open_reader(path, kind)
        self._lock = threading.Lock()

    @contextmanager
    def statements(self) -> Iterator[sqlite3.Connection]:
        """Each statement sees what is committed when it runs. Fetch to the end or close the cursor."""
        with self._lock, translating(self._path):
            yield self._connection

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """All statements see the same moment."""
        with self.statements() as connection:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.execute("ROLLBACK")

    def close(self) -> None:
        """Release the file. Safe to call twice."""
        with self._lock:
            self._connection.close()
