"""The files of a data folder: whose they are, and which of them may be moved away. Small files are written whole or not at all."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

VERSION_FILE = "version.json"

DAMAGED = ".damaged"
"""Ends the name of the note beside a file in which damage was met."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """Files whose names match `pattern`. `then`: what happens after one was moved away; None: it never may be."""

    pattern: str
    then: str | None


_FILES = (
    DataFile("log.db", None),
    DataFile("registry.db", None),
    DataFile("hub.key", None),
    DataFile("lanes.db", "it is written again from the log"),
    DataFile("duplicates.db", "it is written again from the log"),
    DataFile("cursorsets.db", "readers that let the hub keep their cursors begin again"),
    DataFile("log.life", "readers of feeds discover them again"),
    DataFile("delivery-*.db", "everything that its lanes still hold is delivered again"),
)

_NEVER = {
    "log.db": "never move log.db away alone: bring the right one back, restore a backup with `tidings restore`, or begin a new log "
    "with what can still be read of it by `tidings renew-log`",
    "registry.db": "never move registry.db away alone: bring the right one back, or restore a backup with `tidings restore`",
    "hub.key": "never move hub.key away: bring the right one back. If it is lost, put 32 random bytes in its place: "
    "deliveries then get other ids, and sealed secrets have to be written again",
}


def remedy(name: str) -> str:
    """What to do about a file that is damaged or of another hub: whether it may be moved away, and what happens then."""
    if name in _NEVER:
        return _NEVER[name]
    known = next((one for one in _FILES if fnmatch(name, one.pattern)), None)
    if known is None or known.then is None:
        return "restore a backup into a new folder with `tidings restore`"
    return f"stop the hub and move {name} away, with its -wal and -shm: {known.then}"


def hub_id(folder: Path) -> str:
    """The id of the hub that this folder belongs to; empty when the folder does not say."""
    try:
        return str(json.loads((folder / VERSION_FILE).read_text("utf-8")).get("hub", ""))
    except (OSError, ValueError, AttributeError):
        return ""


def write_durably(path: Path, content: bytes) -> None:
    """Write a small file for its owner only. It is there whole or as it was before, also after a power cut."""
    beside = path.with_name(f"{path.name}.new")
    with suppress(FileNotFoundError):
        beside.unlink()
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make names that were added to or replaced in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
