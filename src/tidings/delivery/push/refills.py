"""Reads lanes ahead of choosing, each in a task of its own: a store that is slow delays its own lanes only."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence

from tidings.delivery.push.lane.entries import WAITING, Item, Parcel
from tidings.delivery.push.lane.push_lane import PushLane
from tidings.delivery.push.lane.window import Window
from tidings.delivery.push.outcomes import Outcomes
from tidings.delivery.push.request.parcels import Parcels
from tidings.errors import LogUnavailable
from tidings.lanes.port import LanePage, Mark, PageLimit
from tidings.log.position import Position, place_after

logger = logging.getLogger("tidings.delivery")

PAGE_ENTRIES = 200
LAST_ENTRIES = 8
PAGE_BYTES = 1 << 20
"""Bytes of payloads that a lane holds ready, about: there may be thousands of lanes with large events."""

LOW = 16
"""A lane with fewer entries ready, or fewer than may be on their way at once, is read on before it has none."""

REST = 1.0
"""Seconds until a lane that could not be read is read again."""


class Refills:
    """Reads what `choice` asks for. `arrived` is called with the lane when there is something to choose from."""

    def __init__(self, parcels: Parcels, outcomes: Outcomes, arrived: Callable[[PushLane], None]) -> None:
        self._parcels = parcels
        self._outcomes = outcomes
        self._arrived = arrived
        self._tasks: set[asyncio.Task[None]] = set()

    def refill(self, lane: PushLane, window: Window) -> None:
        """Read on in a window."""
        if lane.policy is not None:
            window.reading = True
            self._start(self._refill(lane, window))

    def keep_ahead(self, lane: PushLane) -> None:
        """Read on in the live window before it runs empty."""
        live = lane.state.windows[-1]
        if live.more and not live.reading and len(live.ready) < max(LOW, lane.window):
            self.refill(lane, live)

    def load(self, lane: PushLane, window: Window, items: Sequence[Item]) -> None:
        """Read open items."""
        if lane.policy is not None:
            window.loading = True
            self._start(self._load(lane, window, items))

    async def close(self) -> None:
        """Read no more."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self, reading: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(reading)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _refill(self, lane: PushLane, window: Window) -> None:
        # Policy and epoch belong together: the policy may have changed since somebody asked for this.
        policy, epoch, after = lane.policy, lane.epoch, window.read_to
        if policy is None:
            window.reading = False
            return
        # Whoever sees new entries meanwhile says so again.
        window.more = False
        try:
            page, parcels = await self._parcels.after(lane.number, policy, after, _limit(lane))
            if lane.epoch == epoch:
                self._place(lane, window, after, page, parcels)
        except LogUnavailable as error:
            window.more = True
            await _rest(lane, error)
        except Exception:  # the top of a task: the lane is read again
            window.more = True
            logger.exception("lane %s cannot be read", lane.name)
            await asyncio.sleep(REST)
        finally:
            window.reading = False
        self._arrived(lane)

    def _place(self, lane: PushLane, window: Window, after: Mark, page: LanePage, parcels: Sequence[Parcel]) -> None:
        """Put what was read where it is taken from; note what is gone."""
        state = lane.state
        if page.begin is not None and page.filling > state.filling:
            self._begin_anew(lane, page.filling, page.begin)
            return
        if page.before < after.number:
            logger.warning("lane %s was made anew: its entries are numbered again", lane.name)
            state.renumber(after.number - page.before)
            lane.epoch += 1
            return
        if window is not state.live:
            parcels = [parcel for parcel in parcels if parcel.number <= window.last]
        if parcels:
            window.more = True
            window.ready.extend(parcels)
        elif window is not state.live:
            self._gone(lane, window, window.last, window.last_place)
        elif page.before > after.number and not window.ready:
            self._gone(lane, window, page.before, None)

    def _begin_anew(self, lane: PushLane, filling: int, begin: Mark) -> None:
        """The lane was filled from the log: what was open or read is of the entries that it had before, and is left."""
        lane.state.filling = filling
        self._outcomes.begun_anew(lane, begin)

    def _gone(self, lane: PushLane, window: Window, upto: int, place: Position | None) -> None:
        after = window.place
        missed = lane.state.pass_over(window, upto, place)
        if missed:
            self._outcomes.missed(lane, missed, after, None if place is None else place_after(place))

    async def _load(self, lane: PushLane, window: Window, items: Sequence[Item]) -> None:
        policy, epoch = lane.policy, lane.epoch
        if policy is None:
            window.loading = False
            return
        try:
            parcels = await self._parcels.of(lane.number, policy, items)
            if lane.epoch == epoch:
                for item, parcel in zip(items, parcels, strict=True):
                    if item.stage is WAITING:
                        item.parcel = parcel
        except LogUnavailable as error:
            await _rest(lane, error)
        except Exception:  # the top of a task: the items are read again
            logger.exception("open items of lane %s cannot be read", lane.name)
            await asyncio.sleep(REST)
        finally:
            window.loading = False
        self._arrived(lane)


def _limit(lane: PushLane) -> PageLimit:
    # A lane with a small window needs no long page: memory is shared by all lanes.
    room = max(1, lane.state.room)
    batch = lane.policy.batch.size + 1 if lane.policy is not None and lane.policy.batch is not None else 0
    return PageLimit(min(PAGE_ENTRIES, max(LAST_ENTRIES, int(lane.window) * 2, batch), room), PAGE_BYTES)


async def _rest(lane: PushLane, error: LogUnavailable) -> None:
    logger.warning("lane %s cannot be read: %s", lane.name, error)
    await asyncio.sleep(REST)
