"""Facts about single events, over the files of all workers. Reading takes milliseconds, so a thread does it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence

from tidings.clock import Instant
from tidings.delivery.push.lane.state import LaneState
from tidings.delivery.push.reader import DeliveryRecord
from tidings.delivery.push.records.port import LaneStanding, Last, RecordsKept
from tidings.delivery.push.sqlite import facts
from tidings.delivery.push.sqlite.reader import SqliteDeliveryReader
from tidings.log.position import EMBEDDED, START, LaneNumber, Marks, Offset, Position

NARROW, WIDE = 1024, 1 << 40
"""Offsets that are looked at in one go for what is recorded: few where many are, more where they are rare."""


class SqliteRecords:
    """`RecordsReader` on the files of delivery."""

    def __init__(self, files: SqliteDeliveryReader) -> None:
        self._files = files

    async def standing(self, lane: LaneNumber) -> LaneStanding:
        """See `RecordsReader.standing`."""
        return await asyncio.to_thread(self._standing, lane)

    async def history(self, lane: LaneNumber, position: Position, limit: int) -> Sequence[DeliveryRecord]:
        """See `RecordsReader.history`."""
        return await asyncio.to_thread(self._history, lane, position, limit)

    async def last_of(self, lane: LaneNumber, positions: Sequence[Position]) -> Mapping[Position, Last]:
        """See `RecordsReader.last_of`."""
        return await asyncio.to_thread(self._last_of, lane, positions)

    async def recorded(self, lane: LaneNumber, upto: Marks, limit: int) -> Sequence[tuple[Position, Last]]:
        """See `RecordsReader.recorded`."""
        return await asyncio.to_thread(self._recorded, lane, upto.get(EMBEDDED, START), limit)

    async def noted(self, lane: LaneNumber, upto: Marks, states: Collection[str], limit: int) -> Sequence[Position]:
        """See `RecordsReader.noted`."""
        return await asyncio.to_thread(self._noted, lane, upto.get(EMBEDDED, START), states, limit)

    async def ranges(self, lane: LaneNumber) -> Sequence[DeliveryRecord]:
        """See `RecordsReader.ranges`."""
        return await asyncio.to_thread(self._ranges, lane)

    async def kept(self) -> RecordsKept:
        """See `RecordsReader.kept`."""
        return await asyncio.to_thread(self._kept)

    def _standing(self, lane: LaneNumber) -> LaneStanding:
        found = [one for file in self._files.all() if (one := file.standing(lane)) is not None]
        return max(found, key=lambda one: one[0])[1] if found else LaneStanding("active", LaneState())

    def _history(self, lane: LaneNumber, position: Position, limit: int) -> Sequence[DeliveryRecord]:
        key = (lane, position.partition)
        found = [one for file in self._files.all() for one in facts.history(file.rows, file.base, key, position.offset, limit)]
        return sorted(found, key=facts.age, reverse=True)[:limit]

    def _last_of(self, lane: LaneNumber, positions: Sequence[Position]) -> Mapping[Position, Last]:
        offsets = {position.offset for position in positions}
        found = self._between(lane, min(offsets) - 1, max(offsets) + 1) if offsets else {}
        return {Position(EMBEDDED, offset): last for offset, last in found.items() if offset in offsets}

    def _recorded(self, lane: LaneNumber, upto: Offset, limit: int) -> Sequence[tuple[Position, Last]]:
        found: list[tuple[Position, Last]] = []
        high, width = upto + 1, NARROW
        while high > 1 and len(found) < limit:
            low = max(0, high - width)
            some = self._between(lane, low, high)
            found += [(Position(EMBEDDED, offset), some[offset]) for offset in sorted(some, reverse=True)]
            width = min(WIDE, width * 4) if len(some) < NARROW // 4 else NARROW
            high = low + 1
        return found[:limit]

    def _noted(self, lane: LaneNumber, upto: Offset, states: Collection[str], limit: int) -> Sequence[Position]:
        key, below = (lane, EMBEDDED), Offset(upto + 1)
        found = {offset for file in self._files.all() for offset in facts.noted(file.rows, key, below, states, limit)}
        return [Position(EMBEDDED, offset) for offset in sorted(found, reverse=True)[:limit]]

    def _ranges(self, lane: LaneNumber) -> Sequence[DeliveryRecord]:
        key = (lane, EMBEDDED)
        found = [one for file in self._files.all() for one in facts.ranges(file.rows, file.base, key)]
        return sorted(found, key=facts.age, reverse=True)

    def _kept(self) -> RecordsKept:
        found = [file.kept() for file in self._files.all()]
        return RecordsKept(max((one.cut for one in found), default=Instant(0)), sum(one.bytes for one in found))

    def _between(self, lane: LaneNumber, above: int, below: int) -> dict[Offset, Last]:
        found: dict[Offset, Last] = {}
        key = (lane, EMBEDDED)
        for file in self._files.all():
            more = facts.last_between(file.rows, file.base, key, Offset(above), Offset(below))
            facts.newest_wins(found, more.items())
        return found
