"""A subscription that may be given nothing: no attempt, no probe; what its lane has waits, and goes out when it may again."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.builders import an_approval, an_exposure
from tests.delivery.worlds import World, a_pushed_lane, final, ids, in_world
from tests.polling import until_async
from tests.receivers import Answer
from tidings.log.commands import Redeliver, Rewind
from tidings.log.position import START, embedded


def decide(world: World, state: str) -> None:
    world.registry.put([an_approval(state=state)], by="test", at=world.clock.now(), marks={})


async def barred(world: World, state: str) -> None:
    """Go on when delivery follows the decision: it takes a command only after it has looked at the registry."""
    decide(world, state)
    lane = next(iter(world.registry.snapshot().subscriptions.values())).lane
    await world.command(lane, Redeliver(()))


def exposed(world: World) -> None:
    world.registry.put([an_exposure(approval="manual")], by="test", at=world.clock.now(), marks={})


def test_what_waits_is_not_pushed_while_the_approval_is_withdrawn_and_goes_on_with_a_new_one(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        exposed(world)
        async with a_pushed_lane(world) as (lane, receiver):
            await barred(world, "granted")
            await world.publish(1, lane)
            await final(world, lane, 1)
            await barred(world, "rejected")
            await world.publish(2, lane, first=2)
            await world.command(lane, Rewind(embedded(START)))
            await world.command(lane, Redeliver(()))
            await asyncio.sleep(0.3)
            assert ids(receiver.arrivals) == ["1"]
            decide(world, "granted")
            await until_async(lambda: len(receiver.arrivals) == 4)
            assert sorted(ids(receiver.arrivals)) == ["1", "1", "2", "3"]

    in_world(tmp_path, scenario)


def test_what_waits_behind_a_breaker_stays_there_and_nobody_is_probed(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        exposed(world)
        answers = [Answer(503), Answer(200)]
        wishes = {"breaker": True, "tries": 1, "probe_interval": 0.5}
        async with a_pushed_lane(world, answers, **wishes) as (lane, receiver):
            await barred(world, "granted")
            await world.publish(1, lane)
            await until_async(lambda: world.reader.lane(lane).state == "open")
            await barred(world, "rejected")
            before = len(receiver.arrivals)
            await asyncio.sleep(1.2)
            assert (len(receiver.arrivals), world.reader.lane(lane).detail.breaker is not None) == (before, True)
            assert world.reader.lane(lane).state == "open"
            decide(world, "granted")
            await final(world, lane, 1)

    in_world(tmp_path, scenario)
