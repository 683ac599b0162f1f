"""Opens the SQLite log with small, machine-independent settings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from tidings.config import LogSettings, load
from tidings.log.sqlite.writer import SqliteLogWriter


def log_settings(**changes: Any) -> LogSettings:
    """The defaults, without a demand on this machine's disk."""
    return replace(load(environ={}).log, **{"disk_reserve": 0, **changes})


def open_writer(folder: Path, **changes: Any) -> SqliteLogWriter:
    return SqliteLogWriter(folder, log_settings(**changes))
