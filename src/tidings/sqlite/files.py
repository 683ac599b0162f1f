"""SQLite files: opened with the right settings, of a known kind and version, or refused with a sentence.

A file carries its kind in `application_id`, its version in `user_version`, and the id of its hub in the table `hub`. Writers sync
every commit to disk; readers cannot change anything. Errors of SQLite and the file system are translated here and nowhere else.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tidings.data_files import hub_id, remedy
from tidings.errors import DataFolderUnusable, DataVersionUnsupported, LogUnavailable, TidingsError
from tidings.log.sqlite.identity import note_damage

PAGE_BYTES = 4096
_BUSY_SECONDS = 5.0
_STATEMENTS = 256

_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_PASSING = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
"""What may be over when the hub is started again, without anybody changing a setting."""
_CAUSES: Mapping[int, str] = {
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_IOERR: "the disk cannot be read or written",
    sqlite3.SQLITE_READONLY: "the file or its folder is read-only",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened",
    sqlite3.SQLITE_PERM: "the file may not be accessed",
    sqlite3.SQLITE_BUSY: "another process holds the file",
    sqlite3.SQLITE_LOCKED: "another process holds the file",
}


@dataclass(frozen=True, slots=True)
class FileKind:
    """What a file is: the statements that make it, and those that lift version n to n + 1 (`upgrades[n]`)."""

    name: str
    application_id: int
    version: int
    schema: tuple[str, ...]
    upgrades: Mapping[int, tuple[str, ...]] = field(default_factory=dict)


def open_writer(path: Path, kind: FileKind, wal_bytes: int, *, create: bool = True) -> sqlite3.Connection:
    """A connection that may change the file; it is created or upgraded if need be. Autocommit: say BEGIN yourself.

    It may move between threads, but only one may use it at a time. Checkpoints are the caller's (see `wal.py`).
    Whoever opens a file again that it had open before does not `create` it: an empty one in its place would be a loss.
    """
    with translating(path, opening=True):
        if create:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={'rwc' if create else 'rw'}",
            uri=True,
            timeout=_BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=_STATEMENTS,
        )
        try:
            _make_or_check(connection, path, kind)
            for pragma in ("synchronous=FULL", f"journal_size_limit={wal_bytes}", "wal_autocheckpoint=0", "secure_delete=OFF"):
                connection.execute(f"PRAGMA {pragma}").fetchall()
            connection.execute("PRAGMA cache_size=-16384")
        except BaseException:
            connection.close()
            raise
        return connection


def open_reader(path: Path, kind: FileKind) -> sqlite3.Connection:
    """A connection that can only read. A file that is not there yet is LogUnavailable: its writer has not started."""
    if not path.exists():
        raise LogUnavailable(f"{kind.name} is not there yet", at=str(path))
    with translating(path, opening=True):
        connection = read_only(path)
        try:
            _prepare_reading(connection, path, kind)
        except BaseException:
            connection.close()
            raise
        return connection


def read_only(path: Path) -> sqlite3.Connection:
    """A connection that only reads, to a file of any kind, also in a folder that cannot be written. Raises sqlite3.Error."""
    try:
        return _connected(path, "mode=ro")
    except sqlite3.OperationalError:
        # A folder that cannot be written, left by an orderly stop: there is no WAL, so the file alone is everything.
        if os.access(path.parent, os.W_OK) or _size(wal_path(path)):
            raise
        return _connected(path, "immutable=1")


def hub_in(connection: sqlite3.Connection) -> str:
    """The id of the hub that a file was made for; empty when it does not say."""
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'hub'").fetchone() is None:
        return ""
    row = connection.execute("SELECT id FROM hub").fetchone()
    return str(row[0]) if row else ""


def wal_path(path: Path) -> Path:
    """Where SQLite keeps the write-ahead log of a file."""
    return path.with_name(f"{path.name}-wal")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All of it or nothing; synced to disk when it ends."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        roll_back(connection)
        raise


def roll_back(connection: sqlite3.Connection) -> None:
    """Forget what was not committed. SQLite has done so itself after some errors."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")


@contextmanager
def translating(path: Path, *, opening: bool = False) -> Iterator[None]:
    """Errors of SQLite or the file system, raised as ours. While opening they are reasons to refuse the start."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise translation(error, path, opening=opening) from error


def translation(error: sqlite3.Error | OSError, path: Path, *, opening: bool = False) -> TidingsError:
    """The error in our tree that says what this one means for the file."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in _DAMAGED:
        assert isinstance(error, sqlite3.Error)
        note_damage(path, error)
        return DataFolderUnusable(f"{path} is damaged or is no database: {remedy(path.name)}")
    if code == sqlite3.SQLITE_CANTOPEN and _no_room(path.parent):
        code = sqlite3.SQLITE_FULL
    cause = _CAUSES.get(code) or (error.strerror if isinstance(error, OSError) else None) or str(error)
    if not opening:
        return LogUnavailable(f"the log is unavailable: {cause}", at=str(path))
    expected = "a folder with room that may be written"
    if code in _PASSING or (isinstance(error, OSError) and error.errno == errno.ENOSPC):
        return LogUnavailable(f"the data file cannot be opened: {cause}", at=str(path), expected=expected)
    return DataFolderUnusable(f"the data file cannot be opened: {cause}", at=str(path), expected=expected)


def _connected(path: Path, access: str) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?{access}"
    connection = sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA query_only=ON")
        connection.execute("PRAGMA cache_size=-8192")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare_reading(connection: sqlite3.Connection, path: Path, kind: FileKind) -> None:
    found = _stamp(connection)
    if found.empty:
        raise LogUnavailable(f"{kind.name} is not there yet", at=str(path))
    _check(found, path, kind)
    if found.version < kind.version:
        raise LogUnavailable(f"{kind.name} waits to be upgraded by its writer", at=str(path))


@dataclass(frozen=True, slots=True)
class _Stamp:
    application_id: int
    version: int
    empty: bool


def _stamp(connection: sqlite3.Connection) -> _Stamp:
    row = connection.execute(
        "SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version),"
        " NOT EXISTS (SELECT 1 FROM sqlite_master)"
    ).fetchone()
    return _Stamp(row[0], row[1], bool(row[2]))


def _make_or_check(connection: sqlite3.Connection, path: Path, kind: FileKind) -> None:
    found = _stamp(connection)
    if found.empty and found.application_id in (0, kind.application_id):
        _make(connection, kind, hub_id(path.parent))
        return
    _check(found, path, kind)
    _check_hub(connection, path)
    for version in range(found.version, kind.version):
        if version not in kind.upgrades:
            raise DataVersionUnsupported(
                f"{kind.name} was written by an older version of Tidings that this one does not upgrade",
                at=str(path),
                found=version,
                expected=f"version {kind.version}; start the older Tidings, or use another data folder",
            )
        _change(connection, kind, version + 1, kind.upgrades[version])


def _check(found: _Stamp, path: Path, kind: FileKind) -> None:
    if found.application_id != kind.application_id:
        raise DataFolderUnusable(f"{path} is not {kind.name}: {remedy(path.name)}")
    if found.version > kind.version:
        raise DataVersionUnsupported(
            f"{kind.name} was written by a newer version of Tidings",
            at=str(path),
            found=found.version,
            expected=f"version {kind.version} or older; start the newer Tidings, or use another data folder",
        )


def _check_hub(connection: sqlite3.Connection, path: Path) -> None:
    mine, found = hub_id(path.parent), hub_in(connection)
    if mine and found and mine != found:
        raise DataFolderUnusable(f"{path} belongs to another hub ({found}, this one is {mine}): {remedy(path.name)}")


def _make(connection: sqlite3.Connection, kind: FileKind, hub: str) -> None:
    # Page size and vacuum mode can only be chosen before the first page is written; WAL mode writes one.
    for pragma in (f"page_size={PAGE_BYTES}", "auto_vacuum=INCREMENTAL", "journal_mode=WAL", "synchronous=FULL"):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    _change(connection, kind, kind.version, (*kind.schema, "CREATE TABLE hub (id TEXT NOT NULL)"), hub)


def _change(
    connection: sqlite3.Connection, kind: FileKind, version: int, statements: tuple[str, ...], hub: str | None = None
) -> None:
    """All statements and the new version in one transaction: a crash leaves the file as it was."""
    with transaction(connection):
        for statement in statements:
            connection.execute(statement)
        if hub is not None:
            connection.execute("INSERT INTO hub VALUES (?)", (hub,))
        connection.execute(f"PRAGMA application_id={kind.application_id}")
        connection.execute(f"PRAGMA user_version={version}")


def _no_room(folder: Path) -> bool:
    """Whether a file could not be made because the disk is full: SQLite does not tell that from other reasons."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return False
    return found.f_bavail == 0 or (found.f_files > 0 and found.f_favail == 0)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
