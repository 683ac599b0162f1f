"""The embedded log for whoever answers requests: what may take more than a moment is read in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from tidings.clock import Instant
from tidings.log.port import Between, Entry, Limit, Page, Stretch
from tidings.log.position import Marks, Position, TopicNumber
from tidings.log.sqlite.reader import SqliteLogReader


class SqliteEventLog:
    """`EventLog` on log.db."""

    def __init__(self, log: SqliteLogReader) -> None:
        self._log = log

    async def read(self, topic: TopicNumber, after: Marks, limit: Limit) -> Page:
        """See `EventLog.read`."""
        return await asyncio.to_thread(self._log.read, topic, after, limit)

    async def newest(self, topic: TopicNumber, between: Between, limit: Limit) -> Sequence[Entry]:
        """See `EventLog.newest`."""
        return await asyncio.to_thread(self._log.newest, topic, between, limit)

    async def fetch(self, positions: Sequence[Position]) -> Mapping[Position, Entry]:
        """See `EventLog.fetch`."""
        return await asyncio.to_thread(self._log.fetch, positions) if positions else {}

    async def ends(self) -> Marks:
        """See `EventLog.ends`."""
        return self._log.ends()

    async def before(self, instant: Instant) -> Marks:
        """See `EventLog.before`."""
        return await asyncio.to_thread(self._log.before, instant)

    async def stretch(self, between: Between) -> Stretch:
        """See `EventLog.stretch`."""
        return await asyncio.to_thread(self._stretch, between)

    def _stretch(self, between: Between) -> Stretch:
        first = self._log.scan(*between, Limit(entries=1)).entries
        return Stretch(self._log.count(*between), first[0].at if first else None)

    async def removed(self, topic: TopicNumber) -> Marks:
        """See `EventLog.removed`."""
        return self._log.removed(topic)
