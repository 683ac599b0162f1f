"""The database behind the store: connections, what each must be told first, and foreign errors in our own words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import PoolProxiedConnection

from tidings.data_files import remedy
from tidings.errors import DataFolderUnusable, Misconfigured, Unavailable

FILE = "registry.db"
_PASSING = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_BUSY", "SQLITE_LOCKED")
WAL_BYTES = 16 << 20

_READING = ("PRAGMA query_only=ON",)
# auto_vacuum can only be set before the first table is made.
_WRITING = (
    "PRAGMA auto_vacuum=INCREMENTAL",
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    f"PRAGMA journal_size_limit={WAL_BYTES}",
)


def connect(where: Path | str, *, writing: bool) -> Engine:
    """An engine for the registry in this data folder or at this address. Nothing is opened yet. Made after a fork, not before."""
    try:
        return _engine(
            URL.create("sqlite", database=str(where / FILE)) if isinstance(where, Path) else make_url(where), writing
        )
    except ArgumentError as error:
        raise Misconfigured(
            "this is no address of a database", expected="such as postgresql+psycopg://user@host/name"
        ) from error
    except ModuleNotFoundError as error:
        raise Misconfigured(f"the registry's database needs the Python package {error.name}", at=place(where)) from error


def _engine(url: URL, writing: bool) -> Engine:
    if url.get_backend_name() != "sqlite":
        # A snapshot is several selects, which must all see the same revision.
        return create_engine(url, isolation_level="SERIALIZABLE" if writing else "REPEATABLE READ")
    engine = create_engine(url, connect_args={"check_same_thread": False, "timeout": 10})
    _prepare_sqlite(engine, writing=writing)
    return engine


def _prepare_sqlite(engine: Engine, *, writing: bool) -> None:
    """Transactions begin where we say. Python's own rule begins none for a select, so two selects could see two revisions."""

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _: object) -> None:
        connection.isolation_level = None
        for pragma in _WRITING if writing else _READING:
            connection.execute(pragma)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


def asking_connection(engine: Engine) -> PoolProxiedConnection:
    """A connection for one short question again and again, outside of transactions: a tenth of the cost of one from the pool."""
    raw = engine.raw_connection()
    if engine.dialect.name != "sqlite":
        raw.driver_connection.autocommit = True  # type: ignore[union-attr]
    return raw


def newest_revision(connection: PoolProxiedConnection) -> int:
    """The number of the newest change; 0 when there was none. Raises the driver's own errors."""
    cursor = connection.cursor()
    try:
        cursor.execute("SELECT max(revision) FROM revisions")
        found = cursor.fetchone()
        return int(found[0] or 0) if found else 0
    finally:
        cursor.close()


@contextmanager
def opening(where: Path | str) -> Iterator[None]:
    """What goes wrong while opening means that the data folder cannot be used; a full or failing disk may be well again later."""
    try:
        yield
    except DBAPIError as error:
        if getattr(error.orig, "sqlite_errorname", "").startswith(_PASSING):
            raise Unavailable(_sentence(error), at=place(where)) from error
        raise DataFolderUnusable(_sentence(error), at=place(where)) from error


@contextmanager
def running(where: Path | str) -> Iterator[None]:
    """What goes wrong later may go right again, unless the file itself is damaged."""
    try:
        yield
    except msgspec.MsgspecError as error:
        raise DataFolderUnusable(f"the registry holds a document that cannot be read: {error}", at=place(where)) from error
    except DBAPIError as error:
        if _damaged(error):
            raise DataFolderUnusable(_sentence(error), at=place(where)) from error
        raise Unavailable(_sentence(error), at=place(where)) from error


def damage(connection: Connection) -> str | None:
    """What SQLite finds wrong with its file; None when nothing is."""
    if connection.dialect.name != "sqlite":
        return None
    found = str(connection.exec_driver_sql("PRAGMA quick_check(1)").scalar())
    return None if found == "ok" else found


def place(where: Path | str) -> str:
    """The registry's place as it may be shown: an address without its password."""
    return str(where / FILE) if isinstance(where, Path) else make_url(where).render_as_string(hide_password=True)


def _damaged(error: DBAPIError) -> bool:
    return getattr(error.orig, "sqlite_errorname", "").startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB"))


def _sentence(error: DBAPIError) -> str:
    if _damaged(error):
        return f"the registry file is damaged: {remedy(FILE)}"
    return f"the registry cannot be read or written: {error.orig}"
