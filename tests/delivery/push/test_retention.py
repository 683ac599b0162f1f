"""Retention of subscriptions: it ends deliveries and copies by time, though the log still has the event (HOR-T38, HOR-T51)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.delivery.worlds import World, a_pushed_lane, final, ids, in_world
from tests.polling import until_async
from tests.receivers import Answer, Receiver
from tidings.delivery.push import process
from tidings.log.commands import Activate, Redeliver, Suspend


def test_what_waited_longer_than_its_retention_is_expired_and_recorded(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        async with a_pushed_lane(world) as (lane, receiver):
            world.retain("billing", receiver.url, 1.0)
            await world.command(lane, Suspend())
            old = (await world.publish(2, lane))[-1]
            await until_async(lambda: world.clock.now() > world.last_published + 1_100_000)
            (young,) = await world.publish(1, lane, first=3)
            await world.command(lane, Activate())
            await final(world, lane, young.offset)
            assert ids(receiver.arrivals) == ["3"]
            records = world.reader.deliveries(lane, None, 10)
            assert {record.position.offset: record.state for record in records if record.state == "expired"} == {
                old.offset - 1: "expired",
                old.offset: "expired",
            }
            assert world.reader.lane(lane).expired == 2

    in_world(tmp_path, scenario)


def test_a_shorter_retention_holds_for_what_is_published_from_then_on(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        async with a_pushed_lane(world) as (lane, receiver):
            world.retain("billing", receiver.url, 3600.0)
            await world.command(lane, Suspend())
            kept = (await world.publish(2, lane))[-1]
            world.retain("billing", receiver.url, 1.0, marks=kept.offset)
            (short,) = await world.publish(1, lane, first=3)
            await until_async(lambda: world.clock.now() > world.last_published + 1_100_000)
            await world.command(lane, Activate())
            await final(world, lane, short.offset)
            assert sorted(ids(receiver.arrivals)) == ["1", "2"]
            assert world.reader.lane(lane).expired == 1

    in_world(tmp_path, scenario)


def test_a_dead_letter_ends_with_its_retention(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "TRIM_INTERVAL", 0.05)

    async def scenario(world: World) -> None:
        with Receiver([Answer(400)]) as receiver:
            lane = world.subscribe("billing", receiver.url, answers={"4xx": "give-up"})
            world.retain("billing", receiver.url, 1.0, answers={"4xx": "give-up"})
            async with world.delivering():
                (position,) = await world.publish(1, lane)
                await until_async(lambda: world.reader.lane(lane).dead_letters == 1)
                await until_async(lambda: world.reader.lane(lane).dead_letters == 0)
                await world.command(lane, Redeliver(positions=(position,)))
                await until_async(lambda: world.reader.lane(lane).expired == 1)
                assert len(receiver.arrivals) == 1

    in_world(tmp_path, scenario)
