"""What the data files say of each other: all are of one hub, and none knows a position beyond the end of the log.

The others are read first and the log last. The log only grows and the others follow it, so this holds in a running hub too.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from tidings.data_files import hub_id, remedy
from tidings.errors import DataFolderUnusable
from tidings.log.sqlite.entries import last_offset
from tidings.log.sqlite.identity import damage_of, forget_damage
from tidings.sqlite.files import hub_in, read_only

LOG, REGISTRY, KEY = "log.db", "registry.db", "hub.key"

_MARKS: Mapping[str, str] = {
    "lanes.db": "SELECT max(upto) FROM routed",
    "duplicates.db": 'SELECT max("offset") FROM mark',
    "delivery-*.db": "SELECT max(upto) FROM (SELECT commands AS upto FROM marks UNION ALL SELECT low_water FROM lanes)",
}
"""File → the newest position that it says something about."""

_STAMP = "SELECT marks FROM revisions ORDER BY revision DESC LIMIT 1"
_LAST_NUMBER = "SELECT max(last) FROM numbers WHERE kind = ?"


class FileFault(NamedTuple):
    """Something that a file says and another one contradicts, and what to do about it."""

    file: str
    what: str
    remedy: str


class FileMarks(NamedTuple):
    """The newest positions and the highest numbers that files speak of, each with the file."""

    positions: Mapping[str, int]
    lane: int = 0
    last_topic: int | None = None
    last_lane: int | None = None


class LogEnd(NamedTuple):
    """How far the log goes, and the highest number of a topic in it."""

    offset: int = 0
    topic: int = 0


def check(folder: Path) -> None:
    """Refuse a folder whose files do not belong together. Raises DataFolderUnusable with every fault in it."""
    found = list(faults(folder))
    if found:
        told = "; ".join(f"{fault.file} {fault.what}" for fault in found)
        ways = " · ".join(dict.fromkeys(fault.remedy for fault in found))
        raise DataFolderUnusable(f"the files in {folder} do not belong together: {told}. What to do: {ways}")


def faults(folder: Path) -> Iterator[FileFault]:
    """Everything that does not fit. Files that cannot be read at all are left to those who open them."""
    yield from _damaged(folder)
    yield from _strangers(folder)
    marks = marks_of(folder)
    end = _log_end(folder)
    yield from _beyond(marks, end)
    if end is not None and end.offset:
        yield from _left_alone(folder, marks, end)


def hub_of_files(folder: Path) -> str:
    """The id of the hub whose files these are, where the folder itself does not say: the log's, or that of any other file."""
    others = sorted(path for path in folder.glob("*.db") if path.name != LOG)
    return next((found for path in (folder / LOG, *others) if (found := _hub_of(path))), "")


def marks_of(folder: Path) -> FileMarks:
    """What the files beside the log know of it."""
    positions: dict[str, int] = {}
    lane = 0
    for path in sorted(folder.glob("*.db")):
        query = next((query for pattern, query in _MARKS.items() if fnmatch(path.name, pattern)), None)
        if query is not None:
            positions[path.name] = _asked(path, query)
        if path.name == "lanes.db":
            lane = _asked(path, "SELECT max(lane) FROM heads")
    registry = folder / REGISTRY
    if not _there(registry, "numbers"):
        return FileMarks(positions, lane)
    positions[REGISTRY] = _stamp(registry)
    return FileMarks(positions, lane, *(_asked(registry, _LAST_NUMBER, kind) for kind in ("topic", "lane")))


def _damaged(folder: Path) -> Iterator[FileFault]:
    """Files in which damage was met. The whole file is read again: the note of a file that was mended is removed."""
    for path in sorted(folder.glob("*.db")):
        if damage_of(path) is None:
            continue
        found = _quick_check(path)
        if found is None:
            forget_damage(path)
        else:
            yield FileFault(path.name, f"is damaged ({found})", remedy(path.name))


def _quick_check(path: Path) -> str | None:
    try:
        with closing(read_only(path)) as connection:
            found = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.Error as error:
        return str(error)
    return None if found == "ok" else found


def _strangers(folder: Path) -> Iterator[FileFault]:
    mine = hub_id(folder)
    for path in sorted(folder.glob("*.db")) if mine else ():
        found = _hub_of(path)
        if found and found != mine:
            yield FileFault(path.name, f"belongs to another hub ({found}, this one is {mine})", remedy(path.name))


def _hub_of(path: Path) -> str:
    try:
        with closing(read_only(path)) as connection:
            return hub_in(connection)
    except sqlite3.Error:
        return ""


def _log_end(folder: Path) -> LogEnd | None:
    """None: there is a file, but nobody can say how far it goes."""
    path = folder / LOG
    if not path.exists():
        return LogEnd()
    try:
        with closing(read_only(path)) as connection:
            if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'entries'").fetchone() is None:
                return LogEnd()
            topic = connection.execute("SELECT max(topic) FROM entries").fetchone()[0]
            return LogEnd(last_offset(connection), topic or 0)
    except sqlite3.Error:
        return None


def _beyond(marks: FileMarks, end: LogEnd | None) -> Iterator[FileFault]:
    ahead = {name: mark for name, mark in marks.positions.items() if end is not None and mark > end.offset}
    if not ahead or end is None:
        return
    name = max(ahead, key=lambda one: ahead[one])
    knows = f"{name} knows positions up to {ahead[name]}"
    state = f"ends at {end.offset}" if end.offset else "is missing or empty"
    yield FileFault(LOG, f"{state}, but {knows}", remedy(LOG))


def _left_alone(folder: Path, marks: FileMarks, end: LogEnd) -> Iterator[FileFault]:
    """What a log with entries cannot do without."""
    if marks.last_topic is None or marks.last_lane is None:
        yield FileFault(REGISTRY, f"is missing or empty, but the log holds events up to {end.offset}", remedy(REGISTRY))
    elif end.topic > marks.last_topic:
        what = f"knows topics up to number {marks.last_topic}, but the log holds events of number {end.topic}"
        yield FileFault(REGISTRY, f"{what}: it is older than the log", remedy(REGISTRY))
    elif marks.lane > marks.last_lane:
        what = f"knows lanes up to number {marks.last_lane}, but lanes.db holds number {marks.lane}"
        yield FileFault(REGISTRY, f"{what}: it is older than the lanes", remedy(REGISTRY))
    if not (folder / KEY).exists():
        yield FileFault(KEY, "is missing, but the log holds events", remedy(KEY))


def _stamp(registry: Path) -> int:
    try:
        with closing(read_only(registry)) as connection:
            row = connection.execute(_STAMP).fetchone()
    except sqlite3.Error:
        return 0
    return max(json.loads(row[0]).values(), default=0) if row else 0


def _there(path: Path, table: str) -> bool:
    return bool(path.exists() and _asked(path, "SELECT count(*) FROM sqlite_master WHERE name = ?", table))


def _asked(path: Path, query: str, *values: str) -> int:
    try:
        with closing(read_only(path)) as connection:
            found = connection.execute(query, values).fetchone()
    except sqlite3.Error:
        return 0
    return int(found[0] or 0)
