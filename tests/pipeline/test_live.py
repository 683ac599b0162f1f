"""Following the log: changes of mode, a task that dies or hangs, changes of the registry, strangers at the driver's port."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.pipeline.world import World
from tests.polling import until
from tidings.log.ranges import Range, RangeReader
from tidings.pipeline import live
from tidings.pipeline.route import Routing, route_range
from tidings.pipeline.routed_rows import RoutedRow

pytestmark = pytest.mark.spark


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    built = World(tmp_path)
    yield built
    built.close()


def test_routing_catches_up_in_parallel_and_is_live_again(tmp_path: Path, spark: SparkSession) -> None:
    with closing(World(tmp_path, pipeline={"catch_up_above": 500, "catch_up_until": 100})) as world:
        _catch_up_and_follow(world, spark)


def _catch_up_and_follow(world: World, spark: SparkSession) -> None:
    world.topic()
    world.subscribe("even", "n in (0, 2, 4)")
    numbers = [n % 5 for n in range(3000)]
    offsets = world.publish(*({"n": n} for n in numbers))
    world.start(spark)
    until(lambda: world.live)
    assert world.routed() >= offsets[-1] - 100
    for _ in range(3):
        offsets += world.publish(*({"n": n % 5} for n in range(2000)))
        numbers += [n % 5 for n in range(2000)]
    world.wait_routed(offsets[-1])
    wanted = [offset for n, offset in zip(numbers, offsets, strict=True) if n in (0, 2, 4)]
    until(lambda: world.live)
    more = world.publish({"n": 4})
    world.wait_routed(more[-1])
    assert world.lane(1) == wanted + more


def test_a_worker_that_is_killed_while_it_follows_is_replaced_and_nothing_is_lost_or_twice(
    world: World, spark: SparkSession, tmp_path: Path
) -> None:
    world.topic()
    world.subscribe("all", None)
    world.start(spark, partial(notes_its_worker, str(tmp_path / "worker")))
    offsets = world.publish({"n": 0})
    world.wait_routed(offsets[-1])
    for n in range(3):
        os.kill(int((tmp_path / "worker").read_text()), 9)
        offsets += world.publish({"n": n})
        world.wait_routed(offsets[-1], within=60)
    assert world.lane(1) == offsets
    assert world.asides() == []


def test_a_task_that_hangs_while_the_log_grows_is_replaced(
    world: World, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "STUCK", 2.0)
    world.topic()
    world.subscribe("all", None)
    world.start(spark, partial(hangs_once, str(tmp_path / "hung")))
    offsets = world.publish({"n": 0}, {"n": 1})
    world.wait_routed(offsets[-1], within=60)
    assert (tmp_path / "hung").exists()
    assert world.lane(1) == offsets


def test_a_change_is_in_force_for_every_event_published_after_it(world: World, spark: SparkSession) -> None:
    world.topic()
    world.subscribe("picky", "n = 0")
    world.start(spark)
    until(lambda: world.live)
    expected = []
    for n in range(1, 20):
        world.subscribe("picky", f"n = {n}")
        offsets = world.publish(*({"n": one} for one in range(n - 1, n + 2)))
        expected.append(offsets[1])
    world.wait_routed(offsets[-1])
    assert world.lane(1) == expected


def test_stopping_takes_less_than_the_patience_of_a_supervisor(world: World, spark: SparkSession) -> None:
    world.topic()
    world.start(spark)
    until(lambda: world.live)
    world.stop()
    assert list(spark.sparkContext.statusTracker().getActiveJobsIds()) == []


def test_a_stranger_at_the_drivers_port_is_sent_away(
    world: World, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    ports: list[int] = []
    create = socket.create_server

    def created(address: tuple[str, int], **more: int) -> socket.socket:
        made = create(address, **more)
        ports.append(made.getsockname()[1])
        stranger = socket.create_connection(("127.0.0.1", ports[-1]))
        stranger.sendall(b"\x05\x00\x00\x00hello")
        return made

    monkeypatch.setattr(live.socket, "create_server", created)
    world.topic()
    world.subscribe("all", None)
    world.start(spark)
    offsets = world.publish({"n": 1})
    world.wait_routed(offsets[-1], within=60)
    assert world.lane(1) == offsets
    assert ports


def notes_its_worker(file: str, routing: Routing, reader: RangeReader, wanted: Range, budget: int) -> Iterator[RoutedRow]:
    Path(file).write_text(str(os.getpid()))
    return route_range(routing, reader, wanted, budget)


def hangs_once(file: str, routing: Routing, reader: RangeReader, wanted: Range, budget: int) -> Iterator[RoutedRow]:
    if not Path(file).exists():
        Path(file).touch()
        time.sleep(600)
    return route_range(routing, reader, wanted, budget)
