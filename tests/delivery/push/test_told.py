"""What became of events, told while the engine really delivers them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.delivery.push.test_breaker import WISHES, Endpoint
from tests.delivery.worlds import World, a_pushed_lane, final, in_world, meanwhile, statuses_of
from tests.polling import until_async
from tests.receivers import Answer, Receiver
from tidings.clock import Instant
from tidings.delivery.push.reader import DeliveryRecord
from tidings.delivery.push.records.status import DeliveryStatus
from tidings.delivery.push.records.statuses import StatusQuestion
from tidings.log.commands import Activate, Redeliver, Rewind, Suspend
from tidings.log.position import LaneNumber, Offset, Position, embedded
from tidings.registry.delivery_options import Tracking

FAILS_TWICE = (Answer(500), Answer(503), Answer(204))
GONE_WRONG = (Answer(500),)


def told(world: World, lane: LaneNumber) -> dict[int, str]:
    """The state of every event of the lane."""
    page = meanwhile(statuses_of(world).page(lane, StatusQuestion(limit=1000)))
    return {status.position.offset: status.state for status in page.found}


def one(world: World, lane: LaneNumber, position: Position) -> DeliveryStatus:
    found = meanwhile(statuses_of(world).of(lane, position))
    assert found is not None
    return found


def facts(history: tuple[DeliveryRecord, ...]) -> list[tuple[str, int, int | None]]:
    return [(fact.state, fact.tries, fact.status) for fact in history]


def listed(world: World, lane: LaneNumber) -> int:
    """The attempts of the lane's one event, as the list tells them."""
    (status,) = meanwhile(statuses_of(world).page(lane, StatusQuestion(limit=10))).found
    return status.attempts


@pytest.mark.parametrize("tracking", list(Tracking))
def test_the_attempts_of_a_redelivered_event_are_right_in_every_tracking_mode(tmp_path: Path, tracking: Tracking) -> None:
    async def scenario(world: World) -> None:
        answers = (*[Answer(500)] * 3, *[Answer(500)] * 1, Answer(204))
        async with a_pushed_lane(world, answers, tries=3, tracking=tracking) as (lane, _):
            (first,) = await world.publish(1, lane)
            await until_async(lambda: told(world, lane) == {first.offset: "dead"})
            assert one(world, lane, first).attempts == listed(world, lane) == 3
            assert await world.command(lane, Redeliver((), dead_letters=True)) == ""
            await until_async(lambda: told(world, lane) == {first.offset: "delivered"})
            assert one(world, lane, first).attempts == listed(world, lane) == 5

    in_world(tmp_path, scenario)


def test_an_event_that_was_never_sent_has_no_attempts(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        async with a_pushed_lane(world) as (lane, _):
            assert await world.command(lane, Suspend()) == ""
            (first,) = await world.publish(1, lane)
            await world.expire(Instant(world.clock.now() + 1))
            assert await world.command(lane, Activate()) == ""
            await until_async(lambda: told(world, lane) == {first.offset: "expired"})
            assert one(world, lane, first).attempts == listed(world, lane) == 0

    in_world(tmp_path, scenario)


def test_every_attempt_is_a_fact(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        async with a_pushed_lane(world, FAILS_TWICE) as (lane, receiver):
            (first,) = await world.publish(1, lane)
            await final(world, lane, first.offset)
            status = one(world, lane, first)
            assert (status.state, status.attempts, status.cause) == ("delivered", 3, "")
            assert facts(status.history) == [("delivered", 3, 204), ("retrying", 2, 503), ("retrying", 1, 500)]
            assert {fact.target for fact in status.history} == {receiver.url}
            assert all(fact.duration_ms for fact in status.history)
            counts = world.reader.lane(lane).counts
            assert (counts.server_errors, counts.dead, counts.last_delivered) == (2, 0, status.at)
            assert counts.bytes == len(receiver.arrivals[0].body)

    in_world(tmp_path, scenario)


def test_with_tracking_off_only_the_last_state_is_known(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        async with a_pushed_lane(world, FAILS_TWICE, tracking=Tracking.OFF) as (lane, _):
            (first,) = await world.publish(1, lane)
            await final(world, lane, first.offset)
            status = one(world, lane, first)
            assert facts(status.history) == [("delivered", 3, 204)]
            assert status.attempts == listed(world, lane) == 3
            assert world.reader.lane(lane).failed_attempts == 2

    in_world(tmp_path, scenario)


def test_what_is_retried_tells_its_cause_and_next_try_even_without_tracking(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        async with a_pushed_lane(world, GONE_WRONG, tracking=Tracking.DISCARDED, retry_first=60.0) as (lane, _):
            (first,) = await world.publish(1, lane)
            await until_async(lambda: told(world, lane) == {first.offset: "retrying"})
            status = one(world, lane, first)
            assert (status.cause, status.message, status.attempts) == ("status-500", "the endpoint answered 500", 1)
            assert status.next_due is not None and status.next_due > world.clock.now()

    in_world(tmp_path, scenario)


def test_dead_letters_and_their_redelivery_are_told(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        async with a_pushed_lane(world, (Answer(500), Answer(500), Answer(204)), tries=2) as (lane, _):
            (first,) = await world.publish(1, lane)
            await until_async(lambda: told(world, lane) == {first.offset: "dead"})
            assert (one(world, lane, first).attempts, world.reader.lane(lane).counts.dead) == (2, 1)
            assert await world.command(lane, Redeliver((), dead_letters=True)) == ""
            await until_async(lambda: told(world, lane) == {first.offset: "delivered"})
            assert facts(one(world, lane, first).history)[0] == ("delivered", 1, 204)
            assert world.reader.lane(lane).counts.dead == 1
            assert one(world, lane, first).attempts == listed(world, lane) == 3

    in_world(tmp_path, scenario)


def test_a_suspended_lane_waits_and_a_skipped_part_says_so(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        async with a_pushed_lane(world) as (lane, _):
            assert await world.command(lane, Suspend()) == ""
            positions = await world.publish(3, lane)
            assert set(told(world, lane).values()) == {"waiting"}
            await world.command(lane, Rewind(embedded(positions[1].offset)))
            await world.command(lane, Activate())
            await final(world, lane, positions[2].offset)
            assert list(told(world, lane).values()) == ["delivered", "skipped", "skipped"]
            assert one(world, lane, positions[0]).message == "the subscription was moved past it"

    in_world(tmp_path, scenario)


def test_open_events_of_a_deleted_subscription_are_told_as_deleted(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        async with a_pushed_lane(world, (Answer(204), Answer(500)), retry_first=60.0) as (lane, _):
            positions = await world.publish(1, lane)
            await final(world, lane, positions[0].offset)
            positions = [*positions, *await world.publish(1, lane, first=2)]
            await until_async(lambda: told(world, lane)[positions[1].offset] == "retrying")
            world.unsubscribe("billing")
            await until_async(lambda: world.reader.lane(lane).state == "deleted")
            assert list(told(world, lane).values()) == ["deleted", "delivered"]
            assert one(world, lane, positions[1]).cause == "subscription-deleted"

    in_world(tmp_path, scenario)


def test_what_retention_removed_before_it_was_read_is_told_as_expired(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with Receiver() as receiver:
            lane = world.subscribe("billing", receiver.url)
            positions = await world.publish(3, lane)
            await world.retire()
            (last,) = await world.publish(1, lane, first=4)
            async with world.delivering():
                await final(world, lane, last.offset)
            expired = one(world, lane, positions[1])
            assert (expired.state, expired.message) == ("expired", "its retention ended before it was delivered")
            beyond = Position(last.partition, Offset(last.offset + 1))
            assert (await statuses_of(world).of(lane, beyond)) is None
            page = await statuses_of(world).page(lane, StatusQuestion(states=frozenset(("expired",))))
            assert [(status.position, status.upto) for status in page.found] == [(positions[0], positions[2])]

    in_world(tmp_path, scenario)


def test_counts_survive_a_restart_and_another_number_of_workers(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with Receiver() as receiver:
            lanes = [world.subscribe(f"s{n}", receiver.url) for n in range(4)]
            for workers in (1, 2, 1):
                async with world.delivering(workers):
                    positions = await world.publish(2, *lanes)
                    for lane in lanes:
                        await final(world, lane, positions[-1].offset)
            for lane in lanes:
                view = world.reader.lane(lane)
                assert view.delivered == 6
                assert view.counts.bytes > 0
                assert sorted(told(world, lane).values()) == ["delivered"] * 6

    in_world(tmp_path, scenario)


def test_what_waits_behind_a_breaker_is_told_as_waiting_and_then_as_delivered(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        endpoint = Endpoint()
        with Receiver(endpoint) as receiver:
            lane = world.subscribe("billing", receiver.url, **WISHES)
            async with world.delivering():
                first = await world.publish(1, lane)
                await until_async(lambda: world.reader.lane(lane).state == "open")
                positions = [*first, *await world.publish(5, lane, first=2)]
                assert set(told(world, lane).values()) == {"waiting"}
                assert one(world, lane, first[0]).cause.startswith("status-")
                endpoint.up = endpoint.well = True
                await final(world, lane, positions[-1].offset)
            assert set(told(world, lane).values()) == {"delivered"}
            history = one(world, lane, first[0]).history
            assert [fact.state for fact in history][:2] == ["delivered", "waiting"]

    in_world(tmp_path, scenario)
