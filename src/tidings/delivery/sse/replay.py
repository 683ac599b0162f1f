"""What a resumed stream asks for once more: everything after its last entry, up to where the lane was when it came back."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from tidings.clock import Clock
from tidings.delivery.push.engine import Engine
from tidings.delivery.push.lane.entries import EXPIRED, Item, ItemStage, Parcel
from tidings.delivery.push.lane.push_lane import PushLane
from tidings.errors import LogUnavailable
from tidings.lanes.port import PageLimit
from tidings.log.position import Position

logger = logging.getLogger("tidings.delivery")

PAGE = PageLimit(entries=64, bytes=1 << 20)
LOOK_AGAIN = 1.0


class Replay:
    """Entries of a lane after one place, whatever became of them. What is beyond the cursor comes by itself."""

    def __init__(self, lane: PushLane, engine: Engine, clock: Clock, after: Position) -> None:
        self._lane = lane
        self._engine = engine
        self._clock = clock
        self._after = after
        self._until = lane.state.live.cursor
        self._ready: deque[Parcel] = deque()
        self._reading: asyncio.Task[None] | None = None
        self.over = not self._until

    def next(self) -> tuple[Item | None, Parcel] | None:
        """The next entry; with its item, which is being sent then, if it is open. None: it has to be read, or there is none."""
        while self._ready:
            parcel = self._ready.popleft()
            self._after = parcel.position
            self.over = self.over or parcel.number >= self._until
            item = self._lane.state.item_at(parcel.number)
            if item is not None and item.stage is ItemStage.SENDING:
                continue
            fault = parcel.fault or (EXPIRED if parcel.until <= self._clock.now() else "")
            if not fault:
                if item is not None:
                    item.parcel = parcel
                    self._lane.state.begin([item])
                return item, parcel
            if item is not None:
                item.parcel = parcel
                self._engine.set_aside(self._lane, item, fault)
        return None

    def read(self, arrived: Callable[[], None]) -> None:
        """Read on, if nobody does; `arrived` is called afterwards."""
        if self._reading is None or self._reading.done():
            self._reading = asyncio.get_running_loop().create_task(self._read(arrived))

    async def _read(self, arrived: Callable[[], None]) -> None:
        policy, lane = self._lane.policy, self._lane.number
        if policy is None:
            return
        try:
            parcels = await self._engine.parcels.beyond(lane, policy, self._after, PAGE)
        except LogUnavailable as error:
            logger.warning("a stream cannot be read on: %s", error)
            await asyncio.sleep(LOOK_AGAIN)
        else:
            self._ready.extend(parcel for parcel in parcels if parcel.number <= self._until)
            self.over = not self._ready
        arrived()
