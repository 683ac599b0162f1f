"""log.db: one table for the entries of all topics, an index per topic, and how far each topic was removed."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from tidings.log.port import Draft
from tidings.sqlite.files import FileKind, transaction

LOG = FileKind(
    name="the log",
    application_id=0x54444C47,
    version=1,
    schema=(
        # AUTOINCREMENT: an offset is never given twice, also after every row was removed.
        """CREATE TABLE entries (
             "offset" INTEGER PRIMARY KEY AUTOINCREMENT, topic INTEGER NOT NULL, at INTEGER NOT NULL,
             key_hash INTEGER NOT NULL, size INTEGER NOT NULL, head BLOB NOT NULL, data BLOB)""",
        # The offset is part of every index entry, so this one gives a topic's entries in order.
        "CREATE INDEX entries_of_topic ON entries (topic)",
        "CREATE TABLE removals (topic INTEGER PRIMARY KEY, upto INTEGER NOT NULL)",
    ),
)

LEAP = 1 << 32
"""How far offsets leap ahead when a log is restored. Else they have no gaps but where entries were removed."""

_ENTRY_OVERHEAD = 64
_COLUMNS = 7
_EXACT = 64
_CHUNKS = (256, 128, 64)
_INSERTS = {n: f"INSERT INTO entries VALUES {','.join(['(?,?,?,?,?,?,?)'] * n)}" for n in (*range(1, _EXACT + 1), *_CHUNKS)}


def log_file(folder: Path) -> Path:
    """The log of a data folder."""
    return folder / "log.db"


def size_of(draft: Draft) -> int:
    """The bytes an entry counts as, in memory and in limits."""
    return len(draft.head) + (len(draft.data) if draft.data is not None else 0) + _ENTRY_OVERHEAD


def last_offset(connection: sqlite3.Connection) -> int:
    """The newest offset ever committed, also when its entry has been removed."""
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'entries'").fetchone()
    return row[0] if row else 0


def count(connection: sqlite3.Connection, after: int, upto: int) -> int:
    """How many entries are in (after, upto], commands included. Looks at none of them: their offsets have no gaps but leaps."""
    first, last = connection.execute(
        """SELECT (SELECT min("offset") FROM entries WHERE "offset" > ? AND "offset" <= ?),
                  (SELECT max("offset") FROM entries WHERE "offset" > ? AND "offset" <= ?)""",
        (after, upto, after, upto),
    ).fetchone()
    if first is None:
        return 0
    if last - first < LEAP:
        return int(last - first + 1)
    middle = (first + last) // 2
    return count(connection, after, middle) + count(connection, middle, upto)


def insert(connection: sqlite3.Connection, drafts: Sequence[Draft], first: int) -> None:
    """Commit these drafts at `first` and the offsets after it, all or none; durable when it returns.

    Many rows go into one statement, because every statement lets go of the interpreter lock and has to get it back from a
    busy event loop: one row a statement made a commit of 64 rows take up to 64 switches.
    """
    values: list[object] = []
    for offset, draft in enumerate(drafts, first):
        values += (offset, draft.topic, draft.at, draft.key_hash, size_of(draft), draft.head, draft.data)
    if len(drafts) in _INSERTS:
        connection.execute(_INSERTS[len(drafts)], values)
        return
    with transaction(connection):
        at = 0
        while at < len(drafts):
            rows = _fitting(len(drafts) - at)
            connection.execute(_INSERTS[rows], values[at * _COLUMNS : (at + rows) * _COLUMNS])
            at += rows


def rewrite_version(connection: sqlite3.Connection) -> None:
    """Commit a page that stays as it was: whatever keeps entries from being committed keeps this as well."""
    connection.execute(f"PRAGMA user_version={LOG.version}")


def _fitting(rows: int) -> int:
    return rows if rows <= _EXACT else next(chunk for chunk in _CHUNKS if chunk <= rows)
