"""Projected bodies leave lanes.db with the entries of their topic; lanes of topics that are kept longer go on as before."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.builders import a_subscription, a_topic
from tests.delivery.worlds import quick_settings
from tests.pipeline.world import World
from tests.polling import until, until_async
from tests.receivers import Receiver
from tidings.adapters import deliver_adapters
from tidings.clock import SECOND, ManualClock, SystemClock
from tidings.delivery.push.process import run
from tidings.delivery.push.sqlite import SqliteDeliveryReader
from tidings.ingest.retention import GRACE, RetentionSweep
from tidings.lanes.sqlite.lanes import EmbeddedLanes
from tidings.log.position import LaneNumber, Offset
from tidings.log.sqlite.reader import SqliteLogReader
from tidings.observe.part_status import PartStatus
from tidings.pipeline.housekeeping import Housekeeping
from tidings.registry.fenced_changes import FencedChanges
from tidings.registry.model import ProjectionText, Push

pytestmark = pytest.mark.spark

SHORT = 60.0
LONG = 30 * 86400.0


def test_a_topic_that_is_kept_longer_does_not_keep_the_bodies_of_others(tmp_path: Path, spark: SparkSession) -> None:
    world = World(tmp_path)
    with closing(world), Receiver() as long, Receiver() as short:
        for name, seconds, receiver in (("long", LONG, long), ("short", SHORT, short)):
            world.put(a_topic(name, retention=seconds))
            projection = ProjectionText(mode="exclude", paths=("secret",))
            world.put(a_subscription(name, name, projection=projection, delivery=Push(url=receiver.url)))
        for n in range(20):
            world.publish({"n": n, "secret": "s"}, topic=1 + n % 2)
        world.start(spark)
        world.wait_routed(20)
        world.stop()
        assert bodies_in(tmp_path) == list(range(1, 21))

        assert pass_by(world, SHORT + GRACE + 5) == 10
        tidy_until(world, list(range(1, 21, 2)))
        assert (len(world.lane(1)), len(world.lane(2))) == (10, 10)

        asyncio.run(deliver(tmp_path, long))
        assert sorted(json.loads(one.body)["data"]["n"] for one in long.arrivals) == list(range(0, 20, 2))
        assert all(b"secret" not in one.body for one in long.arrivals)
        assert short.arrivals == []

        assert pass_by(world, LONG + GRACE + 5) == 10
        tidy_until(world, [])
        assert (world.lane(1), world.lane(2)) == ([], [])


def pass_by(world: World, seconds: float) -> int:
    """The api's own sweep at a later time; how many entries went."""
    clock = ManualClock(SystemClock().now() + int(seconds * SECOND))
    lanes = EmbeddedLanes(world.lanes, SqliteLogReader(world.settings.data))
    changes = FencedChanges(world._log, world._registry, lambda: None)
    sweep = RetentionSweep(world._log, lanes, world._registry, changes, world.settings.topics.retention, clock)
    return world._runner.run(sweep.sweep(world._registry.snapshot()))


def tidy_until(world: World, left: list[int]) -> None:
    """The pipeline's housekeeping, until only the bodies at these offsets are left."""
    tidying = Housekeeping(world.parts.lanes, world.parts.source, world.parts.log)

    def tidied() -> bool:
        tidying.step(time.monotonic())
        return bodies_in(world.data) == left

    until(tidied)


async def deliver(folder: Path, receiver: Receiver) -> None:
    """The deliver process, until all there is has arrived and the rest is known to be gone."""
    stop, states = asyncio.Event(), SqliteDeliveryReader(folder)
    delivering = asyncio.create_task(
        run(quick_settings(folder), stop, PartStatus(folder / "run", "deliver"), deliver_adapters(quick_settings(folder)))
    )
    try:
        await until_async(lambda: len(receiver.arrivals) == 10)
        await until_async(lambda: states.lane(LaneNumber(2)).expired == 10)
    finally:
        stop.set()
        await delivering
        states.close()


def bodies_in(folder: Path) -> list[Offset]:
    """The offsets of all bodies in the file."""
    with closing(sqlite3.connect(folder / "lanes.db")) as file:
        return [offset for (offset,) in file.execute('SELECT "offset" FROM bodies ORDER BY "offset"')]
