"""Killing the deliver process at any moment loses nothing."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from pathlib import Path

from tests.delivery.worlds import World, a_world, start
from tests.polling import until_async
from tests.receivers import Answer, Arrival, Receiver
from tidings.log.commands import Suspend

ROUNDS = 4
EVENTS = 400


def flaky(arrival: Arrival) -> Answer:
    """One in ten events fails at first, so that there are always open items when the process dies."""
    n = int(json.loads(arrival.body)["id"])
    return Answer(500) if n % 10 == 0 and arrival.headers["tidings-attempt"] == "1" else Answer()


def test_every_entry_arrives_at_least_once_whenever_the_process_is_killed(tmp_path: Path) -> None:
    chance = random.Random(7)

    async def scenario(world: World, receiver: Receiver) -> None:
        lane = world.subscribe("billing", receiver.url, inflight=20)
        for number in range(ROUNDS):
            first = number * EVENTS + 1
            process = start(tmp_path)
            try:
                await world.publish(EVENTS, lane, first=first)
                enough = len(receiver.arrivals) + chance.randrange(1, EVENTS)
                await asyncio.to_thread(receiver.wait_for, enough)
            finally:
                process.kill()
                await asyncio.to_thread(process.wait)
        async with world.delivering():
            await until_async(lambda: world.reader.lane(lane).low_water.position.offset >= ROUNDS * EVENTS)

    async def run() -> None:
        with Receiver(flaky) as receiver:
            async with asyncio.timeout(480), a_world(tmp_path) as world:
                await scenario(world, receiver)
            counts = Counter(int(json.loads(arrival.body)["id"]) for arrival in receiver.arrivals)
        assert set(counts) == set(range(1, ROUNDS * EVENTS + 1)), "every entry arrived"
        assert sum(counts.values()) < 3 * ROUNDS * EVENTS, "and was not sent again and again"

    asyncio.run(run())


def test_a_dead_letter_and_a_command_survive_a_kill(tmp_path: Path) -> None:
    async def run() -> None:
        with Receiver([Answer(500)]) as receiver:
            async with asyncio.timeout(60), a_world(tmp_path) as world:
                lane = world.subscribe("billing", receiver.url, tries=1)
                process = start(tmp_path)
                try:
                    await world.publish(3, lane)
                    await until_async(lambda: world.reader.lane(lane).dead_letters == 3)
                    assert await world.command(lane, Suspend()) == ""
                finally:
                    process.kill()
                    await asyncio.to_thread(process.wait)
                async with world.delivering():
                    await world.publish(1, lane, first=4)
                    await asyncio.sleep(0)
                    assert world.reader.lane(lane).state == "suspended"
                    assert world.reader.lane(lane).dead_letters == 3
            assert len(receiver.arrivals) == 3

    asyncio.run(run())
