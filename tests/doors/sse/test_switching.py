"""Callback to stream and back (HOR-T29), and retention on streams (HOR-T51): nothing is lost, nothing outlives its time."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator

import pytest

from tests.doors.sse.worlds import Reader, Streaming, streaming
from tests.polling import until
from tests.receivers import Answer, Receiver


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Streaming]:
    with streaming(tmp_path_factory.mktemp("switching")) as world:
        yield world


def test_t29_what_waits_behind_a_breaker_goes_to_the_stream(world: Streaming) -> None:
    with Receiver([Answer(503)]) as receiver:
        wishes = {"preset": "horizon", "tries": 1, "probeInterval": "1h"}
        lane = world.subscribe("switched", "push", url=receiver.url, **wishes)
        world.publish(5, lane)
        until(lambda: world.delivery.lane(lane).state == "open")
        world.subscribe("switched")
        reader = Reader(world.api, "/api/subscriptions/switched/stream?limit=6")
        world.publish(1, lane, first=6)
        assert reader.numbers(6) == [1, 2, 3, 4, 5, 6]
        until(lambda: world.delivery.lane(lane).delivered == 6)
        assert world.delivery.lane(lane).state == "active"


def test_what_was_not_read_is_pushed_when_a_stream_becomes_a_callback(world: Streaming) -> None:
    lane = world.subscribe("back")
    world.publish(4, lane)
    reader = Reader(world.api, "/api/subscriptions/back/stream?limit=2")
    assert reader.numbers(2) == [1, 2]
    with Receiver() as receiver:
        world.subscribe("back", "push", url=receiver.url)
        until(lambda: len(receiver.arrivals) == 2)
        until(lambda: world.delivery.lane(lane).delivered == 4)
        assert sorted(b'"n": 3' in arrival.body for arrival in receiver.arrivals) == [False, True]


def test_an_open_stream_ends_when_its_subscription_becomes_a_callback(world: Streaming) -> None:
    lane = world.subscribe("torn")
    world.publish(1, lane)
    reader = Reader(world.api, "/api/subscriptions/torn/stream")
    assert reader.numbers(1) == [1]
    with Receiver() as receiver:
        world.subscribe("torn", "push", url=receiver.url)
        world.publish(1, lane, first=2)
        assert reader.answer().body.strip() == b""
        until(lambda: len(receiver.arrivals) == 1)


def test_what_was_on_its_way_to_a_stream_is_pushed_in_the_form_of_a_callback(world: Streaming) -> None:
    lane = world.subscribe("unread")
    with socket.socket() as client, Receiver() as receiver:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", world.api.port))
        client.sendall(b"GET /api/subscriptions/unread/stream HTTP/1.1\r\nhost: localhost\r\n\r\n")
        world.publish(8, lane, filler=b"x" * 50_000)
        assert client.recv(1)
        world.subscribe("unread", "push", url=receiver.url)
        until(lambda: world.delivery.lane(lane).delivered == 8)
    assert receiver.arrivals
    assert {json.loads(arrival.body)["data"]["n"] for arrival in receiver.arrivals} <= set(range(1, 9))


def test_what_is_past_its_retention_is_streamed_neither_at_first_nor_again(world: Streaming) -> None:
    lane = world.subscribe("short", retention="1s")
    world.publish(2, lane)
    first = Reader(world.api, "/api/subscriptions/short/stream?limit=1").frames(2)
    began = time.monotonic()
    until(lambda: time.monotonic() > began + 1.2)
    world.publish(1, lane, first=3)
    assert Reader(world.api, "/api/subscriptions/short/stream?limit=1").numbers(1) == [3]
    until(lambda: world.delivery.lane(lane).expired == 1)
    # Everything after the first: the second is over, the third is young.
    again = Reader(world.api, "/api/subscriptions/short/stream?limit=1", last_event_id=first[0][0])
    assert again.numbers(1) == [3]
