"""A small world around delivery: real log, lanes, registry and delivery files in one folder, filled by hand.

The test publishes into the log and routes into lanes itself; `delivering` is the body of the deliver process.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from tests.builders import a_name, a_subscription, a_topic
from tests.polling import until_async
from tests.receivers import Answer, Arrival, Receiver, Script
from tidings.adapters import deliver_adapters
from tidings.clock import Instant, SystemClock
from tidings.config import DeliverSettings, Settings, load
from tidings.delivery.push.process import run
from tidings.delivery.push.records.statuses import LaneSources, Statuses
from tidings.delivery.push.sqlite import SqliteDeliveryReader, SqliteRecords
from tidings.events.attribute_rules import checked
from tidings.events.stored import head_of
from tidings.lanes.sink import Routed
from tidings.lanes.sqlite.block import packed
from tidings.lanes.sqlite.lanes import EmbeddedLanes
from tidings.lanes.sqlite.writer import SqliteLanesReader, SqliteLanesWriter
from tidings.log.commands import Act, Command, encoded
from tidings.log.port import Draft, Retention
from tidings.log.position import LaneNumber, Position, TopicNumber, embedded
from tidings.log.sqlite.reader import SqliteLogReader
from tidings.log.sqlite.writer import SqliteLogWriter
from tidings.observe.part_status import PartStatus
from tidings.registry.model import Pull, Push, Subscription, Topic
from tidings.registry.store import open_writer

T = TypeVar("T")

QUICK = {"retry_first": "20ms", "retry_max": "200ms", "save_interval": "20ms", "connect_timeout": "2s", "attempt_timeout": "5s"}


def quick_settings(folder: Path, environ: Mapping[str, str] = {}, **push: Any) -> Settings:
    """Settings with short waits."""
    return load(environ=environ, flags={"data": str(folder), "push": QUICK | push})


class World:
    """Everything around delivery. Made inside an event loop, closed with `close`."""

    def __init__(self, folder: Path, **push: Any) -> None:
        self.settings = quick_settings(folder, **push)
        self.clock = SystemClock()
        self.log = SqliteLogWriter(folder, self.settings.log)
        self.lanes = SqliteLanesWriter(folder)
        self.registry = open_writer(folder)
        self.reader = SqliteDeliveryReader(folder)
        self.board = PartStatus(folder / "run", "deliver")
        self.topic = self._put(a_topic("orders")).number
        self._commands = 0
        self.last_published = Instant(0)

    def subscribe(self, name: str, url: str, **push: Any) -> LaneNumber:
        """A pushed subscription; its lane."""
        return self._put(a_subscription(name, delivery=Push(url=url, **push))).lane

    def change(self, name: str, url: str, **push: Any) -> None:
        """Another delivery policy for a subscription that is there."""
        self._put(a_subscription(name, delivery=Push(url=url, **push)))

    def retain(self, name: str, url: str, seconds: float, marks: int = 0, **push: Any) -> None:
        """Another retention for events of a subscription above these marks."""
        document = a_subscription(name, delivery=Push(url=url, **push), retention=seconds)
        self.registry.put([document], by="test", at=self.clock.now(), marks=embedded(marks))

    def subscribe_pull(self, name: str) -> LaneNumber:
        return self._put(a_subscription(name, delivery=Pull())).lane

    def unsubscribe(self, name: str) -> None:
        self.registry.delete(Subscription, a_name(name), by="test", at=self.clock.now(), marks={})

    async def publish(
        self,
        count: int,
        *lanes: LaneNumber,
        first: int = 1,
        transport: Mapping[str, str] | None = None,
        keys: int = 1,
        **attributes: Any,
    ) -> Sequence[Position]:
        """Append events with the ids first, first + 1, … and route them into these lanes. The key is the id modulo `keys`."""
        drafts = []
        for n in range(first, first + count):
            named = {"specversion": "1.0", "id": str(n), "source": "/orders", "type": "order.created"}
            context = {**named, "datacontenttype": "application/json", **attributes}
            event = checked(context, b'{"n": %d}' % n, transport=transport)
            drafts.append(Draft(self.topic, self.clock.now(), n % keys, head_of(event), event.data))
        return await self._append(drafts, *lanes)

    async def publish_raw(self, head: bytes, *lanes: LaneNumber) -> Sequence[Position]:
        """Append an entry whatever its head is."""
        return await self._append([Draft(self.topic, self.clock.now(), 0, head, None)], *lanes)

    async def expire(self, before: Instant) -> int:
        """Let retention remove what was published before."""
        return await self.log.trim([Retention(TopicNumber(self.topic), before)], self.lanes.routed())

    async def retire(self) -> None:
        """Retention passes for everything so far: the log has none of it any more, nor have the lanes."""
        await self.expire(Instant(self.clock.now() + 1))
        self.lanes.trim(self.lanes.routed())

    async def command(self, lane: LaneNumber, act: Act, id: str = "", timeout: float = 10.0) -> str:
        """Send a command and wait for its result."""
        self._commands += 1
        command = Command(id or f"c{self._commands}", lane, "test", act)
        await self.log.append([encoded(command, self.clock.now())])
        await until_async(lambda: self.reader.result(command.id) is not None, within=timeout)
        return self.reader.result(command.id) or ""

    @asynccontextmanager
    async def delivering(self, workers: int = 1) -> AsyncIterator[None]:
        """The deliver process, or several of them, in this loop."""
        stop = asyncio.Event()
        settings = replace(self.settings, deliver=DeliverSettings(workers))
        boards = [self.board, *(PartStatus(self.settings.data / "run", f"deliver-{n}") for n in range(1, workers))]
        tasks = [
            asyncio.create_task(run(settings, stop, board, deliver_adapters(settings, n), n)) for n, board in enumerate(boards)
        ]
        try:
            await until_async(lambda: all(board.face().ready for board in boards) or any(task.done() for task in tasks))
            yield
        finally:
            stop.set()
            await asyncio.gather(*tasks)

    async def close(self) -> None:
        await self.log.close()
        self.lanes.close()
        self.registry.close()
        self.reader.close()

    async def _append(self, drafts: Sequence[Draft], *lanes: LaneNumber) -> Sequence[Position]:
        positions = await self.log.append(drafts)
        self.last_published = drafts[-1].at
        offsets = [position.offset for position in positions]
        blocks = [packed(lane, offsets) for lane in sorted(lanes)]
        self.lanes.write(Routed(runs=blocks, scanned=embedded(offsets[-1])))
        return positions

    def _put(self, document: Any) -> Any:
        found = self.registry.put([document], by="test", at=self.clock.now(), marks=embedded(0))[0]
        assert isinstance(found, Topic | Subscription)
        return found


@asynccontextmanager
async def a_world(folder: Path, **push: Any) -> AsyncIterator[World]:
    world = World(folder, **push)
    try:
        yield world
    finally:
        await world.close()


def in_world(folder: Path, scenario: Callable[[World], Coroutine[Any, Any, None]], **push: Any) -> None:
    """Run a scenario in a fresh world, without a hurry but not for ever."""

    async def run() -> None:
        async with asyncio.timeout(240), a_world(folder, **push) as world:
            await scenario(world)

    asyncio.run(run())


@asynccontextmanager
async def a_pushed_lane(world: World, answers: Script = (Answer(),), **push: Any) -> AsyncIterator[tuple[LaneNumber, Receiver]]:
    """A subscription that is being delivered, and who receives."""
    with Receiver(answers) as receiver:
        lane = world.subscribe("billing", receiver.url, **push)
        async with world.delivering():
            yield lane, receiver


def start(folder: Path, **environ: str) -> subprocess.Popen[bytes]:
    """The deliver process as a process of its own, to be killed. `environ`: settings of its own, as TIDINGS_… variables."""
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "tests.delivery.deliver_process", str(folder)]
    return subprocess.Popen(command, cwd=root, env={**os.environ, **environ})


def ids(arrivals: list[Arrival]) -> list[str]:
    """The ids of the events that arrived, in order."""
    return [json.loads(arrival.body)["id"] for arrival in arrivals]


async def final(world: World, lane: LaneNumber, upto: int) -> None:
    """Go on when everything of the lane up to there is final."""
    await until_async(
        lambda: world.reader.lane(lane).low_water.position.offset >= upto and world.reader.lane(lane).open_items == 0
    )


def statuses_of(world: World) -> Statuses:
    """What became of events, read from the world's files."""
    lanes = EmbeddedLanes(SqliteLanesReader(world.settings.data), SqliteLogReader(world.settings.data))
    return Statuses(LaneSources(lanes, lanes, SqliteRecords(world.reader)))


def meanwhile(reading: Coroutine[Any, Any, T]) -> T:
    """What a coroutine returns, for who cannot wait for it. It runs on an event loop of its own."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, reading).result()
