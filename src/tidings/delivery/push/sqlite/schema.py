"""`delivery-k.db` of deliver worker k: lane states, records, dead letters, applied commands."""

from __future__ import annotations

from pathlib import Path

from tidings.sqlite.files import FileKind

WAL_BYTES = 16 << 20
NUMBER_BITS = 48
"""Bits of a record's number within its file."""

FIRSTS_BYTES = "(150 + length(target) + 22 * count)"
ATTEMPT_BYTES = "(150 + length(target) + length(cause))"
"""About how many bytes a row takes, its share of the indexes included."""

DELIVERY = FileKind(
    name="the delivery state",
    application_id=0x54444456,
    version=5,
    schema=(
        """CREATE TABLE lanes (
             lane INTEGER PRIMARY KEY, state TEXT NOT NULL, body BLOB NOT NULL, low_partition INTEGER NOT NULL,
             low_water INTEGER NOT NULL, open_items INTEGER NOT NULL, next_due INTEGER,
             delivered INTEGER NOT NULL, failed_attempts INTEGER NOT NULL,
             expired INTEGER NOT NULL, last_error TEXT NOT NULL, saved_at INTEGER NOT NULL, detail BLOB NOT NULL,
             counted BLOB NOT NULL, low_number INTEGER NOT NULL)""",
        # Open items that failed or are sent again, by their number in the lane. Those on their first way are in the lane's body.
        """CREATE TABLE items (
             lane INTEGER NOT NULL, number INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (lane, number)) WITHOUT ROWID""",
        "CREATE INDEX lanes_deleted ON lanes (saved_at) WHERE state = 'deleted'",
        # First-try successes: one row per lane and save. Its records are numbered first, first + 1, … first + count - 1.
        # All offsets are in low … high; `bin` is where rows with such offsets are found (bins.py).
        """CREATE TABLE firsts (
             first INTEGER PRIMARY KEY, lane INTEGER NOT NULL, partition INTEGER NOT NULL, count INTEGER NOT NULL,
             upto INTEGER NOT NULL, offsets BLOB NOT NULL, at BLOB NOT NULL, milliseconds BLOB NOT NULL, status BLOB NOT NULL,
             low INTEGER NOT NULL, high INTEGER NOT NULL, bin INTEGER NOT NULL, target TEXT NOT NULL)""",
        "CREATE INDEX firsts_of_lane ON firsts (lane, first)",
        "CREATE INDEX firsts_by_bin ON firsts (lane, partition, bin, low, high)",
        """CREATE TABLE attempts (
             number INTEGER PRIMARY KEY, lane INTEGER NOT NULL, partition INTEGER NOT NULL, "offset" INTEGER NOT NULL,
             state TEXT NOT NULL, tries INTEGER NOT NULL, at INTEGER NOT NULL, status INTEGER, milliseconds REAL,
             cause TEXT NOT NULL, target TEXT NOT NULL, upto INTEGER)""",
        "CREATE INDEX attempts_of_lane ON attempts (lane, number)",
        'CREATE INDEX attempts_by_offset ON attempts (lane, partition, "offset", number, state)',
        "CREATE INDEX attempts_of_ranges ON attempts (lane, partition, number) WHERE upto IS NOT NULL",
        # AUTOINCREMENT: a number that was shown is never given to another dead letter.
        """CREATE TABLE dead_letters (
             number INTEGER PRIMARY KEY AUTOINCREMENT, lane INTEGER NOT NULL, partition INTEGER NOT NULL, "offset" INTEGER NOT NULL,
             raised INTEGER NOT NULL DEFAULT 0, reason TEXT NOT NULL, tries INTEGER NOT NULL, first_at INTEGER NOT NULL,
             last_at INTEGER NOT NULL, head BLOB NOT NULL, data BLOB, origin INTEGER, UNIQUE (lane, partition, "offset"))""",
        "CREATE INDEX dead_letters_of_lane ON dead_letters (lane, raised, number)",
        "CREATE INDEX dead_letters_by_age ON dead_letters (last_at) WHERE raised = 0",
        "CREATE TABLE applied (id TEXT PRIMARY KEY, at INTEGER NOT NULL, result TEXT NOT NULL) WITHOUT ROWID",
        "CREATE INDEX applied_by_age ON applied (at)",
        "CREATE TABLE marks (partition INTEGER PRIMARY KEY, commands INTEGER NOT NULL)",
        # The next record's number, about how many bytes the records take, and the newest that had to go because of them.
        "CREATE TABLE numbers (next INTEGER NOT NULL, bytes INTEGER NOT NULL DEFAULT 0, cut INTEGER NOT NULL DEFAULT 0)",
        "INSERT INTO numbers (next) VALUES (1)",
    ),
)


LANE_COLUMNS = (
    "lane, state, body, low_partition, low_water, open_items, next_due, delivered, failed_attempts, expired, last_error, saved_at, "
    "detail, counted, low_number"
)
ITEM_COLUMNS = "lane, number, body"
FIRSTS_COLUMNS = "lane, partition, count, upto, offsets, at, milliseconds, status, low, high, bin, target"
ATTEMPT_COLUMNS = 'lane, partition, "offset", state, tries, at, status, milliseconds, cause, target, upto'
"""The columns of a lane's state and of its records, without their numbers."""


def places(columns: str) -> str:
    """A question mark for every column."""
    return ", ".join("?" * len(columns.split(",")))


def delivery_file(folder: Path, worker: int = 0) -> Path:
    """The file of one deliver worker of a data folder."""
    return folder / f"delivery-{worker}.db"


def delivery_files(folder: Path) -> list[Path]:
    """The files of all deliver workers that there are or were, in the order of their numbers."""
    found = [path for path in folder.glob("delivery-*.db") if path.stem.partition("-")[2].isdigit()]
    return sorted(found, key=lambda path: int(path.stem.partition("-")[2]))
