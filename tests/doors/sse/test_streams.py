"""Streams of the native door, over real HTTP, with a real deliver process behind it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from httpx_sse import connect_sse

from tests.doors.sse.worlds import Reader, Streaming, streaming
from tests.polling import until


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Streaming]:
    with streaming(tmp_path_factory.mktemp("streams")) as world:
        yield world


def test_what_waited_comes_first_and_what_is_new_comes_at_once(world: Streaming) -> None:
    lane = world.subscribe("first")
    world.publish(3, lane)
    reader = Reader(world.api, "/api/subscriptions/first/stream")
    assert reader.numbers(3) == [1, 2, 3]
    last = world.publish(2, lane, first=4)[-1]
    assert reader.numbers(2) == [4, 5]
    world.delivered(lane, last)
    reader.close()


def test_ft_37_a_pretty_payload_is_one_compact_line(world: Streaming) -> None:
    lane = world.subscribe("pretty")
    pretty = b'{\r\n  "b": 1.50,\n  "a": [ 1e3, "x  y\\n" ]\n}'
    assert world.api.publish("orders", pretty, "application/json").status == 202
    world.route(lane)
    reader = Reader(world.api, "/api/subscriptions/pretty/stream?limit=1")
    _, frame = (line.rstrip(b"\n") for line in reader.lines() if line.strip())
    assert frame.endswith(b',"data":{"b":1.50,"a":[1e3,"x  y\\n"]}}')
    reader.close()


def test_what_was_read_is_delivered_and_does_not_come_again(world: Streaming) -> None:
    lane = world.subscribe("once")
    world.publish(2, lane)
    reader = Reader(world.api, "/api/subscriptions/once/stream?limit=2")
    assert reader.numbers(3) == [1, 2]
    world.publish(1, lane, first=3)
    again = Reader(world.api, "/api/subscriptions/once/stream?limit=1")
    assert again.numbers(2) == [3]
    until(lambda: world.delivery.lane(lane).delivered == 3)


def test_a_second_stream_ends_the_first_and_nothing_is_lost(world: Streaming) -> None:
    lane = world.subscribe("taken-over")
    world.publish(1, lane)
    first = Reader(world.api, "/api/subscriptions/taken-over/stream")
    assert first.numbers(1) == [1]
    second = Reader(world.api, "/api/subscriptions/taken-over/stream?limit=2")
    assert first.answer().status == 200
    world.publish(2, lane, first=2)
    assert second.numbers(3) == [2, 3]


def test_a_stream_goes_on_after_the_event_that_its_client_saw_last(world: Streaming) -> None:
    lane = world.subscribe("resumed")
    world.publish(10, lane)
    frames = Reader(world.api, "/api/subscriptions/resumed/stream?limit=10").frames(10)
    third, _ = frames[2]
    again = Reader(world.api, "/api/subscriptions/resumed/stream?limit=8", last_event_id=third)
    world.publish(1, lane, first=11)
    assert again.numbers(8) == [4, 5, 6, 7, 8, 9, 10, 11]
    # What came once more is no second delivery.
    until(lambda: world.delivery.lane(lane).delivered == 11)


def test_an_unknown_last_event_is_no_hindrance(world: Streaming) -> None:
    lane = world.subscribe("strange")
    world.publish(2, lane)
    stranger = "5a1e9d2c-0000-4000-8000-000000000000"
    reader = Reader(world.api, "/api/subscriptions/strange/stream?limit=2", last_event_id=stranger)
    assert reader.numbers(2) == [1, 2]


def test_what_is_open_among_what_is_asked_for_once_more_comes_once(world: Streaming) -> None:
    lane = world.subscribe("half-read")
    world.publish(5, lane)
    frames = Reader(world.api, "/api/subscriptions/half-read/stream?limit=2").frames(2)
    reader = Reader(world.api, "/api/subscriptions/half-read/stream?limit=5", last_event_id=frames[0][0])
    world.publish(1, lane, first=6)
    assert reader.numbers(5) == [2, 3, 4, 5, 6]


def test_a_limit_leaves_the_rest_unread(world: Streaming) -> None:
    lane = world.subscribe("limited")
    offsets = world.publish(5, lane)
    assert Reader(world.api, "/api/subscriptions/limited/stream?limit=2").numbers(5) == [1, 2]
    world.delivered(lane, offsets[1])
    assert world.delivery.lane(lane).delivered == 2
    assert Reader(world.api, "/api/subscriptions/limited/stream?limit=3").numbers(3) == [3, 4, 5]


def test_a_stream_can_be_ended_by_somebody_else(world: Streaming) -> None:
    world.subscribe("ended")
    reader = Reader(world.api, "/api/subscriptions/ended/stream")
    assert reader.response.status == 200
    assert world.api.call("DELETE", "/api/subscriptions/ended/stream").status == 204
    assert reader.answer().body == b""
    assert world.api.call("DELETE", "/api/subscriptions/ended/stream").status == 204


def test_a_stream_ends_with_its_subscription(world: Streaming) -> None:
    world.subscribe("deleted")
    reader = Reader(world.api, "/api/subscriptions/deleted/stream")
    assert reader.response.status == 200
    assert world.api.call("DELETE", "/api/subscriptions/deleted").status == 204
    assert reader.answer().body == b""
    assert world.api.call("GET", "/api/subscriptions/deleted/stream").status == 404


def test_only_streamed_subscriptions_have_a_stream(world: Streaming) -> None:
    world.subscribe("fetched", kind="pull")
    assert world.api.call("GET", "/api/subscriptions/fetched/stream").status == 409


def test_a_client_that_leaves_frees_its_stream_at_once(world: Streaming) -> None:
    lane = world.subscribe("left")
    world.publish(1, lane)
    reader = Reader(world.api, "/api/subscriptions/left/stream")
    assert reader.numbers(1) == [1]
    until(lambda: world.open_streams() > 0)
    reader.close()
    until(lambda: world.open_streams() == 0)


def test_a_slow_reader_is_sent_no_more_than_it_takes_and_loses_nothing(world: Streaming) -> None:
    lane = world.subscribe("slow")
    filler = b"x" * 20_000
    for first in (1, 101, 201):
        world.publish(100, lane, first=first, filler=filler)
    reader = Reader(world.api, "/api/subscriptions/slow/stream?limit=300")
    assert reader.numbers(1) == [1]
    until(lambda: world.delivery.lane(lane).delivered > 1)
    settled = world.delivery.lane(lane).delivered
    # The kernel's buffers hold some; what they do not hold is not delivered.
    assert settled < 300
    assert reader.numbers(299) == list(range(2, 301))
    until(lambda: world.delivery.lane(lane).delivered == 300)


def test_an_owner_that_is_killed_in_the_middle_costs_nothing(world: Streaming) -> None:
    lane = world.subscribe("survivor")
    world.publish(20, lane)
    reader = Reader(world.api, "/api/subscriptions/survivor/stream")
    assert reader.numbers(20) == list(range(1, 21))
    world.kill_deliver()
    world.publish(20, lane, first=21)
    world.start_deliver()
    # The client has seen the first twenty on this very stream: they do not come again, whatever the owner had saved.
    assert reader.numbers(20) == list(range(21, 41))
    reader.close()


def test_a_client_from_elsewhere_reads_and_resumes(world: Streaming) -> None:
    lane = world.subscribe("foreign")
    world.publish(3, lane)
    path = f"http://127.0.0.1:{world.api.port}/api/subscriptions/foreign/stream"
    with httpx.Client() as client:
        with connect_sse(client, "GET", path, params={"limit": 3}) as source:
            events = list(source.iter_sse())
        assert [event.json()["data"]["n"] for event in events] == [1, 2, 3]
        with connect_sse(client, "GET", path, params={"limit": 2}, headers={"last-event-id": events[0].id}) as source:
            assert [event.json()["data"]["n"] for event in source.iter_sse()] == [2, 3]


def test_the_api_that_is_stopped_ends_its_streams_and_loses_nothing(tmp_path: Path) -> None:
    with streaming(tmp_path) as hub:
        lane = hub.subscribe("patient")
        hub.publish(1, lane)
        reader = Reader(hub.api, "/api/subscriptions/patient/stream")
        assert reader.numbers(1) == [1]
        began = time.monotonic()
    # The world is closed: the api ended although a stream was open.
    assert time.monotonic() - began < 7
    assert reader.answer().body.strip() == b""


def test_comments_keep_a_stream_open_and_events_follow_them(tmp_path: Path) -> None:
    with streaming(tmp_path, sse={"keep_alive": "100ms"}) as hub:
        lane = hub.subscribe("quiet")
        reader = Reader(hub.api, "/api/subscriptions/quiet/stream?limit=1")
        assert [reader.response.readline() for _ in range(4)] == [b": keep-alive\n", b"\n"] * 2
        hub.publish(1, lane)
        assert reader.numbers(1) == [1]


def test_more_streams_than_are_allowed_are_refused(tmp_path: Path) -> None:
    with streaming(tmp_path) as hub:
        hub.kill_deliver()
        hub.start_deliver(TIDINGS_SSE_MAX_STREAMS="1")
        for name in ("one", "two"):
            hub.subscribe(name)
        first = Reader(hub.api, "/api/subscriptions/one/stream")
        assert first.response.status == 200
        refused = Reader(hub.api, "/api/subscriptions/two/stream").answer()
        assert (refused.status, refused.json["code"]) == (503, "overloaded")
        # Who takes over a stream needs no further one.
        assert Reader(hub.api, "/api/subscriptions/one/stream").response.status == 200
