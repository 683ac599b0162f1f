"""What happened since the last save, gathered into one flush; and the loop that saves it in groups."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from tidings.clock import Clock, Instant
from tidings.delivery.push.causes import target_of
from tidings.delivery.push.lane import Item
from tidings.delivery.push.pushing import PushLane
from tidings.delivery.push.store import Applied, Attempted, Burial, DeliveryStore, Firsts, Flush, LaneKey
from tidings.errors import LogUnavailable, tolerating
from tidings.log.position import Marks, Offset

logger = logging.getLogger("tidings.delivery")

TRIM_SLICES = 100

MOST_UNSAVED = 50_000
"""Records that may wait for a save; beyond that no new attempts begin until they are saved."""


class Ledger:
    """Gathers. Everything here is lost in a crash, and then happens again."""

    def __init__(self) -> None:
        self.wanted = asyncio.Event()
        self._touched: dict[LaneKey, PushLane] = {}
        self._attempts: list[Attempted] = []
        self._burials: list[Burial] = []
        self._raised: list[tuple[LaneKey, Offset]] = []
        self._released: list[tuple[LaneKey, Offset]] = []
        self._applied: list[Applied] = []
        self._commands: Marks | None = None
        self._leaving: list[tuple[PushLane, Item]] = []
        self._being_saved: list[tuple[PushLane, Item]] = []
        self.urgent = asyncio.Event()
        self.open_items = 0

    @property
    def full(self) -> bool:
        return len(self._attempts) >= MOST_UNSAVED

    def touch(self, lane: PushLane) -> None:
        """The lane's state changed."""
        if lane.key not in self._touched:
            self._touched[lane.key] = lane
            self.wanted.set()

    def attempted(self, lane: PushLane, record: Attempted) -> None:
        self._attempts.append(record)
        self.touch(lane)

    def buried(self, lane: PushLane, burial: Burial) -> None:
        self._burials.append(burial)
        self.touch(lane)

    def raised(self, lane: PushLane, offset: Offset) -> None:
        """A dead letter is sent again: hidden, its copy kept."""
        self._raised.append((lane.key, offset))
        self.touch(lane)

    def released(self, lane: PushLane, offset: Offset) -> None:
        """A dead letter and its copy are no longer needed."""
        self._released.append((lane.key, offset))
        self.touch(lane)

    def leaving(self, lane: PushLane, item: Item) -> None:
        """An item of an ordered lane is final. Others wait for that to be saved, so it is saved at once."""
        self._leaving.append((lane, item))
        self.touch(lane)
        self.urgent.set()

    def saved(self) -> Sequence[tuple[PushLane, Item]]:
        """What was collected last is durable: the items whose lines may move on."""
        left, self._being_saved = self._being_saved, []
        return left

    def applied(self, command: Applied) -> None:
        self._applied.append(command)
        self.wanted.set()

    def commands_read(self, upto: Marks) -> None:
        self._commands = upto
        self.wanted.set()

    def is_applied(self, command_id: str) -> bool:
        return any(applied.id == command_id for applied in self._applied)

    def collect(self, at: Instant) -> Flush | None:
        """Everything since the last call as one flush; None when there is nothing."""
        if not self.wanted.is_set():
            return None
        self.wanted.clear()
        self.urgent.clear()
        self._being_saved += self._leaving
        self._leaving = []
        flush = Flush(
            lanes=[lane.saved() for lane in self._touched.values()],
            firsts={key: self._firsts_of(lane) for key, lane in self._touched.items() if lane.firsts.offsets},
            attempts=self._attempts,
            burials=self._burials,
            raised=self._raised,
            released=self._released,
            applied=self._applied,
            commands=self._commands,
            at=at,
        )
        for lane in self._touched.values():
            self.open_items += lane.state.size - lane.counted
            lane.counted = lane.state.size
        self._touched, self._commands = {}, None
        self._attempts, self._burials, self._raised, self._released, self._applied = [], [], [], [], []
        return flush

    def _firsts_of(self, lane: PushLane) -> Firsts:
        firsts, lane.firsts = lane.firsts, Firsts()
        if lane.policy is not None:
            firsts.target = target_of(lane.policy.url)
        return firsts


class Saver:
    """Saves what the ledger gathered, on a thread of its own, one flush at a time."""

    def __init__(self, ledger: Ledger, store: DeliveryStore, clock: Clock, interval: float) -> None:
        self._ledger = ledger
        self._store = store
        self._clock = clock
        self._interval = interval
        self._pause = interval
        self._turn = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="delivery-save")
        self._unsaved: Flush | None = None
        self.on_trouble: Callable[[str], None] = lambda reason: None
        self.on_saved: Callable[[], None] = lambda: None

    async def run(self) -> None:
        """Save whenever something happened, at most once an interval; an idle engine sleeps here."""
        while True:
            await self._ledger.wanted.wait()
            if not self._ledger.urgent.is_set():
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._ledger.urgent.wait(), self._pause)
            await self.save()

    async def save(self) -> None:
        """Everything that happened before this call is durable when it returns."""
        async with self._turn:
            # A flush that failed comes first: what happened since builds on it.
            if self._unsaved is not None:
                await self._save_surely()
            if self._collect():
                await self._save_surely()

    async def trim(self, before: Instant) -> None:
        """Remove old records, some slices of them."""
        async with self._turn:
            try:
                for _ in range(TRIM_SLICES):
                    if not await self._on_thread(self._store.trim, before):
                        return
            except LogUnavailable as error:
                logger.warning("%s", error)

    async def close(self, patience: float = 5.0) -> None:
        """Save what there is, if that is possible within `patience` seconds, and end the thread."""
        with tolerating(TimeoutError, doing="the last save of the delivery state"):
            await asyncio.wait_for(self.save(), patience)
        self._thread.shutdown()

    def _collect(self) -> bool:
        began = self._clock.monotonic()
        self._unsaved = self._ledger.collect(self._clock.now())
        # Gathering large states must not take more than a tenth of the loop's time.
        self._pause = max(self._interval, 10 * (self._clock.monotonic() - began))
        return self._unsaved is not None

    async def _save_surely(self) -> None:
        """Try until the flush is saved; meanwhile no new attempts begin."""
        failed = False
        while True:
            try:
                await self._on_thread(self._store.save, self._unsaved)
                break
            except LogUnavailable as error:
                failed = True
                self.on_trouble(str(error))
            await asyncio.sleep(1)
        self._unsaved = None
        if failed:
            self.on_trouble("")
        self.on_saved()

    async def _on_thread(self, call: Callable[..., object], *values: object) -> object:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call, *values)
