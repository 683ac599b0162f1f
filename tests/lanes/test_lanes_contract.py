"""The contract of lanes over SQLite."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

from tests.contracts.lanes_contract import LanesContract, LaneWorld
from tidings import config
from tidings.lanes.sqlite.lanes import EmbeddedLanes
from tidings.lanes.sqlite.writer import SqliteLanesReader, SqliteLanesWriter
from tidings.log.sqlite.reader import SqliteLogReader
from tidings.log.sqlite.writer import SqliteLogWriter


class TestSqliteLanes(LanesContract):
    @asynccontextmanager
    async def open(self, folder: Path) -> AsyncIterator[LaneWorld]:
        log = SqliteLogWriter(folder, config.load(environ={}).log)
        sink, blocks, events = SqliteLanesWriter(folder), SqliteLanesReader(folder), SqliteLogReader(folder)
        with closing(sink), closing(blocks), closing(events):
            lanes = EmbeddedLanes(blocks, events)
            yield LaneWorld(log.append, sink, lanes, lanes)
        await log.close()
