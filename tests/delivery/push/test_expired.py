"""Entries that retention removed before delivery read them are counted and recorded, once, and never silently skipped."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.delivery.worlds import World, a_pushed_lane, final, ids, in_world, start
from tests.polling import until_async
from tests.receivers import Answer, Receiver
from tidings.log.commands import Activate, Rewind, Suspend
from tidings.log.position import LaneNumber, embedded


def expired(world: World, lane: LaneNumber) -> list[tuple[int, str]]:
    """The records of expired entries: where and why."""
    records = world.reader.deliveries(lane, None, 1000)
    return [(record.position.offset, record.cause) for record in records if record.state == "expired"]


def test_a_lane_suspended_for_longer_than_retention_tells_what_it_missed(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with Receiver() as receiver:
            lane = world.subscribe("billing", receiver.url)
            async with world.delivering():
                await world.publish(3, lane)
                await final(world, lane, 3)
                await world.command(lane, Suspend())
                await world.publish(5, first=4)
                await world.publish(7, lane, first=9)
                await world.retire()
                last = (await world.publish(2, lane, first=16))[-1].offset
                await world.command(lane, Activate())
                await final(world, lane, last)
                assert world.reader.lane(lane).expired == 7
            async with world.delivering():  # a restart does not count them again
                last = (await world.publish(1, lane, first=18))[-1].offset
                await final(world, lane, last)
        assert ids(receiver.arrivals)[3:] == ["16", "17", "18"]
        view = world.reader.lane(lane)
        assert (view.delivered, view.expired) == (6, 7)
        ((where, why),) = expired(world, lane)
        assert (where, why.startswith("expired unread: 7 after 3 and before ")) == (4, True)

    in_world(tmp_path, scenario, inflight=1)


def test_a_lane_of_which_nothing_is_left_tells_it_too(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with Receiver() as receiver:
            lane = world.subscribe("billing", receiver.url)
            async with world.delivering():
                await world.command(lane, Suspend())
                await world.publish(4, lane)
                await world.retire()
                await world.command(lane, Activate())
                await until_async(lambda: world.reader.lane(lane).expired == 4)
                assert expired(world, lane) == [(1, "expired unread: 4 after 0")]
                last = (await world.publish(1, lane, first=5))[-1].offset
                await final(world, lane, last)
            async with world.delivering():
                last = (await world.publish(1, lane, first=6))[-1].offset
                await final(world, lane, last)
        assert ids(receiver.arrivals) == ["5", "6"]
        assert (world.reader.lane(lane).expired, len(expired(world, lane))) == (4, 1)

    in_world(tmp_path, scenario)


def test_a_lane_that_is_full_of_retries_tells_what_it_missed_meanwhile(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        async with a_pushed_lane(world, [Answer(503)], tries=1000) as (lane, receiver):
            await world.publish(2, lane)
            await until_async(lambda: world.reader.lane(lane).open_items == 2)
            await world.publish(6, lane, first=3)
            await world.retire()
            last = (await world.publish(1, lane, first=9))[-1].offset
            receiver.script = [Answer()]
            await final(world, lane, last)
        view = world.reader.lane(lane)
        assert (view.delivered + view.expired, view.expired >= 6) == (9, True)
        assert {"9"} <= set(ids(receiver.arrivals)) <= {"1", "2", "9"}

    in_world(tmp_path, scenario, open_items=2)


@pytest.mark.parametrize("saved", [False, True])
def test_what_was_missed_is_counted_once_when_the_process_is_killed(tmp_path: Path, saved: bool) -> None:
    async def scenario(world: World) -> None:
        with Receiver() as receiver:
            lane = world.subscribe("billing", receiver.url)
            process = start(tmp_path)
            try:
                await world.publish(3, lane)
                await final(world, lane, 3)
                await world.command(lane, Suspend())
                await world.publish(50, lane, first=4)
                await world.retire()
                await world.command(lane, Activate())
                if saved:
                    await until_async(lambda: world.reader.lane(lane).expired > 0)
            finally:
                process.kill()
                await asyncio.to_thread(process.wait)
            async with world.delivering():
                last = (await world.publish(1, lane, first=54))[-1].offset
                await final(world, lane, last)
        assert (world.reader.lane(lane).expired, len(expired(world, lane))) == (50, 1)
        assert ids(receiver.arrivals)[-1] == "54"

    in_world(tmp_path, scenario)


def test_a_rewind_counts_nothing_that_was_gone_before_and_everything_that_goes_after(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        async with a_pushed_lane(world) as (lane, _):
            await world.publish(5, lane)
            await final(world, lane, 5)
            await world.retire()
            await world.publish(2, lane, first=6)
            await until_async(lambda: world.reader.lane(lane).delivered == 7)
            await world.command(lane, Suspend())
            await world.command(lane, Rewind(to={}))
            await world.retire()
            await world.command(lane, Activate())
            await until_async(lambda: world.reader.lane(lane).expired > 0)
            last = (await world.publish(1, lane, first=8))[-1].offset
            await final(world, lane, last)
        assert world.reader.lane(lane).expired == 2, "the two that the rewind had brought back"
        assert [cause for _, cause in expired(world, lane)] == ["expired unread: 2 after 0"]

    in_world(tmp_path, scenario)


def test_what_a_rewind_skips_is_not_expired(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        async with a_pushed_lane(world) as (lane, receiver):
            await world.command(lane, Suspend())
            await world.publish(5, lane)
            await world.command(lane, Rewind(to=embedded(1_000_000)))
            await world.retire()
            await world.command(lane, Activate())
            last = (await world.publish(1, lane, first=6))[-1].offset
            await final(world, lane, last)
        assert (world.reader.lane(lane).expired, ids(receiver.arrivals)) == (0, ["6"])

    in_world(tmp_path, scenario)
