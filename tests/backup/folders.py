"""Small data folders to back up."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from tidings.serve import folder as data_folder


def a_database(path: Path, rows: int = 100) -> Path:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE entries (n INTEGER PRIMARY KEY AUTOINCREMENT, body BLOB)")
        append(connection, rows)
    return path


def append(connection: sqlite3.Connection, rows: int) -> None:
    connection.executemany("INSERT INTO entries (body) VALUES (?)", [(b"x" * 1000,)] * rows)


def count(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("SELECT count(*) FROM entries").fetchone()[0])


def a_folder(path: Path) -> Path:
    data_folder.prepare(path)
    for name in ("log.db", "registry.db", "lanes.db", "delivery-0.db"):
        a_database(path / name)
    (path / "hub.key").write_bytes(b"secret")
    return path
