"""Pinned views of SQLite files and their copies. A pinned view does not change while others go on writing."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

from tidings.backup.pin_order import LOG, REGISTRY, pin_order
from tidings.errors import DataFolderUnusable, Unavailable
from tidings.log.sqlite.entries import LEAP

Progress = Callable[[int], None]
"""Told how many bytes were done since the last call."""

_PAGES_A_STEP = 512
_TRIES = 50


class Pinned:
    """One database at one moment. Holds a read transaction until it is closed, so its write-ahead file grows meanwhile."""

    def __init__(self, path: Path) -> None:
        self.name = path.name
        try:
            self._connection = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None, timeout=10
            )
            self._connection.execute("BEGIN")
            self._connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            pages, size = (self._connection.execute(f"PRAGMA {word}").fetchone()[0] for word in ("page_count", "page_size"))
        except sqlite3.Error as error:
            raise _unreadable(path, error) from error
        self.bytes = pages * size
        self._page_size = size

    def copy_to(self, target: Path, progress: Progress) -> None:
        """Write the pinned moment to a new file, in steps. Others' commits never make it begin again: the view is pinned."""
        done = 0

        def step(status: int, remaining: int, total: int) -> None:
            nonlocal done
            now = (total - remaining) * self._page_size
            progress(now - done)
            done = now

        try:
            with closing(sqlite3.connect(target, isolation_level=None)) as copy:
                self._connection.backup(copy, pages=_PAGES_A_STEP, progress=step)
        except sqlite3.Error as error:
            raise _unreadable(target, error) from error

    def close(self) -> None:
        self._connection.close()


def pin_all(folder: Path, held: ExitStack) -> list[Pinned]:
    """Pin every database of the folder in the order that loses nothing; released when `held` is closed.

    Registry and log must be of one moment: a topic or a change between the two would be missing in one of them. So the registry
    is looked at again after the log is pinned, and both are pinned anew when it changed.
    """
    names = pin_order(path.name for path in folder.iterdir())
    pinned = [held.enter_context(closing(Pinned(folder / name))) for name in names if name not in (REGISTRY, LOG)]
    pair = [folder / name for name in names if name in (REGISTRY, LOG)]
    return pinned + _pin_pair(pair, folder / REGISTRY, held) if pair else pinned


def _pin_pair(paths: list[Path], registry: Path, held: ExitStack) -> list[Pinned]:
    if not registry.exists():
        return [held.enter_context(closing(Pinned(path))) for path in paths]
    with closing(sqlite3.connect(f"{registry.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)) as watch:
        for _ in range(_TRIES):
            before = watch.execute("PRAGMA data_version").fetchone()
            with ExitStack() as attempt:
                pair = [attempt.enter_context(closing(Pinned(path))) for path in paths]
                if watch.execute("PRAGMA data_version").fetchone() == before:
                    held.push(attempt.pop_all())
                    return pair
    raise Unavailable("the registry changes all the time; try the backup again when it is calmer")


def leap_ahead(log: Path) -> None:
    """Let the log of a restored hub go on far beyond every position the lost hub may have handed out after the backup.

    Otherwise a new event could get the position, and so the delivery id, of one that a subscriber has seen already.
    """
    with closing(sqlite3.connect(log, isolation_level=None)) as connection:
        counted = connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%AUTOINCREMENT%'"
        ).fetchall()
        for (name,) in counted:
            # A table that never had a row is not in the sequence yet.
            if not connection.execute("UPDATE sqlite_sequence SET seq = seq + ? WHERE name = ?", (LEAP, name)).rowcount:
                connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (name, LEAP))


def restamp(path: Path, hub: str) -> None:
    """Let a file belong to this hub."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'hub'").fetchone():
            connection.execute("UPDATE hub SET id = ?", (hub,))


def _unreadable(path: Path, error: sqlite3.Error) -> DataFolderUnusable:
    return DataFolderUnusable(f"the data file cannot be copied: {error}", at=str(path))
