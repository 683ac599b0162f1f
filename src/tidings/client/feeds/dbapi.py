"""Cursors in any database with a DB-API 2.0 driver, in the table `feed_cursor`, in the transaction that the handler writes in."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from tidings.client.feeds.store import StoredCursor, moved
from tidings.errors import Misconfigured

TABLE = (
    "CREATE TABLE IF NOT EXISTS feed_cursor ("
    "feed VARCHAR(500) NOT NULL, partition VARCHAR(20) NOT NULL, cursor VARCHAR(4000) NOT NULL, "
    "finished INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (feed, partition))"
)

ParamStyle = Literal["qmark", "numeric", "named", "format", "pyformat"]


class DbApiStore:
    """`connect` makes a connection (`lambda: psycopg.connect(…)`); one is held and made again after an error.

    The handler gets the connection and must not commit. `paramstyle` is found in the driver's module unless it is given.
    """

    def __init__(self, connect: Callable[[], Any], paramstyle: ParamStyle | None = None) -> None:
        self._connect = connect
        self._style = paramstyle
        self._connection: Any = None

    def load(self, feed: str) -> Mapping[str, StoredCursor]:
        with self.transaction() as tx:
            rows = self._run(tx, "SELECT partition, cursor, finished FROM feed_cursor WHERE feed = ?", (feed,)).fetchall()
        return {str(partition): StoredCursor(str(cursor), bool(finished)) for partition, cursor, finished in rows}

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        connection = self._opened()
        try:
            yield connection
            connection.commit()
        except BaseException:
            self._roll_back(connection)
            raise

    def save(self, tx: Any, feed: str, partition: str, row: StoredCursor, before: StoredCursor | None) -> None:
        if before is None:
            there = self._run(tx, "SELECT cursor FROM feed_cursor WHERE feed = ? AND partition = ?", (feed, partition))
            if there.fetchone() is not None:
                raise moved(feed, partition)
            values = (feed, partition, row.cursor, int(row.finished))
            self._run(tx, "INSERT INTO feed_cursor (feed, partition, cursor, finished) VALUES (?, ?, ?, ?)", values)
            return
        # Only over what was read before: a second reader of the same feed finds the row changed, and rolls back.
        changed = self._run(
            tx,
            "UPDATE feed_cursor SET cursor = ?, finished = ? WHERE feed = ? AND partition = ? AND cursor = ? AND finished = ?",
            (row.cursor, int(row.finished), feed, partition, before.cursor, int(before.finished)),
        )
        if changed.rowcount != 1:
            raise moved(feed, partition)

    def close(self) -> None:
        """Let go of the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _opened(self) -> Any:
        if self._connection is None:
            connection = self._connect()
            self._style = self._style or _style_of(connection)
            connection.cursor().execute(TABLE)
            connection.commit()
            self._connection = connection
        return self._connection

    def _roll_back(self, connection: Any) -> None:
        """Undo, and trust a connection no further that cannot even do that."""
        try:
            connection.rollback()
        except Exception:
            self._connection = None

    def _run(self, connection: Any, sql: str, values: Sequence[object]) -> Any:
        cursor = connection.cursor()
        cursor.execute(*_in_style(self._style or "qmark", sql, values))
        return cursor


def _style_of(connection: Any) -> ParamStyle:
    module = type(connection).__module__
    while module:
        style = getattr(sys.modules.get(module), "paramstyle", None)
        if style is not None:
            return style  # type: ignore[no-any-return]
        module = module.rpartition(".")[0]
    raise Misconfigured("the driver does not tell how its parameters are written", expected='paramstyle="format" or the like')


def _in_style(style: ParamStyle, sql: str, values: Sequence[object]) -> tuple[str, Any]:
    """The statement, written with `?`, as this driver wants it."""
    pieces = sql.split("?")
    marks: list[str] = []
    for n in range(1, len(pieces)):
        marks.append({"qmark": "?", "numeric": f":{n}", "named": f":p{n}", "format": "%s", "pyformat": f"%(p{n})s"}[style])
    text = "".join(piece + mark for piece, mark in zip(pieces, [*marks, ""], strict=True))
    return text, {f"p{n}": value for n, value in enumerate(values, 1)} if style in ("named", "pyformat") else tuple(values)
