"""`delivery-k.db` of deliver worker k: lane states, records, dead letters, applied commands."""

from __future__ import annotations

from pathlib import Path

from tidings.log.sqlite.files import FileKind

WAL_BYTES = 16 << 20

DELIVERY = FileKind(
    name="the delivery state",
    application_id=0x54444456,
    version=2,
    schema=(
        """CREATE TABLE lanes (
             lane INTEGER NOT NULL, partition INTEGER NOT NULL, state TEXT NOT NULL, body BLOB NOT NULL, low_water INTEGER NOT NULL,
             open_items INTEGER NOT NULL, next_due INTEGER, delivered INTEGER NOT NULL, failed_attempts INTEGER NOT NULL,
             expired INTEGER NOT NULL, last_error TEXT NOT NULL, saved_at INTEGER NOT NULL, detail BLOB,
             PRIMARY KEY (lane, partition)) WITHOUT ROWID""",
        "CREATE INDEX lanes_deleted ON lanes (saved_at) WHERE state = 'deleted'",
        # First-try successes: one row per lane and save. Its records are numbered first, first + 1, … first + count - 1.
        """CREATE TABLE firsts (
             first INTEGER PRIMARY KEY, lane INTEGER NOT NULL, partition INTEGER NOT NULL, count INTEGER NOT NULL,
             upto INTEGER NOT NULL, offsets BLOB NOT NULL, at BLOB NOT NULL, milliseconds BLOB NOT NULL, status BLOB NOT NULL)""",
        "CREATE INDEX firsts_of_lane ON firsts (lane, first)",
        """CREATE TABLE attempts (
             number INTEGER PRIMARY KEY, lane INTEGER NOT NULL, partition INTEGER NOT NULL, "offset" INTEGER NOT NULL,
             state TEXT NOT NULL, tries INTEGER NOT NULL, at INTEGER NOT NULL, status INTEGER, milliseconds REAL,
             cause TEXT NOT NULL)""",
        "CREATE INDEX attempts_of_lane ON attempts (lane, number)",
        # AUTOINCREMENT: a number that was shown is never given to another dead letter.
        """CREATE TABLE dead_letters (
             number INTEGER PRIMARY KEY AUTOINCREMENT, lane INTEGER NOT NULL, partition INTEGER NOT NULL, "offset" INTEGER NOT NULL,
             raised INTEGER NOT NULL DEFAULT 0, reason TEXT NOT NULL, tries INTEGER NOT NULL, first_at INTEGER NOT NULL,
             last_at INTEGER NOT NULL, head BLOB NOT NULL, data BLOB, UNIQUE (lane, partition, "offset"))""",
        "CREATE INDEX dead_letters_of_lane ON dead_letters (lane, raised, number)",
        "CREATE INDEX dead_letters_by_age ON dead_letters (last_at) WHERE raised = 0",
        "CREATE TABLE applied (id TEXT PRIMARY KEY, at INTEGER NOT NULL, result TEXT NOT NULL) WITHOUT ROWID",
        "CREATE INDEX applied_by_age ON applied (at)",
        "CREATE TABLE marks (partition INTEGER PRIMARY KEY, commands INTEGER NOT NULL)",
        "CREATE TABLE numbers (next INTEGER NOT NULL)",
        "INSERT INTO numbers VALUES (1)",
    ),
    upgrades={1: ("ALTER TABLE lanes ADD COLUMN detail BLOB",)},
)


def delivery_file(folder: Path, worker: int = 0) -> Path:
    """The file of one deliver worker of a data folder."""
    return folder / f"delivery-{worker}.db"


def delivery_files(folder: Path) -> list[Path]:
    """The files of all deliver workers that there are or were, in the order of their numbers."""
    found = [path for path in folder.glob("delivery-*.db") if path.stem.partition("-")[2].isdigit()]
    return sorted(found, key=lambda path: int(path.stem.partition("-")[2]))
