"""The loop that saves what the ledger gathered, on a thread of its own, one flush at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from tidings.clock import Clock, Instant
from tidings.delivery.push.ledger import Ledger
from tidings.delivery.push.store import DeliveryStore, Flush
from tidings.errors import LogUnavailable, tolerating
from tidings.log.position import LaneNumber

logger = logging.getLogger("tidings.delivery")

TRIM_SLICES = 100


class Saver:
    """Saves. Ordered lanes have a turn of their own before every slice of the rest."""

    def __init__(self, ledger: Ledger, store: DeliveryStore, clock: Clock, interval: float) -> None:
        self._ledger = ledger
        self._store = store
        self._clock = clock
        self._interval = interval
        self._gathering = 0.0
        self._turn = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="delivery-save")
        self._unsaved: Flush | None = None
        self._writing: Future[None] | None = None
        self.on_trouble: Callable[[str], None] = lambda reason: None
        self.on_saved: Callable[[], None] = lambda: None

    async def run(self) -> None:
        """Save whenever something happened: at once where somebody waits for it, the rest once an interval.

        An idle engine sleeps here.
        """
        while True:
            await self._ledger.wanted.wait()
            # Gathering large states must not take more than a tenth of the loop's time.
            pause, self._gathering = max(self._interval, 10 * self._gathering), 0.0
            if not await self._saved_urgently(self._clock.monotonic() + pause):
                await self.save()

    async def _saved_urgently(self, until: float) -> bool:
        """Save what somebody waits for, group after group, until then. Whether that was all there is."""
        while (left := until - self._clock.monotonic()) > 0:
            try:
                # Not `wait_for`: its task would cost two more rounds of a loop that may be busy.
                async with asyncio.timeout(left):
                    await self._ledger.urgent.wait()
            except TimeoutError:
                return False
            await self._save(self._urgent)
            if not self._ledger.wanted.is_set():
                return True
        return False

    async def save(self) -> None:
        """Everything that happened before this call is durable when it returns."""
        await self._save(self._urgent)
        keys = self._ledger.pending()
        while keys:
            await self._save(lambda: self._slice(keys))
            if self._ledger.urgent.is_set():
                await self._save(self._urgent)

    async def _save(self, gather: Callable[[], Flush | None]) -> None:
        async with self._turn:
            # A flush that failed comes first: what happened since builds on it.
            if self._unsaved is not None:
                await self._save_surely()
            began = self._clock.monotonic()
            self._unsaved = gather()
            self._gathering += self._clock.monotonic() - began
            if self._unsaved is not None:
                await self._save_surely()

    def _urgent(self) -> Flush | None:
        return self._ledger.collect_urgent(self._clock.now())

    def _slice(self, keys: list[LaneNumber]) -> Flush | None:
        return self._ledger.collect(keys, self._clock.now())

    async def trim(self, before: Instant) -> None:
        """Remove old records, some slices of them. Saves pass between any two."""
        try:
            for _ in range(TRIM_SLICES):
                async with self._turn:
                    if not await self._on_thread(self._store.trim, before):
                        return
        except LogUnavailable as error:
            logger.warning("%s", error)

    async def close(self, patience: float = 5.0) -> None:
        """Save what there is, if that is possible within `patience` seconds, and end the thread."""
        with tolerating(TimeoutError, doing="the last save of the delivery state"):
            await asyncio.wait_for(self.save(), patience)
        self._thread.shutdown()

    async def _save_surely(self) -> None:
        """Try until the flush is saved; meanwhile no new attempts begin."""
        failed = False
        while True:
            try:
                await self._written(self._unsaved)
                break
            except LogUnavailable as error:
                failed = True
                self.on_trouble(str(error))
            await asyncio.sleep(1)
        self._unsaved = None
        if failed:
            self.on_trouble("")
        self.on_saved()

    async def _written(self, flush: Flush | None) -> None:
        """The flush is on disk. Written once, also where whoever waits for it is interrupted and the next one waits on."""
        assert flush is not None
        if self._writing is None or self._writing.cancelled():
            self._writing = self._thread.submit(self._store.save, flush)
        try:
            await asyncio.wrap_future(self._writing)
        except LogUnavailable:
            self._writing = None
            raise
        self._writing = None

    async def _on_thread(self, call: Callable[..., object], *values: object) -> object:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call, *values)
