"""The engine as the deliver process runs it: real files, real sockets, scripted receivers."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.delivery.worlds import World, a_pushed_lane, final, ids, in_world
from tests.polling import until_async
from tests.receivers import Answer, Arrival, Receiver
from tidings.clock import Instant
from tidings.log.commands import Activate, DropDeadLetters, Redeliver, Rewind, Suspend
from tidings.log.position import LaneNumber, Offset, Position, embedded
from tidings.registry.model import ContentMode


def by_id(answers: dict[str, Answer]) -> Callable[[Arrival], Answer]:
    """Answer each event in its own way, 200 for the others."""
    return lambda arrival: answers.get(json.loads(arrival.body)["id"], Answer())


def test_every_entry_arrives_once_with_its_names(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with Receiver() as receiver:
            lane = world.subscribe("billing", receiver.url, headers={"X-Shop": "7"})
            async with world.delivering():
                await world.publish(300, lane)
                await final(world, lane, 300)
        assert Counter(ids(receiver.arrivals)) == Counter(str(n) for n in range(1, 301))
        headers = receiver.arrivals[0].headers
        assert headers["content-type"].startswith("application/cloudevents+json")
        assert (headers["tidings-attempt"], headers["x-shop"]) == ("1", "7")
        assert headers["host"] == f"127.0.0.1:{receiver.port}"
        assert len({arrival.headers["tidings-delivery-id"] for arrival in receiver.arrivals}) == 300
        view = world.reader.lane(lane)
        assert (view.delivered, view.failed_attempts, view.dead_letters) == (300, 0, 0)
        records = world.reader.deliveries(lane, None, 1000)
        assert sorted(record.position.offset for record in records) == list(range(1, 301))
        assert {(record.state, record.tries, record.status) for record in records} == {("delivered", 1, 200)}

    in_world(tmp_path, scenario)


def test_binary_mode_sends_attributes_as_headers_and_transport_headers_along(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with Receiver() as receiver:
            lane = world.subscribe("billing", receiver.url, mode=ContentMode.BINARY)
            async with world.delivering():
                await world.publish(1, lane, subject="s1", transport={"traceparent": "00-1-2-03"})
                (arrival,) = await asyncio.to_thread(receiver.wait_for, 1)
        assert (arrival.headers["ce-id"], arrival.headers["ce-subject"], arrival.body) == ("1", "s1", b'{"n": 1}')
        assert (arrival.headers["content-type"], arrival.headers["traceparent"]) == ("application/json", "00-1-2-03")

    in_world(tmp_path, scenario)


def test_a_failed_attempt_is_repeated_under_the_same_delivery_id(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with Receiver([Answer(drop=True), Answer(500), Answer(302), Answer(200)]) as receiver:
            lane = world.subscribe("billing", receiver.url)
            async with world.delivering():
                await world.publish(1, lane)
                await final(world, lane, 1)
        assert [arrival.headers["tidings-attempt"] for arrival in receiver.arrivals] == ["1", "2", "3", "4"]
        assert len({arrival.headers["tidings-delivery-id"] for arrival in receiver.arrivals}) == 1
        records = world.reader.deliveries(lane, None, 10)
        assert [(record.state, record.tries, record.cause) for record in records] == [
            ("delivered", 4, ""),
            ("retrying", 3, "status-302"),
            ("retrying", 2, "status-500"),
            ("retrying", 1, "connection-lost"),
        ]
        assert (world.reader.lane(lane).delivered, world.reader.lane(lane).failed_attempts) == (1, 3)

    in_world(tmp_path, scenario)


def test_retry_after_delays_the_next_attempt(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with Receiver([Answer(503, {"retry-after": "1"}), Answer()]) as receiver:
            lane = world.subscribe("billing", receiver.url)
            async with world.delivering():
                await world.publish(1, lane)
                first, second = await asyncio.to_thread(receiver.wait_for, 2)
        assert second.at - first.at >= 0.99

    in_world(tmp_path, scenario, retry_max="5s")


def test_after_the_last_try_an_event_is_a_dead_letter_with_its_own_copy(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with Receiver(by_id({"2": Answer(500)})) as receiver:
            lane = world.subscribe("billing", receiver.url, tries=3)
            async with world.delivering():
                await world.publish(3, lane)
                await final(world, lane, 3)
        assert Counter(ids(receiver.arrivals)) == {"1": 1, "2": 3, "3": 1}
        (letter,) = world.reader.dead_letters(lane, 0, 10)
        assert (letter.position.offset, letter.tries, letter.reason) == (2, 3, "status-500 after 3 tries")
        assert (json.loads(letter.head)["id"], letter.data) == ("2", b'{"n": 2}')
        assert world.reader.deliveries(lane, None, 1)[0].state == "dead"
        assert world.reader.lane(lane).dead_letters == 1

    in_world(tmp_path, scenario)


def test_dead_letters_are_sent_again_when_asked_even_after_retention_and_are_dead_no_more(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with Receiver([Answer(500)]) as receiver:
            lane = world.subscribe("billing", receiver.url, tries=1)
            async with world.delivering():
                await world.publish(3, lane)
                await final(world, lane, 3)
                assert await world.expire(Instant(world.clock.now() + 1)) == 3
                receiver.script = [Answer(200)]
                assert await world.command(lane, Redeliver(dead_letters=True)) == ""
                await until_async(lambda: world.reader.lane(lane).delivered == 3)
        assert world.reader.dead_letters(lane, 0, 10) == []
        assert Counter(ids(receiver.arrivals)) == {"1": 2, "2": 2, "3": 2}

    in_world(tmp_path, scenario)


def test_all_dead_letters_are_sent_again_in_the_background_however_many_and_over_a_restart(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with Receiver([Answer(500)]) as receiver:
            lane = world.subscribe("billing", receiver.url, tries=1)
            async with world.delivering():
                await world.publish(100, lane)
                await final(world, lane, 100)
                receiver.script = [Answer(200)]
                assert await world.command(lane, Redeliver(dead_letters=True)) == ""
            before = world.reader.lane(lane)
            assert 0 < before.detail.redelivering <= 90 and before.dead_letters == 0
            async with world.delivering():
                await until_async(lambda: world.reader.lane(lane).delivered == 100)
                await until_async(lambda: world.reader.lane(lane).detail.redelivering == 0)
        assert Counter(ids(receiver.arrivals)) == {str(n): 2 for n in range(1, 101)}

    in_world(tmp_path, scenario, open_items=40)


def test_dropping_all_dead_letters_ends_their_redelivery(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with Receiver([Answer(500)]) as receiver:
            lane = world.subscribe("billing", receiver.url, tries=1)
            async with world.delivering():
                await world.publish(50, lane)
                await final(world, lane, 50)
                receiver.script = [Answer(hang=True)]
                assert await world.command(lane, Redeliver(dead_letters=True)) == ""
                await asyncio.to_thread(receiver.wait_for, 60)
                assert await world.command(lane, DropDeadLetters(())) == ""
                assert world.reader.lane(lane).detail.redelivering == 10
        assert len(receiver.arrivals) == 60

    in_world(tmp_path, scenario, open_items=40)


def test_chosen_events_are_sent_again_and_strange_ones_are_refused(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with Receiver() as receiver, Receiver() as other:
            lane = world.subscribe("billing", receiver.url)
            stranger = world.subscribe("shipping", other.url)
            async with world.delivering():
                first = await world.publish(3, lane)
                theirs = await world.publish(1, stranger, first=4)
                await final(world, lane, 3)
                assert await world.command(lane, Redeliver(positions=(first[1],))) == ""
                await asyncio.to_thread(receiver.wait_for, 4)
                assert "no event at 4" in await world.command(lane, Redeliver(positions=(first[0], theirs[0])))
                await final(world, lane, 3)
        assert ids(receiver.arrivals[3:]) == ["2"]

    in_world(tmp_path, scenario)


def test_dropped_dead_letters_are_forgotten(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with Receiver([Answer(500)]) as receiver:
            lane = world.subscribe("billing", receiver.url, tries=1)
            async with world.delivering():
                positions = await world.publish(3, lane)
                await final(world, lane, 3)
                await world.command(lane, DropDeadLetters(positions=(positions[0],)))
                assert [letter.position for letter in world.reader.dead_letters(lane, 0, 10)] == list(positions[1:])
                await world.command(lane, DropDeadLetters())
                assert world.reader.dead_letters(lane, 0, 10) == []

    in_world(tmp_path, scenario)


def test_a_suspended_lane_waits_and_an_activated_one_goes_on(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with Receiver() as receiver, Receiver() as other:
            lane = world.subscribe("billing", receiver.url)
            witness = world.subscribe("witness", other.url)
            async with world.delivering():
                assert await world.command(lane, Suspend()) == ""
                assert world.reader.lane(lane).state == "suspended"
                await world.publish(5, lane, witness)
                await final(world, witness, 5)
                assert receiver.arrivals == []
            async with world.delivering():  # a restart does not wake it
                await world.publish(1, lane, witness, first=6)
                await final(world, witness, 6)
                assert receiver.arrivals == []
                assert await world.command(lane, Activate()) == ""
                await final(world, lane, 6)
        assert sorted(ids(receiver.arrivals)) == ["1", "2", "3", "4", "5", "6"]

    in_world(tmp_path, scenario)


def test_a_rewind_repeats_what_the_lane_holds(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with Receiver() as receiver:
            lane = world.subscribe("billing", receiver.url)
            async with world.delivering():
                await world.publish(10, lane)
                await final(world, lane, 10)
                assert await world.command(lane, Rewind(to=embedded(7))) == ""
                await until_async(lambda: world.reader.lane(lane).delivered == 13)
                assert await world.command(lane, Rewind(to={})) == ""
                await until_async(lambda: world.reader.lane(lane).delivered == 23)
                await final(world, lane, 10)
        counts = Counter(ids(receiver.arrivals))
        assert {n: counts[str(n)] for n in (1, 7, 8, 10)} == {1: 2, 7: 2, 8: 3, 10: 3}

    in_world(tmp_path, scenario)


def test_a_rewind_forward_skips_the_backlog_but_nothing_that_is_yet_to_come(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with Receiver() as receiver:
            lane = world.subscribe("billing", receiver.url)
            async with world.delivering():
                await world.command(lane, Suspend())
                await world.publish(5, lane)
                await world.command(lane, Rewind(to=embedded(1_000_000)))
                await world.command(lane, Activate())
                await world.publish(2, lane, first=6)
                await final(world, lane, 7)
        assert sorted(ids(receiver.arrivals)) == ["6", "7"]

    in_world(tmp_path, scenario)


def test_a_command_is_applied_once_however_often_it_comes(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with Receiver() as receiver:
            lane = world.subscribe("billing", receiver.url)
            async with world.delivering():
                (position,) = await world.publish(1, lane)
                await final(world, lane, 1)
                await world.command(lane, Redeliver(positions=(position,)), id="once")
                await asyncio.to_thread(receiver.wait_for, 2)
                await world.command(lane, Redeliver(positions=(position,)), id="once")
                await world.command(lane, Suspend())
            async with world.delivering():
                assert await world.command(LaneNumber(999), Suspend()) == "there is no such subscription"
        assert len(receiver.arrivals) == 2

    in_world(tmp_path, scenario)


def test_an_entry_that_retention_removed_is_recorded_as_expired(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with Receiver() as receiver:
            lane = world.subscribe("billing", receiver.url)
            await world.publish(3, lane)
            assert await world.expire(Instant(world.clock.now() + 1)) == 3
            await world.publish(1, lane, first=4)
            async with world.delivering():
                await until_async(lambda: world.reader.lane(lane).delivered == 1)
                await final(world, lane, 4)
        assert ids(receiver.arrivals) == ["4"]
        assert world.reader.lane(lane).expired == 3
        expired = [r.position.offset for r in world.reader.deliveries(lane, None, 10) if r.state == "expired"]
        assert sorted(expired) == [1, 2, 3]

    in_world(tmp_path, scenario)


def test_a_pull_subscription_is_not_pushed_until_it_becomes_a_push(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with Receiver() as receiver, Receiver() as other:
            lane = world.subscribe_pull("billing")
            witness = world.subscribe("witness", other.url)
            async with world.delivering():
                await world.publish(3, lane, witness)
                await final(world, witness, 3)
                assert world.subscribe("billing", receiver.url) == lane
                await asyncio.to_thread(receiver.wait_for, 3)
        assert len(receiver.arrivals) == 3

    in_world(tmp_path, scenario)


def test_a_changed_callback_holds_for_the_next_attempt(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with Receiver([Answer(500)]) as old, Receiver() as new:
            lane = world.subscribe("billing", old.url, tries=1000)
            async with world.delivering():
                await world.publish(3, lane)
                await asyncio.to_thread(old.wait_for, 3)
                world.subscribe("billing", new.url)
                await final(world, lane, 3)
        assert sorted(ids(new.arrivals)) == ["1", "2", "3"]

    in_world(tmp_path, scenario)


def test_a_deleted_subscription_ends_while_requests_are_on_their_way(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with Receiver([Answer(delay=0.3)]) as receiver, Receiver() as other:
            lane = world.subscribe("billing", receiver.url, inflight=2)
            witness = world.subscribe("witness", other.url)
            async with world.delivering():
                await world.publish(50, lane)
                await asyncio.to_thread(receiver.wait_for, 1)
                world.unsubscribe("billing")
                await until_async(lambda: world.reader.lane(lane).state == "deleted")
                sent = len(receiver.arrivals)
                await world.publish(1, witness, first=51)
                await final(world, witness, 51)
                await until_async(lambda: world.reader.lane(lane).delivered == sent)
                assert len(receiver.arrivals) == sent < 50

    in_world(tmp_path, scenario)


def test_bad_endpoints_do_not_delay_a_good_one(tmp_path: Path) -> None:
    """Twenty endpoints that never answer take every slot they may; the good one still gets all its events."""

    async def scenario(world: World) -> None:
        async with world.delivering():
            with Receiver([Answer(hang=True)]) as silent, Receiver() as good:
                bad = [world.subscribe(f"bad{n}", silent.url) for n in range(20)]
                dead = world.subscribe("dead", "http://127.0.0.1:9/in")
                await world.publish(100, *bad, dead)
                await asyncio.to_thread(silent.wait_for, 15)
                lane = world.subscribe("good", good.url)
                await world.publish(200, lane, first=101)
                await final(world, lane, 300)
                assert all(world.reader.lane(number).delivered == 0 for number in bad)

    in_world(tmp_path, scenario, total_inflight="30", attempt_timeout="60s")


def test_what_is_open_is_bounded_and_everything_arrives_when_the_endpoint_comes_back(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with Receiver([Answer(503)]) as receiver:
            lane = world.subscribe("billing", receiver.url, tries=1000, retry_max=0.05)
            async with world.delivering():
                await world.publish(500, lane)
                await until_async(lambda: world.reader.lane(lane).failed_attempts >= 500)
                assert set(ids(receiver.arrivals)) == {str(n) for n in range(1, 41)}
                assert world.reader.lane(lane).open_items == 40
                receiver.script = [Answer(200)]
                await final(world, lane, 500)
        assert set(ids(receiver.arrivals)) == {str(n) for n in range(1, 501)}

    in_world(tmp_path, scenario, open_items=40)


def test_figures_are_on_the_board(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with Receiver(by_id({"2": Answer(500)})) as receiver:
            lane = world.subscribe("billing", receiver.url, tries=2)
            async with world.delivering():
                await world.publish(3, lane)
                await final(world, lane, 3)
        series = {(found.name, found.labels): found for found in world.board.face().series}
        # What is counted of each subscription is saved with it, and shown from there.
        assert not [name for name, labels in series if labels]
        assert sum(series["tidings_attempt_seconds", ()].buckets or []) == 4
        assert (series["tidings_inflight", ()].value, series["tidings_open_items", ()].value) == (0, 0)

    in_world(tmp_path, scenario)


def test_a_damaged_entry_becomes_a_dead_letter_and_stops_nothing(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with Receiver() as receiver:
            lane = world.subscribe("billing", receiver.url)
            async with world.delivering():
                await world.publish_raw(b"{no json", lane)
                await world.publish(1, lane)
                await final(world, lane, 2)
        assert ids(receiver.arrivals) == ["1"]
        (letter,) = world.reader.dead_letters(lane, 0, 10)
        assert letter.head == b"{no json"

    in_world(tmp_path, scenario)


def test_positions_of_another_partition_are_refused(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with Receiver() as receiver:
            lane = world.subscribe("billing", receiver.url)
            async with world.delivering():
                (position,) = await world.publish(1, lane)
                await final(world, lane, 1)
                stranger = Position(type(position.partition)(7), Offset(1))
                assert await world.command(lane, Redeliver(positions=(stranger,))) != ""
        assert len(receiver.arrivals) == 1

    in_world(tmp_path, scenario)


def test_a_change_and_a_deletion_hold_for_the_next_attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Nothing rings the lane, and nobody comes by to look: only the change itself can tell.
    monkeypatch.setattr("tidings.delivery.push.process.POLL", 600.0)

    async def scenario(world: World) -> None:
        with Receiver([Answer(503)]) as elsewhere:
            async with a_pushed_lane(world, [Answer(503)], tries=100_000) as (lane, receiver):
                await world.publish(1, lane)
                await asyncio.to_thread(receiver.wait_for, 2)
                world.change("billing", elsewhere.url, tries=100_000)
                await asyncio.to_thread(elsewhere.wait_for, 2)
                world.unsubscribe("billing")
                await until_async(lambda: world.reader.lane(lane).state == "deleted")

    in_world(tmp_path, scenario)
