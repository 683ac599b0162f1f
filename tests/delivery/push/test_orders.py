"""Order, rates, delays and pauses, as a receiver sees them."""

from __future__ import annotations

import asyncio
import json
import random
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.delivery.worlds import World, a_pushed_lane, final, ids, in_world
from tests.polling import until_async
from tests.receivers import Answer, Arrival, Receiver
from tidings.log.commands import Activate, Disable, Enable, Rewind, Suspend
from tidings.log.position import embedded
from tidings.registry.delivery_options import Ordering


def number_of(arrival: Arrival) -> int:
    return int(json.loads(arrival.body)["id"])


def flaky(seed: int = 5) -> Callable[[Arrival], Answer]:
    """Fails a third of all attempts, and takes a different time for each."""
    chance = random.Random(seed)
    return lambda arrival: Answer(503 if chance.random() < 0.33 else 200, delay=chance.choice((0.0, 0.001, 0.004)))


def firsts(receiver: Receiver) -> list[int]:
    return list(dict.fromkeys(number_of(arrival) for arrival in receiver.arrivals))


def test_strict_keeps_the_order_through_failures_with_one_request_at_a_time(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        wishes = {"ordering": Ordering.STRICT, "retry_first": 0.005, "tries": 50}
        async with a_pushed_lane(world, flaky(), **wishes) as (lane, receiver):
            await world.publish(60, lane)
            await final(world, lane, 60)
        assert firsts(receiver) == list(range(1, 61))
        # Head of the line: every attempt of one event comes before the first of the next.
        assert [number_of(arrival) for arrival in receiver.arrivals] == sorted(number_of(a) for a in receiver.arrivals)
        assert receiver.connections <= 2

    in_world(tmp_path, scenario)


def test_key_keeps_the_order_of_every_key_and_other_keys_go_on(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        stuck = {"done": False}

        def script(arrival: Arrival) -> Answer:
            return Answer(503 if number_of(arrival) % 7 == 3 and not stuck["done"] else 200)

        wishes = {"ordering": Ordering.KEY, "retry_first": 0.005, "tries": 5000}
        async with a_pushed_lane(world, script, **wishes) as (lane, receiver):
            await world.publish(140, lane, keys=7)
            await until_async(lambda: world.reader.lane(lane).delivered == 120)
            stuck["done"] = True
            await final(world, lane, 140)
        by_key: dict[int, list[int]] = defaultdict(list)
        for number in firsts(receiver):
            by_key[number % 7].append(number)
        assert all(numbers == sorted(numbers) for numbers in by_key.values())
        assert sum(map(len, by_key.values())) == 140

    in_world(tmp_path, scenario)


@pytest.mark.parametrize("ordering", list(Ordering))
def test_the_order_may_be_changed_while_events_wait(tmp_path: Path, ordering: Ordering) -> None:
    async def scenario(world: World) -> None:
        with Receiver(flaky()) as receiver:
            lane = world.subscribe("billing", receiver.url, ordering=Ordering.KEY, tries=500)
            async with world.delivering():
                await world.publish(100, lane, keys=3)
                world.change("billing", receiver.url, ordering=ordering, tries=500)
                await world.publish(100, lane, first=101, keys=3)
                await final(world, lane, 200)
        assert sorted(firsts(receiver)) == list(range(1, 201))

    in_world(tmp_path, scenario)


def test_a_strict_lane_that_is_moved_back_goes_on_in_order(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        async with a_pushed_lane(world, ordering=Ordering.STRICT) as (lane, receiver):
            await world.publish(20, lane)
            await final(world, lane, 20)
            await world.command(lane, Rewind(to=embedded(5)))
            await until_async(lambda: world.reader.lane(lane).delivered == 35)
        assert [number_of(arrival) for arrival in receiver.arrivals] == [*range(1, 21), *range(6, 21)]

    in_world(tmp_path, scenario)


def test_no_second_has_more_requests_than_the_rate_retries_included(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        answers = [Answer(500)] * 10 + [Answer()]
        async with a_pushed_lane(world, answers, rate=20.0, tries=50) as (lane, receiver):
            await world.publish(35, lane)
            await final(world, lane, 35)
        times = [arrival.at for arrival in receiver.arrivals]
        assert len(times) == 45
        # Begun within the rate; what is on the way between us and the receiver may close up by a little.
        assert all(sum(1 for other in times if begin <= other < begin + 0.8) <= 20 for begin in times)
        assert times[-1] - times[0] >= 1.8

    in_world(tmp_path, scenario)


def test_no_event_is_sent_before_its_delay(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        async with a_pushed_lane(world, sending_delay=0.6) as (lane, receiver):
            await world.publish(1, lane)
            published = world.clock.monotonic()
            await final(world, lane, 1)
        assert receiver.arrivals[0].at - published >= 0.55

    in_world(tmp_path, scenario)


def test_retry_after_pauses_the_whole_lane_and_no_other(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with Receiver([Answer(429, {"retry-after": "1"}), Answer()]) as receiver, Receiver() as other:
            lane = world.subscribe("billing", receiver.url, preset="cloudevents", inflight=1)
            witness = world.subscribe("witness", other.url)
            async with world.delivering():
                await world.publish(5, lane, witness)
                await final(world, witness, 5)
                assert len(receiver.arrivals) == 1
                await final(world, lane, 5)
        first, *rest = [arrival.at for arrival in receiver.arrivals]
        assert len(rest) == 5 and min(rest) - first >= 0.95

    in_world(tmp_path, scenario)


def test_gone_disables_a_subscription_until_it_is_enabled(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        async with a_pushed_lane(world, [Answer(410), Answer()], ordering=Ordering.STRICT) as (lane, receiver):
            await world.publish(3, lane)
            await until_async(lambda: world.reader.lane(lane).state == "disabled")
            assert (world.reader.lane(lane).detail.disabled, len(receiver.arrivals)) == ("gone", 1)
            assert await world.command(lane, Enable()) == ""
            await final(world, lane, 3)
            assert (world.reader.lane(lane).state, ids(receiver.arrivals)) == ("active", ["1", "1", "2", "3"])
            await world.command(lane, Disable())
            await world.publish(2, lane, first=4)
            await world.command(lane, Enable(skip=True))
            await world.publish(1, lane, first=6)
            await final(world, lane, 6)
        assert ids(receiver.arrivals)[4:] == ["6"]

    in_world(tmp_path, scenario)


def test_only_failures_for_too_long_disable_a_subscription(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        async with a_pushed_lane(world, [Answer(500)], disable_after=1.0, tries=1000) as (lane, _):
            await world.publish(1, lane)
            await until_async(lambda: world.reader.lane(lane).state == "disabled")
            assert world.reader.lane(lane).detail.disabled == "failing"
            assert world.reader.lane(lane).dead_letters == 0

    in_world(tmp_path, scenario)


def test_a_changed_policy_holds_for_the_next_attempt(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with Receiver([Answer(404)]) as receiver, Receiver() as moved:
            lane = world.subscribe("billing", receiver.url, tries=10_000)
            async with world.delivering():
                await world.publish(1, lane)
                await asyncio.to_thread(receiver.wait_for, 2)
                world.change("billing", moved.url, headers={"x-new": "yes"}, tries=10_000)
                await final(world, lane, 1)
        assert moved.arrivals[0].headers["x-new"] == "yes"

    in_world(tmp_path, scenario)


def test_a_suspended_retry_starts_with_a_new_lifetime(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        async with a_pushed_lane(world, [Answer(500)], retry_lifetime=1.5, tries=10_000) as (lane, receiver):
            await world.publish(1, lane)
            await asyncio.to_thread(receiver.wait_for, 2)
            await world.command(lane, Suspend())
            await asyncio.sleep(1.6)
            receiver.script = [Answer()]
            await world.command(lane, Activate())
            await final(world, lane, 1)
        assert world.reader.lane(lane).dead_letters == 0

    in_world(tmp_path, scenario)


def test_a_long_wait_is_not_cut_short_by_a_restart(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with Receiver([Answer(500)]) as receiver:
            lane = world.subscribe("billing", receiver.url, retry_waits=(2.0,), retry_jitter=0.0)
            async with world.delivering():
                await world.publish(1, lane)
                await until_async(lambda: world.reader.lane(lane).failed_attempts == 1)
            async with world.delivering():
                first, second = await asyncio.to_thread(receiver.wait_for, 2)
        assert second.at - first.at >= 1.9

    in_world(tmp_path, scenario)


def test_a_pause_that_the_endpoint_asked_for_outlasts_suspending(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        wishes = {"preset": "cloudevents", "inflight": 1}
        async with a_pushed_lane(world, [Answer(429, {"retry-after": "2"}), Answer()], **wishes) as (lane, receiver):
            await world.publish(3, lane)
            await until_async(lambda: world.reader.lane(lane).detail.paused_until is not None)
            assert await world.command(lane, Suspend()) == ""
            assert await world.command(lane, Activate()) == ""
            await final(world, lane, 3)
        first, *rest = [arrival.at for arrival in receiver.arrivals]
        assert min(rest) - first >= 1.9

    in_world(tmp_path, scenario)


def test_a_rate_per_minute_holds_over_a_restart(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with Receiver() as receiver:
            lane = world.subscribe("billing", receiver.url, rate_per_minute=2)
            await world.publish(5, lane)
            for _ in range(3):
                async with world.delivering():
                    await asyncio.to_thread(receiver.wait_for, 1)
                    await until_async(lambda: world.reader.lane(lane).delivered >= 1)
            # Spread over the minute, the second one is not due for a long time.
            assert len(receiver.arrivals) == 1

    in_world(tmp_path, scenario)
