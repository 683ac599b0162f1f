"""Something changes while attempts are on their way, wait for their retry, or wait to be saved: nothing is lost or overtaken."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.builders import a_subscription
from tests.delivery.sse.test_server import Door
from tests.delivery.worlds import World, a_pushed_lane, final, ids, in_world
from tests.polling import until_async
from tests.receivers import Answer, Arrival, Receiver
from tidings.delivery.push.sqlite import SqliteDeliveryStore
from tidings.delivery.push.store import Flush
from tidings.delivery.sse.socket_protocol import TAKEN, Begun, StreamOptions
from tidings.log.commands import CloseBreaker, Rewind
from tidings.log.position import embedded
from tidings.registry.delivery_options import Ordering
from tidings.registry.model import Stream

# ---- an outcome is judged by the policy its attempt was made with


def streamed(world: World, name: str) -> None:
    world.registry.put([a_subscription(name, delivery=Stream())], by="test", at=world.clock.now(), marks={})


def test_attempts_that_fail_after_the_change_to_a_stream_are_not_delivered(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        async with a_pushed_lane(world, [Answer(500, delay=0.7)], tries=5) as (lane, receiver):
            await world.publish(20, lane)
            await asyncio.to_thread(receiver.wait_for, 10)
            streamed(world, "billing")
            await until_async(lambda: world.reader.lane(lane).failed_attempts >= 10)
            assert world.reader.lane(lane).delivered == 0
            door = await Door.at(world, StreamOptions(lane))
            assert await door.next() == Begun()
            assert sorted(map(int, await door.ids(20))) == list(range(1, 21))
            door.writer.write(TAKEN * 20)
            await until_async(lambda: world.reader.lane(lane).delivered == 20)

    in_world(tmp_path, scenario)


def test_an_attempt_that_succeeds_after_the_change_to_a_stream_is_delivered(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        async with a_pushed_lane(world, [Answer(delay=0.7)]) as (lane, receiver):
            await world.publish(3, lane)
            await asyncio.to_thread(receiver.wait_for, 3)
            streamed(world, "billing")
            await final(world, lane, 3)
            assert world.reader.lane(lane).delivered == 3

    in_world(tmp_path, scenario)


# ---- a breaker that opens again while what waited is sent


def posts(receiver: Receiver) -> list[Arrival]:
    return [arrival for arrival in receiver.arrivals if arrival.method == "POST"]


def test_what_fails_while_the_breaker_republishes_is_sent_when_it_is_well_again(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        def script(arrival: Arrival) -> Answer:
            if arrival.method != "POST":
                return Answer()
            number = ids([arrival])[0]
            tried = sum(1 for one in posts(receiver) if ids([one])[0] == number)
            if tried <= 1:
                return Answer(500)
            return Answer(delay=1.5 if number == "1" else 0.0)

        with Receiver(script) as receiver:
            lane = world.subscribe("billing", receiver.url, breaker=True, tries=1, probe_interval=0.1)
            async with world.delivering():
                await world.publish(1, lane)
                await until_async(lambda: len(posts(receiver)) == 2)
                await world.publish(1, lane, first=2)
                await final(world, lane, 2)
                await until_async(lambda: world.reader.lane(lane).state == "active")
        assert ids(posts(receiver)).count("2") == 2
        assert world.reader.lane(lane).delivered == 2

    in_world(tmp_path, scenario)


def test_closing_the_breaker_sends_what_was_held_back(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        up = False

        def script(arrival: Arrival) -> Answer:
            return Answer(200 if up or arrival.method != "POST" else 500)

        with Receiver(script) as receiver:
            lane = world.subscribe("billing", receiver.url, breaker=True, tries=1, probe_interval=0.1)
            async with world.delivering():
                await world.publish(5, lane)
                await until_async(lambda: (b := world.reader.lane(lane).detail.breaker) is not None and b.loops >= 2)
                await world.publish(5, lane, first=6)
                up = True
                assert await world.command(lane, CloseBreaker()) == ""
                await final(world, lane, 10)
                await until_async(lambda: world.reader.lane(lane).state == "active")
        assert world.reader.lane(lane).delivered == 10

    in_world(tmp_path, scenario)


# ---- a batch keeps its members and its place


BATCHES: list[dict[str, Any]] = [
    {"ordering": Ordering.STRICT, "batch_size": 3, "batch_time": 0.2},
    {"preset": "hermes-batch", "batch_size": 3, "batch_time": 0.2},
]


def members(receiver: Receiver) -> list[list[int]]:
    def number(element: dict[str, Any]) -> int:
        return int(element["n"] if "n" in element else element["data"]["n"] if "data" in element else element["message"]["n"])

    return [[number(element) for element in json.loads(arrival.body)] for arrival in receiver.arrivals]


@pytest.mark.parametrize("wishes", BATCHES)
def test_a_batch_that_waits_for_its_retry_keeps_members_and_place_over_a_restart(
    tmp_path: Path, wishes: dict[str, Any]
) -> None:
    async def scenario(world: World) -> None:
        with Receiver([Answer(503), Answer()]) as receiver:
            lane = world.subscribe("billing", receiver.url, **wishes, retry_waits=(1.5,), retry_jitter=0.0)
            async with world.delivering():
                await world.publish(3, lane)
                await until_async(lambda: world.reader.lane(lane).failed_attempts == 3)
                await world.publish(3, lane, first=4)
            async with world.delivering():
                await final(world, lane, 6)
        assert members(receiver) == [[1, 2, 3], [1, 2, 3], [4, 5, 6]]
        assert len({arrival.headers["tidings-batch-id"] for arrival in receiver.arrivals}) == 2

    in_world(tmp_path, scenario)


@pytest.mark.parametrize("wishes", BATCHES)
def test_a_batch_that_waits_for_its_retry_keeps_members_and_place_when_the_policy_changes(
    tmp_path: Path, wishes: dict[str, Any]
) -> None:
    async def scenario(world: World) -> None:
        with Receiver([Answer(503), Answer()]) as receiver:
            lane = world.subscribe("billing", receiver.url, **wishes, retry_waits=(1.0,), retry_jitter=0.0)
            async with world.delivering():
                await world.publish(3, lane)
                await until_async(lambda: world.reader.lane(lane).failed_attempts == 3)
                changed = wishes | {"batch_size": 2}
                world.change("billing", receiver.url, **changed, retry_waits=(1.0,), retry_jitter=0.0, headers={"x-new": "1"})
                await world.publish(3, lane, first=4)
                await final(world, lane, 6)
        assert members(receiver) == [[1, 2, 3], [1, 2, 3], [4, 5], [6]]
        assert receiver.arrivals[1].headers["x-new"] == "1"

    in_world(tmp_path, scenario)


def test_a_batch_whose_lane_sends_single_events_from_now_on_goes_out_first_and_in_order(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with Receiver([Answer(503), Answer()]) as receiver:
            strict = {"ordering": Ordering.STRICT, "retry_waits": (1.0,), "retry_jitter": 0.0}
            lane = world.subscribe("billing", receiver.url, batch_size=3, batch_time=0.2, **strict)
            async with world.delivering():
                await world.publish(3, lane)
                await until_async(lambda: world.reader.lane(lane).failed_attempts == 3)
                world.change("billing", receiver.url, **strict)
                await world.publish(3, lane, first=4)
                await final(world, lane, 6)
        assert ids(receiver.arrivals[1:]) == ["1", "2", "3", "4", "5", "6"]

    in_world(tmp_path, scenario)


# ---- what is final but not saved still holds its line


class SlowDisk:
    """Saves take their time; when the outcome of each entry became durable is noted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
        self.durable: dict[int, float] = {}
        self.waits = 0
        real = SqliteDeliveryStore.save

        def save(store: SqliteDeliveryStore, flush: Flush) -> None:
            offsets = [position.offset for firsts in flush.firsts.values() for position in firsts.positions]
            if offsets:
                self.waits += 1
                time.sleep(seconds)
            real(store, flush)
            for offset in offsets:
                self.durable.setdefault(offset, time.monotonic())

        monkeypatch.setattr(SqliteDeliveryStore, "save", save)


def change(world: World, receiver: Receiver, ordering: Ordering) -> None:
    world.change("billing", receiver.url, ordering=ordering, headers={"x-new": "yes"})


@pytest.mark.parametrize("ordering", [Ordering.STRICT, Ordering.KEY])
def test_a_policy_change_lets_nothing_out_before_the_last_outcome_is_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ordering: Ordering
) -> None:
    async def scenario(world: World) -> None:
        disk = SlowDisk(monkeypatch, 1.0)
        async with a_pushed_lane(world, ordering=ordering) as (lane, receiver):
            await world.publish(3, lane)
            await until_async(lambda: disk.waits == 1)
            change(world, receiver, ordering)
            await final(world, lane, 3)
        _assert_each_waited(receiver, disk)

    in_world(tmp_path, scenario)


def test_a_lane_that_becomes_ordered_waits_for_what_is_final_and_not_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(world: World) -> None:
        disk = SlowDisk(monkeypatch, 1.0)
        async with a_pushed_lane(world) as (lane, receiver):
            await world.publish(1, lane)
            await until_async(lambda: disk.waits == 1)
            change(world, receiver, Ordering.STRICT)
            await world.publish(2, lane, first=2)
            await final(world, lane, 3)
        _assert_each_waited(receiver, disk)

    in_world(tmp_path, scenario)


@pytest.mark.parametrize("ordering", [Ordering.STRICT, Ordering.KEY])
def test_a_rewind_lets_nothing_out_before_the_last_outcome_is_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ordering: Ordering
) -> None:
    async def scenario(world: World) -> None:
        disk = SlowDisk(monkeypatch, 1.0)
        async with a_pushed_lane(world, ordering=ordering) as (lane, receiver):
            await world.publish(4, lane)
            await until_async(lambda: disk.waits == 1)
            await world.command(lane, Rewind(to=embedded(2)))
            await final(world, lane, 4)
        sent = [int(one) for one in ids(receiver.arrivals)]
        assert sent[0] == 1 and sent[-2:] == [3, 4]
        _assert_each_waited(receiver, disk)

    in_world(tmp_path, scenario)


def _assert_each_waited(receiver: Receiver, disk: SlowDisk) -> None:
    """Each event was sent when the outcome of the one before was on disk."""
    for before, one in zip(receiver.arrivals, receiver.arrivals[1:], strict=False):
        assert one.at >= disk.durable[_offset(before)], f"{ids([one])} overtook the outcome of {ids([before])}"


def _offset(arrival: Arrival) -> int:
    return int(ids([arrival])[0])
