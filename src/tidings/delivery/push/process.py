"""The body of the deliver process: opens the files, runs the engine until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tidings.access.gateway_tokens import GatewayKey
from tidings.access.key_file import KeyFile
from tidings.access.secret_box import Box, sealing_key
from tidings.access.secrets import hub_key
from tidings.clock import SECOND, Clock, Instant, LeapWatch, SystemClock
from tidings.config import Settings
from tidings.delivery.push.around import Around
from tidings.delivery.push.commands import Commands
from tidings.delivery.push.egress.endpoints import Endpoints
from tidings.delivery.push.egress.exchange import GuardedExchange
from tidings.delivery.push.egress.reach import Reach
from tidings.delivery.push.egress.sender import Sender
from tidings.delivery.push.engine import Engine
from tidings.delivery.push.lane_owner import owner_of
from tidings.delivery.push.records.dead_letter_retention import LetterSweep
from tidings.delivery.push.request.credential_cache import CredentialCache, Gateway
from tidings.delivery.push.request.credential_sender import CredentialSender
from tidings.delivery.push.request.formats import Formats
from tidings.delivery.push.store import DeliveryStore
from tidings.delivery.sse.stream_server import StreamServer
from tidings.errors import Unavailable, tolerating
from tidings.ids import DeliveryIds
from tidings.lanes.port import Lanes
from tidings.log.commands import CommandStream
from tidings.log.port import EventLog
from tidings.log.wake import WakeListener
from tidings.observe.part_status import PartStatus
from tidings.registry.current import CurrentRegistry
from tidings.registry.rules.credentials import provider_of

logger = logging.getLogger("tidings.delivery")

POLL = 1.0
FILES_POLL = 0.1
BREATH = 0.01
"""Pause after a look, since under load every commit rings; rings meanwhile are kept, and the first one is heard at once."""

PATIENCE = 5.0
TRIM_INTERVAL = 60.0
LETTERS_INTERVAL = 0.25


async def run(settings: Settings, stop: asyncio.Event, board: PartStatus, adapters: DeliverAdapters, number: int = 0) -> None:
    """Deliver the share of worker `number` until `stop` is set; then let what is on its way finish for a while and save."""
    async with AsyncExitStack() as stack:
        parts = await _opened(adapters, stop, board, stack)
        if parts is None:
            return
        worker = Worker(settings, parts, board, SystemClock(), number)
        stack.push_async_callback(worker.close)
        # What is alive now stays alive, and deliveries make hardly a cycle: looking for garbage often is for nothing.
        gc.freeze()
        gc.set_threshold(50_000, 20, 50)
        await worker.run(stop)
        board.not_ready("stopping")
    board.not_ready("stopped")
    board.flush()


class DeliverParts:
    """The adapters that a worker works on, and the formats of doors."""

    def __init__(
        self,
        registry: CurrentRegistry,
        lanes: Lanes,
        commands: CommandStream,
        events: EventLog,
        store: DeliveryStore,
        formats: Formats,
    ) -> None:
        self.registry = registry
        self.lanes = lanes
        self.commands = commands
        self.events = events
        self.store = store
        self.formats = formats


@dataclass(frozen=True, slots=True)
class DeliverAdapters:
    """How a worker opens what it works on.

    `store` is its own. `parts` are readers of what other processes write, closed when the context ends; raises Unavailable while
    a file is not there yet.
    """

    store: Callable[[], DeliveryStore]
    parts: Callable[[DeliveryStore], AbstractContextManager[DeliverParts]]


class Worker:
    """One deliver worker: the engine, and the loops that tell it what happened elsewhere."""

    def __init__(self, settings: Settings, parts: DeliverParts, board: PartStatus, clock: Clock, number: int = 0) -> None:
        push = settings.push
        workers = settings.deliver.workers
        self._settings = settings
        self._parts = parts
        self._board = board
        self._clock = clock
        self._reach = Reach(settings, clock)
        logger.info(self._reach.sentence)
        self._sender = self._made_sender(self._reach.ways)
        ids = DeliveryIds(hub_key(settings.data).reveal())
        around = Around(clock, board, ids, parts.formats, retention=settings.topics.retention)
        around.mine = lambda lane: owner_of(lane, workers) == number
        self._engine = Engine(push, parts.lanes, parts.store, self._sender, around)
        self._commands = Commands(self._engine, parts.store, parts.commands, parts.lanes, clock)
        self._streams = StreamServer(self._engine, clock, settings.sse.max_streams, self._adopt)
        self._letters = LetterSweep(parts.store, parts.events, self._engine.ledger, clock)
        self._number = number
        self._touched = 0

    def _made_sender(self, ways: Endpoints) -> Sender:
        secret = sealing_key(self._settings.access, self._settings.data)
        box, registry = Box(secret), self._parts.registry
        keys = KeyFile(self._settings.data, box, 2 * self._settings.gateway.token_life, self._clock)
        gateway = Gateway(GatewayKey(keys), self._settings.gateway, self._clock)
        held = CredentialCache(
            box, GuardedExchange(ways), lambda name: provider_of(name, registry.snapshot), gateway, self._clock
        )
        return CredentialSender(ways, self._clock, held, box)

    async def run(self, stop: asyncio.Event) -> None:
        """Deliver until `stop` is set."""
        loaded = self._parts.store.load()
        self._touched = (await self._parts.lanes.work(0)).upto
        self._commands.start(loaded.commands)
        self._engine.start(dict(loaded.lanes), self._parts.registry.snapshot)
        loops = (
            self._follow_lanes(),
            self._follow_registry(),
            self._follow_commands(),
            self._send_letters(),
            self._engine.saver.run(),
            self._show(),
            self._trim(),
        )
        await self._streams.start(self._settings.data, self._number)
        tasks: list[asyncio.Task[None]] = [asyncio.create_task(loop) for loop in loops]
        stopped = asyncio.create_task(stop.wait())
        self._board.ready()
        try:
            # A loop that ends has failed: better to end the process, which is started again, than to deliver half.
            await asyncio.wait([*tasks, stopped], return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()
        finally:
            for ending in (*tasks, stopped):
                ending.cancel()
            await asyncio.gather(*tasks, stopped, return_exceptions=True)

    async def close(self) -> None:
        await self._streams.close()
        await self._engine.stop(PATIENCE)
        self._engine.show()
        await self._reach.close()

    async def _follow_lanes(self) -> None:
        async with _listening(self._settings.data, "lanes") as listener:
            while True:
                with _tolerating_unavailable():
                    await self._look()
                await asyncio.sleep(BREATH)
                await listener.wait_async(POLL)

    async def _follow_registry(self) -> None:
        """A change holds for the next attempt, not only when a lane rings or the next poll comes."""
        async with _listening(self._settings.data, "registry") as listener:
            while True:
                began = self._clock.monotonic()
                with _tolerating_unavailable():
                    self._adopt()
                # Many changes one after the other: following them must not take more than a tenth of the loop's time.
                await asyncio.sleep(10 * (self._clock.monotonic() - began))
                await listener.wait_async(POLL)

    def _adopt(self) -> None:
        """Follow the registry."""
        if self._parts.registry.refresh():
            self._engine.adopt(self._parts.registry.snapshot)

    async def _look(self) -> None:
        self._adopt()
        touched = await self._parts.lanes.work(self._touched)
        self._touched = touched.upto
        self._engine.look_at(self._engine.all_lanes() if touched.lost else touched.lanes)

    async def _follow_commands(self) -> None:
        async with _listening(self._settings.data, "log") as listener:
            while True:
                with _tolerating_unavailable():
                    await self._commands.follow(self._parts.registry)
                await asyncio.sleep(BREATH)
                await listener.wait_async(POLL)

    async def _send_letters(self) -> None:
        while True:
            await asyncio.sleep(LETTERS_INTERVAL)
            with _tolerating_unavailable():
                await self._commands.send_letters()

    async def _show(self) -> None:
        while True:
            self._engine.show()
            self._engine.sweep()
            self._board.gauge("tidings_open_streams", self._streams.open)
            self._board.flush()
            await asyncio.sleep(1)

    async def _trim(self) -> None:
        leaps = LeapWatch(self._clock)
        while True:
            await asyncio.sleep(TRIM_INTERVAL)
            with tolerating(Unavailable, doing="the removal of old records"):
                leaps.check()
                await self._letters.sweep([lane for number in self._engine.all_lanes() if (lane := self._engine.lane(number))])
                await self._engine.saver.trim(Instant(self._clock.now() - round(self._settings.push.records * SECOND)))


async def _opened(
    adapters: DeliverAdapters, stop: asyncio.Event, board: PartStatus, stack: AsyncExitStack
) -> DeliverParts | None:
    """The adapters, as soon as their writers have made the files. None: stopped before that."""
    store = adapters.store()
    stack.callback(store.close)
    while not stop.is_set():
        try:
            return stack.enter_context(adapters.parts(store))
        except Unavailable as error:
            board.not_ready(str(error))
            board.flush()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), FILES_POLL)
    return None


@asynccontextmanager
async def _listening(folder: Path, channel: str) -> AsyncIterator[WakeListener]:
    listener = WakeListener(folder, channel)
    try:
        yield listener
    finally:
        listener.close()


@contextmanager
def _tolerating_unavailable() -> Iterator[None]:
    try:
        yield
    except Unavailable as error:
        logger.warning("delivery cannot look for work now: %s", error)
