"""What counts as delivered: what the client's machine acknowledged and the connection outlived; the rest comes again."""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Iterator

import pytest

from tests.builders import a_position
from tests.doors.sse.worlds import Reader, Streaming, streaming
from tests.polling import until
from tidings.doors.sse.receipts import BEHIND, SURE, Receipts

ALL = 1 << 40


def written(*sizes: int, at: float = 0.0) -> Receipts:
    receipts = Receipts()
    for number, size in enumerate(sizes, start=1):
        receipts.wrote(a_position(number), size, at)
    return receipts


def test_what_is_acknowledged_is_certain_when_the_connection_has_outlived_it() -> None:
    receipts = written(100, 100)
    assert receipts.certain(0, SURE / 2) == []
    assert receipts.certain(0, SURE) == [a_position(1), a_position(2)]
    assert (len(receipts), receipts.look_in(SURE)) == (0, math.inf)


def test_what_is_not_acknowledged_is_never_certain() -> None:
    receipts = written(100, 100)
    assert receipts.certain(ALL, 10 * SURE) == []
    assert receipts.certain(ALL, 10 * SURE, ended=True) == []


def test_time_says_nothing_while_the_client_does_not_read() -> None:
    receipts = written(100, 100)
    assert receipts.certain(50, 10 * SURE) == []
    assert receipts.certain(0, 10 * SURE) == [a_position(1), a_position(2)]


def test_what_was_just_written_does_not_hold_up_what_is_older() -> None:
    receipts = written(100)
    receipts.wrote(a_position(2), 100, SURE)
    assert receipts.certain(100, SURE) == [a_position(1)]


def test_who_reads_much_need_not_wait() -> None:
    receipts = written(100, BEHIND, 100)
    assert receipts.certain(0, 0.0) == [a_position(1)]


def test_at_the_end_what_is_acknowledged_counts() -> None:
    assert written(100, 100).certain(100, 0.0, ended=True) == [a_position(1)]


def test_looks_are_rare_while_nothing_can_have_changed() -> None:
    assert written(100).look_in(0.25) == SURE - 0.25
    stuck = written(100, BEHIND)
    pauses = []
    for _ in range(20):
        stuck.certain(ALL, 0.0)
        pauses.append(stuck.look_in(0.0))
    assert pauses == sorted(pauses) and pauses[-1] < SURE


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Streaming]:
    with streaming(tmp_path_factory.mktemp("receipts")) as world:
        yield world


def read_and_die(world: Streaming, path: str, size: int, version: bytes = b"1.1") -> None:
    """Read so many bytes, as soon as there are more, and die with the rest unread."""
    with socket.create_connection(("127.0.0.1", world.api.port)) as client:
        client.sendall(b"GET %b HTTP/%b\r\nhost: localhost\r\n\r\n" % (path.encode(), version))
        while len(client.recv(1 << 20, socket.MSG_PEEK)) < 10 * size:
            time.sleep(0.001)
        assert client.recv(size)


@pytest.mark.parametrize("ending", ["", "?limit=64"])
def test_a_client_that_dies_after_300_bytes_loses_nothing(world: Streaming, ending: str) -> None:
    name = f"dies{len(ending)}"
    lane = world.subscribe(name)
    world.publish(64, lane)
    read_and_die(world, f"/api/subscriptions/{name}/stream{ending}", 300)
    again = Reader(world.api, f"/api/subscriptions/{name}/stream?limit=64")
    assert again.numbers(64) == list(range(1, 65))
    until(lambda: world.delivery.lane(lane).delivered == 64)


def test_a_client_that_reads_and_closes_is_not_given_it_again(world: Streaming) -> None:
    lane = world.subscribe("closes")
    world.publish(3, lane)
    reader = Reader(world.api, "/api/subscriptions/closes/stream")
    assert reader.numbers(3) == [1, 2, 3]
    reader.close()
    world.publish(1, lane, first=4)
    assert Reader(world.api, "/api/subscriptions/closes/stream?limit=1").numbers(1) == [4]


def test_a_client_of_http_1_0_reads_to_the_end_and_is_done(world: Streaming) -> None:
    lane = world.subscribe("old")
    offsets = world.publish(2, lane)
    with socket.create_connection(("127.0.0.1", world.api.port)) as client:
        client.sendall(b"GET /api/subscriptions/old/stream?limit=2 HTTP/1.0\r\nhost: localhost\r\n\r\n")
        body = b"".join(iter(lambda: client.recv(4096), b""))
    assert body.count(b"\ndata: ") == 2
    world.delivered(lane, offsets[-1])


def test_the_events_own_id_is_good_for_going_on(world: Streaming) -> None:
    lane = world.subscribe("own")
    world.publish(5, lane)
    frames = Reader(world.api, "/api/subscriptions/own/stream?limit=5").frames(5)
    again = Reader(world.api, "/api/subscriptions/own/stream?limit=2", last_event_id=frames[2][1]["id"])
    assert again.numbers(2) == [4, 5]


def test_of_events_with_one_id_the_oldest_is_meant(world: Streaming) -> None:
    lane = world.subscribe("twins")
    for n in (1, 2, 3):
        named = {"ce-specversion": "1.0", "ce-id": "same", "ce-source": f"/{n}", "ce-type": "t"}
        assert world.api.call("POST", "/api/topics/orders/events", {"n": n}, headers=named).status == 202
    world.route(lane)
    again = Reader(world.api, "/api/subscriptions/twins/stream?limit=2", last_event_id="same")
    assert again.numbers(2) == [2, 3]


def test_what_a_client_has_seen_does_not_come_again_though_the_owner_died_before_it_saved(world: Streaming) -> None:
    lane = world.subscribe("unsaved")
    world.publish(50, lane)
    reader = Reader(world.api, "/api/subscriptions/unsaved/stream")
    last, _ = reader.frames(50)[-1]
    # Within the second in which nothing is certain yet.
    world.kill_deliver()
    reader.close()
    world.start_deliver()
    world.publish(1, lane, first=51)
    # Kept until the end: who hangs up with the end of the answer unread may not have its last event.
    again = Reader(world.api, "/api/subscriptions/unsaved/stream?limit=1", last_event_id=last)
    assert again.numbers(1) == [51]
    until(lambda: world.delivery.lane(lane).delivered == 51)
