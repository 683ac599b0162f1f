"""Batches: what goes out together, when, in which form, and what becomes of it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import a_position
from tests.delivery.push.lanes import a_parcel, a_state
from tests.delivery.worlds import World, a_pushed_lane, final, in_world
from tests.polling import until_async
from tests.receivers import Answer, Arrival, Receiver
from tidings.clock import Instant
from tidings.delivery.push.lane.batches import element_of
from tidings.delivery.push.lane.choice import Allowed, Attempt, Load, Wait, choose
from tidings.delivery.push.lane.entries import Parcel
from tidings.delivery.push.lane.state import LaneState
from tidings.delivery.push.policy.policy import BatchPolicy
from tidings.delivery.push.request.hub_formats import BINARY
from tidings.events.attribute_rules import checked
from tidings.events.stored import head_of
from tidings.lanes.port import StoredEntry
from tidings.log.commands import Activate, Redeliver, Rewind, Suspend
from tidings.log.position import embedded
from tidings.registry.delivery_options import BatchForm, Ordering


def test_the_forms_of_an_element() -> None:
    parcel = a_parcel(1, b'{"n": 1}', **{"ce-id": "a%20b"})
    assert element_of(BatchForm.PLAIN, parcel) == b'{"n": 1}'
    assert json.loads(element_of(BatchForm.WRAPPED, parcel)) == {
        "_w": True,
        "metadata": {"timestamp": 1234, "id": "a b", "externalMetadata": {}},
        "message": {"n": 1},
    }
    assert json.loads(element_of(BatchForm.PLAIN, a_parcel(1, b"hi", **{"content-type": "text/plain"}))) == "hi"
    assert json.loads(element_of(BatchForm.PLAIN, a_parcel(1, b"\xff", **{"content-type": "image/png"}))) == "/w=="


def test_a_wrapped_event_without_data_keeps_its_id() -> None:
    event = checked({"specversion": "1.0", "id": "a b", "source": "/orders", "type": "order.created"}, None)
    headers, body, *_ = BINARY.shared(StoredEntry(Instant(0), 0, head_of(event), None))
    element = json.loads(element_of(BatchForm.WRAPPED, Parcel(1, a_position(1), headers, body)))
    assert (element["metadata"]["id"], element["message"]["type"]) == ("a b", "order.created")


def gathering(*bodies: bytes) -> LaneState:
    """A lane of batches with these events open, and no others to come."""
    state = a_state()
    state.arrange(Ordering.STRICT, batched=True)
    state.live.more = False
    for number, body in enumerate(bodies, start=1):
        state.take(state.live, a_parcel(number, body), Instant(1), 1.0)
    return state


def chosen(state: LaneState, policy: BatchPolicy) -> list[int]:
    choice = choose(state, Allowed(Instant(1), 1.0), policy)
    return [item.number for item in choice.items] if isinstance(choice, Attempt) else []


def test_each_event_needs_its_length_and_two_bytes() -> None:
    policy = BatchPolicy(size=3, time=1.0, bytes=25)
    assert chosen(gathering(b"x" * 10, b"x" * 10), policy) == []
    assert chosen(gathering(b"x" * 10, b"x" * 10, b""), policy) == [1, 2]
    assert chosen(gathering(b"x" * 10, b"x" * 10, b"", b""), BatchPolicy(size=3, time=1.0, bytes=99)) == [1, 2, 3]


def test_a_batch_that_waits_for_its_retry_lets_nothing_pass() -> None:
    state, policy = gathering(b"1", b"2", b"3", b"4"), BatchPolicy(size=2, time=1.0)
    assert chosen(state, policy) == [1, 2]
    batch = [state.live.open[1], state.live.open[2]]
    state.seal(batch)
    state.begin(batch)
    for item in batch:
        state.retry(item, Instant(9), 9.0, "timeout")
    assert choose(state, Allowed(Instant(5), 5.0), policy) == Wait(9.0)
    assert choose(state, Allowed(Instant(9), 9.0), policy) == Load(state.live, batch)


def numbers(arrival: Arrival) -> list[int]:
    return [element["n"] if "n" in element else element["message"]["n"] for element in json.loads(arrival.body)]


WISHES: dict[str, Any] = {"preset": "hermes-batch", "batch_time": 0.2, "retry_first": 0.05, "retry_max": 0.05}


def test_a_batch_goes_out_when_it_is_full_or_its_time_has_come(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        async with a_pushed_lane(world, batch_size=10, **WISHES) as (lane, receiver):
            await world.publish(25, lane)
            published = world.clock.monotonic()
            await final(world, lane, 25)
        assert [len(numbers(arrival)) for arrival in receiver.arrivals] == [10, 10, 5]
        assert [n for arrival in receiver.arrivals for n in numbers(arrival)] == list(range(1, 26))
        assert receiver.arrivals[-1].at - published >= 0.15
        assert {arrival.headers["content-type"] for arrival in receiver.arrivals} == {"application/json"}
        assert json.loads(receiver.arrivals[0].body)[0]["metadata"]["id"] == "1"
        assert world.reader.lane(lane).delivered == 25

    in_world(tmp_path, scenario)


def test_what_does_not_fit_starts_the_next_batch(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        # {"n": 1} is 8 bytes, {"n": 10} is 9; with two each, 30 bytes hold three of the first and two of the others.
        async with a_pushed_lane(world, batch_bytes=30, batch_form=BatchForm.PLAIN, **WISHES) as (lane, receiver):
            await world.publish(11, lane)
            await final(world, lane, 11)
        assert [numbers(arrival) for arrival in receiver.arrivals] == [[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11]]

    in_world(tmp_path, scenario)


def test_an_event_larger_than_a_batch_goes_alone_in_its_turn(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with Receiver() as receiver:
            lane = world.subscribe("billing", receiver.url, batch_bytes=25, batch_form=BatchForm.PLAIN, **WISHES)
            await world.publish(1, lane)
            # Its number alone is longer than a batch.
            await world.publish(1, lane, first=10**30)
            await world.publish(2, lane, first=2)
            async with world.delivering():
                await final(world, lane, 4)
        assert [numbers(arrival) for arrival in receiver.arrivals] == [[1], [10**30], [2, 3]]
        assert (world.reader.lane(lane).delivered, world.reader.lane(lane).dead_letters) == (4, 0)

    in_world(tmp_path, scenario)


def test_an_event_that_fills_a_batch_by_its_bytes_waits_for_no_other(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        wishes = WISHES | {"batch_time": 3600.0}
        async with a_pushed_lane(world, batch_bytes=9, batch_form=BatchForm.PLAIN, **wishes) as (lane, receiver):
            await world.publish(1, lane)
            await final(world, lane, 1)
        assert [numbers(arrival) for arrival in receiver.arrivals] == [[1]]

    in_world(tmp_path, scenario)


def test_the_same_batch_is_sent_again_under_the_same_name(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        async with a_pushed_lane(world, [Answer(503), Answer(500), Answer()], batch_size=3, **WISHES) as (lane, receiver):
            await world.publish(6, lane)
            await final(world, lane, 6)
        assert [numbers(arrival) for arrival in receiver.arrivals] == [[1, 2, 3]] * 3 + [[4, 5, 6]]
        assert len({arrival.headers["tidings-batch-id"] for arrival in receiver.arrivals[:3]}) == 1
        assert [arrival.headers["tidings-attempt"] for arrival in receiver.arrivals] == ["1", "2", "3", "1"]

    in_world(tmp_path, scenario)


def test_a_batch_that_is_refused_is_dead_letters_and_can_be_sent_again(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        async with a_pushed_lane(world, [Answer(400), Answer()], batch_size=3, **WISHES) as (lane, receiver):
            await world.publish(3, lane)
            await final(world, lane, 3)
            assert len(world.reader.dead_letters(lane, 0, 10)) == 3
            assert await world.command(lane, Redeliver(dead_letters=True)) == ""
            await until_async(lambda: world.reader.lane(lane).delivered == 3)
        assert [numbers(arrival) for arrival in receiver.arrivals] == [[1, 2, 3], [1, 2, 3]]

    in_world(tmp_path, scenario)


def test_suspending_stops_a_retry_and_the_same_events_come_after_activation(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        async with a_pushed_lane(world, [Answer(503)], batch_size=3, **WISHES) as (lane, receiver):
            await world.publish(3, lane)
            await asyncio.to_thread(receiver.wait_for, 2)
            await world.command(lane, Suspend())
            tried = len(receiver.arrivals)
            await asyncio.sleep(0.3)
            assert len(receiver.arrivals) <= tried + 1
            receiver.script = [Answer()]
            await world.command(lane, Activate())
            await final(world, lane, 3)
        assert numbers(receiver.arrivals[-1]) == [1, 2, 3]
        assert world.reader.lane(lane).dead_letters == 0

    in_world(tmp_path, scenario)


def test_events_go_out_as_a_batch_of_cloudevents(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        async with a_pushed_lane(world, batch_size=4, batch_time=5.0) as (lane, receiver):
            await world.publish(4, lane)
            await final(world, lane, 4)
        (arrival,) = receiver.arrivals
        assert arrival.headers["content-type"] == "application/cloudevents-batch+json; charset=utf-8"
        assert [event["id"] for event in json.loads(arrival.body)] == ["1", "2", "3", "4"]

    in_world(tmp_path, scenario)


@pytest.mark.parametrize("to", [0, 2])
def test_a_rewind_while_a_batch_forms_loses_nothing(tmp_path: Path, to: int) -> None:
    async def scenario(world: World) -> None:
        async with a_pushed_lane(world, batch_size=100, **(WISHES | {"batch_time": 0.6})) as (lane, receiver):
            await world.publish(2, lane)
            await final(world, lane, 2)
            await world.publish(3, lane, first=3)
            await world.command(lane, Rewind(to=embedded(to)))
            await final(world, lane, 5)
        assert sorted({n for arrival in receiver.arrivals for n in numbers(arrival)}) == [1, 2, 3, 4, 5]

    in_world(tmp_path, scenario)
