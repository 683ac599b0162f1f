"""Cursors in the SQLite file that the consumer writes its own tables in."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from tidings.client.feeds.dbapi import TABLE, DbApiStore
from tidings.client.feeds.store import StoredCursor
from tidings.errors import Misconfigured


class _Joined(sqlite3.Connection):
    """A connection whose transaction belongs to the client: the handler can neither end it nor split it."""

    def commit(self) -> None:
        raise Misconfigured("the handler may not commit: its changes and the cursor are saved together when it returns")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> Literal[False]:
        return False


class SqliteStore:
    """One SQLite file, made if needed. Handlers get its connection; commits are durable (`synchronous=FULL`)."""

    def __init__(self, file: str | Path, timeout: float = 30.0) -> None:
        self._file, self._timeout = str(file), timeout
        self._connection: sqlite3.Connection | None = None
        self._rows = DbApiStore(lambda: None, "qmark")

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection, for making tables before reading begins."""
        if self._connection is None:
            with self._told():
                opened = sqlite3.connect(
                    self._file, timeout=self._timeout, isolation_level=None, factory=_Joined, check_same_thread=False
                )
                try:
                    opened.execute("PRAGMA journal_mode=WAL")
                    opened.execute("PRAGMA synchronous=FULL")
                    opened.execute(TABLE)
                except sqlite3.Error:
                    opened.close()
                    raise
            self._connection = opened
        return self._connection

    def load(self, feed: str) -> Mapping[str, StoredCursor]:
        with self._told():
            select = "SELECT partition, cursor, finished FROM feed_cursor WHERE feed = ?"
            found = self.connection.execute(select, (feed,)).fetchall()
        return {partition: StoredCursor(cursor, bool(finished)) for partition, cursor, finished in found}

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        connection = self.connection
        # At once, so that two processes do not both read and then find that only one may write.
        with self._told():
            connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
            if not connection.in_transaction:
                raise Misconfigured("the handler ended the transaction: its changes are saved without the cursor")
            with self._told():
                connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def save(self, tx: Any, feed: str, partition: str, row: StoredCursor, before: StoredCursor | None) -> None:
        with self._told():
            self._rows.save(tx, feed, partition, row, before)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What goes wrong with the file itself becomes a sentence. What the handler does wrong stays what it is."""
        try:
            yield
        except sqlite3.Error as error:
            raise Misconfigured(
                f"cursors cannot be kept there: {error}", at=self._file, expected="an SQLite file that can be written"
            ) from error

    def close(self) -> None:
        """Close the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
