"""The log contract over SQLite."""

from __future__ import annotations

from pathlib import Path

from tests.contracts.log_contract import LogContract
from tests.log.sqlite.opening import open_writer
from tidings.log.port import LogReader, LogWriter
from tidings.log.sqlite.reader import SqliteLogReader


class TestSqliteLog(LogContract):
    opener = "tests.log.sqlite.opening:open_writer"

    def open_writer(self, folder: Path) -> LogWriter:
        return open_writer(folder)

    def open_reader(self, folder: Path) -> LogReader:
        return SqliteLogReader(folder)
