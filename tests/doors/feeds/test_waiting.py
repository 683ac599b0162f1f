"""Requests that wait for events."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.api_process import ApiProcess, an_api
from tests.doors.feeds.reading import Feed, code_of, taken_apart, until_waiting
from tests.polling import until
from tidings.access.authentication import token_digest
from tidings.delivery.feeds import long_polls
from tidings.delivery.feeds.topic_feed import ReadyTopic
from tidings.doors import growth as hints
from tidings.doors.feeds import response
from tidings.log.port import Slice


def later(seconds: float, act) -> threading.Timer:  # type: ignore[no-untyped-def]
    timer = threading.Timer(seconds, act)
    timer.start()
    return timer


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_ft_27_an_answer_comes_as_soon_as_an_event_does(api: ApiProcess, version: str) -> None:
    feed = Feed(api, 1)
    feed.publish_keyed(3)
    read = feed.v1(1, {0: "_last"}) if version == "v1" else feed.v2(0, "_last")
    began = time.monotonic()
    later(1, lambda: feed.publish({"id": "new"}))
    page = feed.v1(1, read.cursors, wait=10) if version == "v1" else feed.v2(0, read.cursor, wait=10)
    assert page.ids == ["new"] and 0.9 < time.monotonic() - began < 5


def test_ft_27_what_is_no_time_is_refused_and_zero_does_not_wait(api: ApiProcess) -> None:
    feed = Feed(api, 1)
    for wait in ("x", "-1", "1.5", ""):
        assert code_of(feed.get(n=1, cursor0="_last", wait=wait)) == (400, "wait-invalid")
    assert feed.v1(1, {0: "_last"}, wait=0).events == []


def test_waiting_ends_at_once_when_there_is_something_already(api: ApiProcess) -> None:
    feed = Feed(api, 2)
    feed.publish_keyed(10)
    began = time.monotonic()
    assert feed.v1(2, {0: "_first", 1: "_last"}, wait=60).events
    assert time.monotonic() - began < 30


@pytest.fixture
def lively(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(response, "KEEP_ALIVE", 0.3)
    yield


def test_ft_28_waiting_for_what_does_not_come(api: ApiProcess, lively: None) -> None:
    feed = Feed(api, 1)
    start = feed.v2(0, "_last").cursor
    later(0.5, lambda: feed.publish({"type": "hidden"}, {"type": "hidden"}))
    began = time.monotonic()
    answer = feed.get(
        "/events", **{"token": feed.discover()["token"], "partition": 0, "cursor": start, "wait": 2, "event-types": "shown"}
    )
    assert 1.9 < time.monotonic() - began < 10
    assert answer.body.startswith(b"\n") and b"\r" not in answer.body
    page = taken_apart(answer)
    assert page.events == [] and int(page.cursor) == int(feed.v2(0, "_last").cursor) > int(start)


def test_events_of_other_partitions_wake_nobody_and_an_event_of_any_does(api: ApiProcess) -> None:
    feed = Feed(api, 8)
    feed.publish(*({"subject": f"key-{n}"} for n in range(100)))
    homes = {event["subject"]: p for p in range(8) for event in feed.all_v1(8, p)}
    key = {p: subject for subject, p in homes.items()}
    starts = feed.v1(8, {0: "_last", 1: "_last"}).cursors
    later(0.2, lambda: feed.publish({"subject": key[5], "id": "not meant"}))
    later(0.8, lambda: feed.publish({"subject": key[1], "id": "meant"}))
    page = feed.v1(8, starts, wait=20)
    assert page.ids == ["meant"] and page.cursors.keys() == {0, 1}


def test_headers_come_at_once(api: ApiProcess) -> None:
    feed = Feed(api, 1)
    with socket.create_connection(("127.0.0.1", api.port), timeout=10) as client:
        client.sendall(f"GET {feed.path}?n=1&cursor0=_last&wait=30 HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert client.recv(1000).startswith(b"HTTP/1.1 200 OK\r\n")


def test_many_wait_together_and_all_are_woken(api: ApiProcess) -> None:
    feed = Feed(api, 4)
    feed.publish_keyed(10)
    cursors = feed.v1(1, {0: "_last"}).cursors
    with ThreadPoolExecutor(200) as pool:
        waiting = [pool.submit(feed.v1, 1, cursors, wait=60) for _ in range(200)]
        until_waiting(api, 200)
        new = feed.publish({}, {}, {})
        assert all(one.result(30).ids == new for one in waiting)


def test_growing_partitions_end_a_wait_of_v2_but_not_of_v1(api: ApiProcess) -> None:
    feed = Feed(api, 1)
    cursor, token = feed.v2(0, "_last").cursor, feed.discover()["token"]
    later(0.3, lambda: feed.repartition("close", 2))
    later(3.0, lambda: feed.publish({"id": "after"}))
    with ThreadPoolExecutor(2) as pool:
        old = pool.submit(feed.v1, 1, {0: cursor}, wait=30)
        new = pool.submit(feed.v2, 0, cursor, token, wait=30)
        assert new.result(30).lines == [{"cursor": cursor}]
        assert old.result(30).ids == ["after"]


def test_a_wait_of_v2_ends_at_once_when_partitions_grow(api: ApiProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else wakes it here: no beat, no event, no time that is over."""
    monkeypatch.setattr(long_polls, "BEAT", 1000.0)
    monkeypatch.setattr(hints, "LOOK_AGAIN", 1000.0)
    feed = Feed(api, 1)
    cursor, token = feed.v2(0, "_last").cursor, feed.discover()["token"]
    began = time.monotonic()
    later(0.5, lambda: feed.repartition("redistribute", 2))
    assert feed.v2(0, cursor, token, wait=60).lines == [{"cursor": cursor}]
    assert time.monotonic() - began < 8


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_who_waits_by_a_deleted_topic_is_let_go_at_once(api: ApiProcess, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """Also when a topic of the same name is there again at once."""
    monkeypatch.setattr(long_polls, "BEAT", 1000.0)
    monkeypatch.setattr(hints, "LOOK_AGAIN", 1000.0)
    feed = Feed(api, 1)
    cursor, token = feed.v2(0, "_last").cursor, feed.discover()["token"]
    with ThreadPoolExecutor(1) as pool:
        if version == "v1":
            waiting = pool.submit(feed.v1, 1, {0: cursor}, wait=60)
        else:
            waiting = pool.submit(feed.v2, 0, cursor, token, wait=60)
        until_waiting(api, 1)
        began = time.monotonic()
        assert api.call("DELETE", f"/api/topics/{feed.name}").status == 204
        assert api.call("PUT", f"/api/topics/{feed.name}", {}).status == 201
        assert waiting.result(60).cursor == cursor
        assert time.monotonic() - began < 20


def test_a_wait_of_v2_ends_when_a_promise_is_withdrawn(api: ApiProcess) -> None:
    feed = Feed(api, 1, duplicates="forever")
    found, cursor = feed.discover(), feed.v2(0, "_last").cursor
    assert found["exactlyOnce"] is True
    with ThreadPoolExecutor(2) as pool:
        new = pool.submit(feed.v2, 0, cursor, found["token"], wait=60)
        old = pool.submit(feed.v1, 1, {0: cursor}, wait=60)
        until_waiting(api, 2)
        assert api.call("PUT", f"/api/topics/{feed.name}", {"duplicates": "off"}).status == 200
        assert new.result(20).lines == [{"cursor": cursor}]
        feed.publish({"id": "after"})
        assert old.result(30).ids == ["after"]
    assert code_of(feed.get("/events", token=found["token"], partition=0, cursor=cursor)) == (409, "token-stale")
    assert feed.discover()["exactlyOnce"] is False


def test_a_wait_ends_when_events_were_removed_before_they_could_be_read(
    api: ApiProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = Feed(api, 1)
    start = feed.v1(1, {0: "_last"}).cursors
    monkeypatch.setattr(ReadyTopic, "slice", lambda self, after, *_: Slice([], after, overtaken=True))
    later(0.5, lambda: feed.publish({}))
    began = time.monotonic()
    assert feed.v1(1, start, wait=60).cursors == start
    assert feed.v1(1, start, wait=60).cursors == start
    assert time.monotonic() - began < 30


@contextmanager
def a_guarded_api(folder: Path, seats: int) -> Iterator[tuple[ApiProcess, dict[str, str], dict[str, str]]]:
    """A hub where every consumer has so many seats, and the headers of two consumers."""
    tokens = [{"name": name, "sha256": token_digest(name), "rights": ["read", "publish", "admin"]} for name in ("ann", "bob")]
    with an_api(folder, access={"mode": "tokens", "tokens": tokens}, feeds={"long_polls": seats}) as api:
        as_ann, as_bob = ({"authorization": f"Bearer {name}"} for name in ("ann", "bob"))
        api.call("PUT", "/api/topics/orders", {"feed": {"partitions": 4}}, as_ann)
        yield api, as_ann, as_bob


PATH = "/feeds/orders?n=1&cursor0=_last&wait="


def waits_out(api: ApiProcess, who: dict[str, str]) -> bool:
    """Whether a request of this consumer waits for its second."""
    began = time.monotonic()
    assert taken_apart(api.call("GET", f"{PATH}1", headers=who)).events == []
    return time.monotonic() - began > 0.9


def test_one_consumer_holds_only_so_many_requests_open_and_gets_further_answers_at_once(tmp_path: Path) -> None:
    with a_guarded_api(tmp_path, 3) as (api, as_ann, as_bob), ExitStack() as held:
        for _ in range(3):
            held.enter_context(waiting_socket(api, f"{PATH}60", "ann"))
        page = taken_apart(api.call("GET", f"{PATH}60", headers=as_ann))
        assert page.events == [] and page.cursors.keys() == {0}
        scraped = api.call("GET", "/metrics", headers=as_ann).body.decode()
        assert 'tidings_feed_waits_refused_total{consumer="ann"} 1' in scraped
        assert waits_out(api, as_bob)
        assert api.publish("orders", {"n": 1}, authorization="Bearer ann").status == 202
        # They are answered now, which takes a moment; then there is room again.
        until(lambda: waits_out(api, as_ann), "those who were answered no longer count")


def test_who_has_events_to_read_needs_no_seat(tmp_path: Path) -> None:
    """The partitions of a busy feed must not starve because the quiet ones hold all seats."""
    with a_guarded_api(tmp_path, 1) as (api, as_ann, _), waiting_socket(api, f"{PATH}60", "ann"):
        api.call("PUT", "/api/topics/busy", {}, as_ann)
        assert api.publish("busy", {"n": 1}, authorization="Bearer ann").status == 202
        for _ in range(3):
            assert len(taken_apart(api.call("GET", "/feeds/busy?n=1&cursor0=_first&wait=60", headers=as_ann)).events) == 1


@contextmanager
def waiting_socket(api: ApiProcess, path: str, token: str) -> Iterator[socket.socket]:
    """A connection whose request is accepted and waits."""
    with socket.create_connection(("127.0.0.1", api.port), timeout=80) as client:
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
        assert client.recv(1000).startswith(b"HTTP/1.1 200")
        yield client


def test_a_stopping_hub_lets_everyone_go_with_a_checkpoint(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        with an_api(tmp_path) as api:
            feed = Feed(api, 1)
            cursor = feed.v1(1, {0: "_last"}).cursors[0]
            waiting = pool.submit(feed.v1, 1, {0: cursor}, wait=60)
            until_waiting(api, 1)
        assert waiting.result(20).cursors == {0: cursor}


def test_who_left_does_not_count_as_waiting(tmp_path: Path) -> None:
    with a_guarded_api(tmp_path, 1) as (api, as_ann, _):
        with waiting_socket(api, f"{PATH}60", "ann"):
            assert not waits_out(api, as_ann)
        until(lambda: waits_out(api, as_ann), "who left no longer counts")
