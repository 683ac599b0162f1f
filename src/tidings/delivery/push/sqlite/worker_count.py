"""Another number of deliver workers: what belongs to a lane moves to the file of its new owner, before anybody delivers.

A lane's state is copied before it is removed, and a copy that is there already is replaced by a newer one only, so a crash in
between loses nothing. Records may then be there twice; deliveries are not.
"""

from __future__ import annotations

import fcntl
import logging
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tidings.delivery.push.sqlite.schema import (
    ATTEMPT_BYTES,
    ATTEMPT_COLUMNS,
    DELIVERY,
    FIRSTS_BYTES,
    FIRSTS_COLUMNS,
    ITEM_COLUMNS,
    LANE_COLUMNS,
    NUMBER_BITS,
    WAL_BYTES,
    delivery_file,
    delivery_files,
    places,
)
from tidings.sqlite.files import open_writer, transaction, translating
from tidings.sqlite.lock import FileLock

logger = logging.getLogger("tidings.delivery")

_RECORDS = {
    "firsts": ("first", FIRSTS_COLUMNS, "count", FIRSTS_BYTES),
    "attempts": ("number", ATTEMPT_COLUMNS, "1", ATTEMPT_BYTES),
}
_LETTERS = 'lane, partition, "offset", raised, reason, tries, first_at, last_at, head, data'


def reshare(folder: Path, workers: int) -> int:
    """See to it that every lane is in the file of its owner; how many were moved. Cheap when nothing changed.

    Called by every worker at its start: the first one does it. Raises DataFolderUnusable while a worker of another number runs.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _one_at_a_time(folder):
        if not _needed(folder, workers):
            return 0
        with ExitStack() as stack:
            files = _opened(folder, workers, stack)
            _agree_on_commands(files)
            moved = sum(_move(files, source, workers) for source in files)
    if moved:
        logger.info("%d lanes were moved between the files of %d deliver workers", moved, workers)
    return moved


@contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    with (folder / "delivery.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _needed(folder: Path, workers: int) -> bool:
    present = delivery_files(folder)
    # With one worker and no file there is nothing to agree on; with more, the first one makes the files of all.
    if (workers > 1 or present) and any(not delivery_file(folder, worker).exists() for worker in range(workers)):
        return True
    return any(_strangers(path, workers) for path in present)


def _strangers(path: Path, workers: int) -> bool:
    with translating(path):
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            return (
                connection.execute("SELECT 1 FROM lanes WHERE lane % ? != ? LIMIT 1", (workers, _number(path))).fetchone()
                is not None
            )
        finally:
            connection.close()


def _number(path: Path) -> int:
    return int(path.stem.partition("-")[2])


def _opened(folder: Path, workers: int, stack: ExitStack) -> dict[int, sqlite3.Connection]:
    paths = {*delivery_files(folder), *(delivery_file(folder, worker) for worker in range(workers))}
    files = {}
    for path in sorted(paths):
        stack.callback(FileLock(path).release)
        files[_number(path)] = open_writer(path, DELIVERY, WAL_BYTES)
        stack.callback(files[_number(path)].close)
    return files


def _agree_on_commands(files: dict[int, sqlite3.Connection]) -> None:
    """No worker may pass over a command that another had not read yet, nor repeat one: all know all results."""
    marks: dict[int, int] = {}
    applied: set[tuple[str, int, str]] = set()
    known = [dict(one.execute("SELECT partition, commands FROM marks").fetchall()) for one in files.values()]
    for partition in {partition for one in known for partition in one}:
        marks[partition] = min(one[partition] for one in known if partition in one)
    for one in files.values():
        applied.update(one.execute("SELECT id, at, result FROM applied").fetchall())
    for one in files.values():
        with transaction(one):
            one.executemany("INSERT OR REPLACE INTO marks VALUES (?, ?)", marks.items())
            one.executemany("INSERT OR IGNORE INTO applied VALUES (?, ?, ?)", applied)


def _move(files: dict[int, sqlite3.Connection], source: int, workers: int) -> int:
    here = files[source]
    lanes = [lane for (lane,) in here.execute("SELECT DISTINCT lane FROM lanes WHERE lane % ? != ?", (workers, source))]
    for lane in lanes:
        with transaction(files[lane % workers]):
            _copy(files, source, lane % workers, lane)
        with transaction(here):
            _remove(here, lane)
    return len(lanes)


def _copy(files: dict[int, sqlite3.Connection], source: int, target: int, lane: int) -> None:
    here, there = files[source], files[target]
    for row in here.execute(f"SELECT {LANE_COLUMNS} FROM lanes WHERE lane = ?", (lane,)).fetchall():
        newer = there.execute("SELECT 1 FROM lanes WHERE lane = ? AND saved_at > ?", (row[0], row[11]))
        if newer.fetchone() is None:
            there.execute(f"INSERT OR REPLACE INTO lanes ({LANE_COLUMNS}) VALUES ({places(LANE_COLUMNS)})", row)
            there.execute("DELETE FROM items WHERE lane = ?", row[:1])
            items = here.execute(f"SELECT {ITEM_COLUMNS} FROM items WHERE lane = ?", row[:1])
            there.executemany(f"INSERT INTO items ({ITEM_COLUMNS}) VALUES ({places(ITEM_COLUMNS)})", items)
    # A dead letter that moved knows which it was: who tells of dead letters need not tell twice.
    base = source << NUMBER_BITS
    for row in here.execute(f"SELECT {_LETTERS}, ? + number FROM dead_letters WHERE lane = ? ORDER BY number", (base, lane)):
        there.execute(f"INSERT OR IGNORE INTO dead_letters ({_LETTERS}, origin) VALUES ({places(_LETTERS)}, ?)", row)
    for table, (key, columns, count, size) in _RECORDS.items():
        query = f"SELECT {columns}, {count}, {size} FROM {table} WHERE lane = ? ORDER BY {key}"
        for *row, numbers, taken in here.execute(query, (lane,)).fetchall():
            number = there.execute(
                "UPDATE numbers SET next = next + ?, bytes = bytes + ? RETURNING next - ?", (numbers, taken, numbers)
            ).fetchone()[0]
            there.execute(f"INSERT INTO {table} ({key}, {columns}) VALUES (?, {places(columns)})", (number, *row))


def _remove(here: sqlite3.Connection, lane: int) -> None:
    for table in ("lanes", "items", "dead_letters"):
        here.execute(f"DELETE FROM {table} WHERE lane = ?", (lane,))
    for table, (_, _, _, size) in _RECORDS.items():
        gone = here.execute(f"DELETE FROM {table} WHERE lane = ? RETURNING {size}", (lane,)).fetchall()
        here.execute("UPDATE numbers SET bytes = max(0, bytes - ?)", (sum(one for (one,) in gone),))
