"""When open items are due: one heap for all lanes, one timer of the event loop."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from itertools import count

from tidings.clock import SECOND, Clock, Instant
from tidings.delivery.push.lane import Item
from tidings.delivery.push.pushing import PushLane


class Timers:
    """Calls `due(lane, item)` when an item's time has come. Items that moved or closed meanwhile are passed over."""

    def __init__(self, clock: Clock, due: Callable[[PushLane, Item], None]) -> None:
        self._clock = clock
        self._due = due
        self._heap: list[tuple[float, int, Instant, PushLane, Item]] = []
        self._numbers = count()
        self._handle: asyncio.TimerHandle | None = None
        self._closed = False

    def add(self, lane: PushLane, item: Item, longest: float) -> None:
        """Wait for the item's due time, but never longer than `longest` seconds: the machine's clock may have been set back."""
        delay = min(max(0.0, (item.due - self._clock.now()) / SECOND), longest)
        when = self._clock.monotonic() + delay
        heapq.heappush(self._heap, (when, next(self._numbers), item.due, lane, item))
        if self._heap[0][0] == when:
            self._arm()

    def close(self) -> None:
        self._closed = True
        if self._handle is not None:
            self._handle.cancel()

    def _arm(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        if self._heap and not self._closed:
            delay = max(0.0, self._heap[0][0] - self._clock.monotonic())
            self._handle = asyncio.get_running_loop().call_later(delay, self._fire)

    def _fire(self) -> None:
        self._handle = None
        now = self._clock.monotonic()
        while self._heap and self._heap[0][0] <= now:
            _, _, due, lane, item = heapq.heappop(self._heap)
            if item.due == due and not item.sending and lane.state.holds(item):
                self._due(lane, item)
        self._arm()
