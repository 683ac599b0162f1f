"""Whether a path still leads to the file that was opened, and notes beside files in which damage was met.

SQLite goes on writing into a file that was deleted or replaced, and into one with a damaged page elsewhere. Whoever acknowledges
has to look. Only names are looked at: opening and closing a database file again would drop SQLite's locks on it.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import suppress
from pathlib import Path

from tidings.data_files import DAMAGED, remedy
from tidings.errors import LogUnavailable

_REASON_CHARS = 200


class OpenedFile:
    """The file that a path led to when this was made."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = _identity(path)

    def fault(self) -> str | None:
        """What is wrong with the path now, as a sentence; None: it leads to the same file."""
        now = _identity(self._path)
        if now == self._seen:
            return None
        name = self._path.name
        if now is None:
            return f"{name} is gone from the data folder while the hub runs: bring it back (a disk that is not mounted?)"
        return (
            f"another file took the place of {name} while the hub runs: stop the hub, bring the right one back, start it again"
        )

    def check(self) -> None:
        """Raise LogUnavailable when something is wrong with the path now."""
        fault = self.fault()
        if fault:
            raise LogUnavailable(fault, retry_after=10)


def note_damage(path: Path, error: sqlite3.Error) -> None:
    """Leave a note beside a damaged file, for the processes that have not met the damage themselves."""
    note, found = _note(path), _identity(path)
    with suppress(OSError):
        if found is not None and not note.exists():
            note.write_text(json.dumps({"inode": found[1], "met": str(error)[:_REASON_CHARS]}), "utf-8")


def damage_of(path: Path) -> str | None:
    """The damage that some process met in this very file, as a sentence; None: nobody did."""
    try:
        noted = json.loads(_note(path).read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        noted = {}
    found = _identity(path)
    if found is None or noted.get("inode", found[1]) != found[1]:
        return None
    return f"{path.name} is damaged ({noted.get('met', 'unknown')}): {remedy(path.name)}"


def forget_damage(path: Path) -> None:
    """Remove the note: the file was read from end to end and is in order, or was replaced."""
    with suppress(OSError):
        _note(path).unlink(missing_ok=True)


def _note(path: Path) -> Path:
    return path.with_name(path.name + DAMAGED)


def _identity(path: Path) -> tuple[int, int] | None:
    """Device and inode."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
