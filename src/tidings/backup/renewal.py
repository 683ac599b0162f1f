"""A new log for a hub whose log was lost or damaged: it holds what can still be read, and goes on beyond every position ever given.

Everything else of the hub stays. What the lost log alone held is gone: lanes record it as expired, feeds say so to their readers.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidings.backup.pin_order import LOG
from tidings.clock import Instant
from tidings.data_files import sync_folder
from tidings.errors import Conflict, DataFolderUnusable
from tidings.log.sqlite.entries import LEAP
from tidings.log.sqlite.entries import LOG as LOG_KIND
from tidings.log.sqlite.identity import forget_damage
from tidings.serve import folder as data_folder
from tidings.serve.sqlite_files import faults, marks_of
from tidings.sqlite.files import open_writer, read_only, transaction, translating

DERIVED = "duplicates.db"
"""Made again from the new log: what it says of lost events would swallow them when they are published again."""

_COMPANIONS = ("", "-wal", "-shm")
_PAGE = 500
_LEAF = 4096
"""Offsets that are tried one by one behind a damaged page; a page holds far fewer entries."""

_READ = 'SELECT * FROM entries WHERE "offset" > ? ORDER BY "offset" LIMIT ?'


@dataclass(frozen=True, slots=True)
class Renewed:
    """What came of it. `kept`: entries that could be read. `gaps`: spans of positions, both included, that could not."""

    kept: int
    gaps: Sequence[tuple[int, int]]
    begins: int
    moved_to: str


def renew(folder: Path, now: Instant) -> Renewed:
    """Begin a new log in the folder of a stopped hub. Raises Conflict when the log is in order."""
    if data_folder.version_of(folder) is None:
        raise DataFolderUnusable(f"there is no data of a hub in {folder}")
    with data_folder.held(folder):
        log = folder / LOG
        if log.exists() and not any(fault.file == LOG for fault in faults(folder)):
            raise Conflict(
                f"{log} is in order; a new log is only begun where it was lost or is damaged (`tidings doctor --deep`)"
            )
        known = marks_of(folder)
        fresh = folder / f"{LOG}.new"
        _remove(fresh)
        renewed = _filled(fresh, log, max(known.positions.values(), default=0), known.last_topic or 0)
        moved_to = _moved_away(log, now) if log.exists() else ""
        for companion in _COMPANIONS[1:]:
            (folder / f"{LOG}{companion}").unlink(missing_ok=True)
        fresh.replace(log)
        _remove(folder / DERIVED)
        forget_damage(log)
        sync_folder(folder)
    return Renewed(*renewed, moved_to)


def _filled(fresh: Path, old: Path, known: int, topics: int) -> tuple[int, list[tuple[int, int]], int]:
    """Make the new file: how many entries it holds, what is missing, and after which position it goes on."""
    kept, gaps, newest, removed = 0, list[tuple[int, int]](), known, dict[int, int]()
    with translating(fresh), closing(open_writer(fresh, LOG_KIND, 64 << 20)) as connection:
        connection.execute("PRAGMA wal_autocheckpoint=1000").fetchall()
        if old.exists():
            with suppress(sqlite3.Error), closing(read_only(old)) as source:
                newest = max(newest, _sequence(source))
                for rows, gap in _pages(source, newest):
                    with transaction(connection):
                        connection.executemany("INSERT INTO entries VALUES (?,?,?,?,?,?,?)", rows)
                    kept += len(rows)
                    gaps += [gap] if gap else []
                removed = _removals(source)
        if not kept:
            # Nothing before is there any more, and whoever asks for it is told so.
            removed = dict.fromkeys(range(topics + 1), newest)
        connection.executemany("INSERT INTO removals VALUES (?, ?)", removed.items())
        begins = newest + LEAP
        connection.execute("DELETE FROM sqlite_sequence WHERE name = 'entries'")
        connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('entries', ?)", (begins,))
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return kept, gaps, begins


def _pages(source: sqlite3.Connection, newest: int) -> Iterator[tuple[list[Any], tuple[int, int] | None]]:
    """Entries that can be read, in order, each time with the gap that follows them."""
    after = 0
    while True:
        rows, broken = _readable(source, after)
        after = rows[-1][0] if rows else after
        if not broken:
            yield rows, None
            if not rows:
                return
            continue
        beyond = _beyond_damage(source, after, newest)
        yield rows, (after + 1, (beyond or newest + 1) - 1)
        if beyond is None:
            return
        after = beyond - 1


def _readable(source: sqlite3.Connection, after: int) -> tuple[list[Any], bool]:
    """The next entries, and whether damage came after them."""
    rows: list[Any] = []
    try:
        for row in source.execute(_READ, (after, _PAGE)):
            rows.append(row)
    except sqlite3.DatabaseError:
        return rows, True
    return rows, False


def _beyond_damage(source: sqlite3.Connection, after: int, newest: int) -> int | None:
    """The first offset behind `after` from which something can be read again; None: there is none.

    One by one for as many as a page may hold, then in growing steps and back: positions leap where a log was restored.
    """
    for offset in range(after + 2, min(after + _LEAF, newest) + 1):
        if _reads(source, offset):
            return offset
    low, step = after + _LEAF, 1
    while low + step <= newest:
        if _reads(source, low + step):
            return _first_readable(source, low, low + step)
        step *= 2
    return None


def _first_readable(source: sqlite3.Connection, low: int, high: int) -> int:
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _reads(source, middle) else (middle, high)
    return high


def _reads(source: sqlite3.Connection, offset: int) -> bool:
    """Whether there is something at or behind this offset that can be read."""
    try:
        return source.execute(_READ, (offset - 1, 1)).fetchone() is not None
    except sqlite3.DatabaseError:
        return False


def _sequence(source: sqlite3.Connection) -> int:
    for query in ("SELECT seq FROM sqlite_sequence WHERE name = 'entries'", 'SELECT max("offset") FROM entries'):
        with suppress(sqlite3.DatabaseError):
            row = source.execute(query).fetchone()
            if row and row[0]:
                return int(row[0])
    return 0


def _removals(source: sqlite3.Connection) -> dict[int, int]:
    try:
        return dict(source.execute("SELECT topic, upto FROM removals").fetchall())
    except sqlite3.DatabaseError:
        return {}


def _moved_away(log: Path, now: Instant) -> str:
    target = log.with_name(f"{LOG}.lost-{now // 1_000_000}")
    for companion in _COMPANIONS:
        path = log.with_name(f"{LOG}{companion}")
        if path.exists():
            path.replace(target.with_name(f"{target.name}{companion}"))
    return str(target)


def _remove(path: Path) -> None:
    for companion in _COMPANIONS:
        path.with_name(f"{path.name}{companion}").unlink(missing_ok=True)
