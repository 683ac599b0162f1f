"""Feeds of a hub that really runs: a lane that the pipeline filled, and a hub that is killed while it is read."""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from typing import Any

import pytest

from tests.flows.test_publish_to_callback import a_topic, create
from tests.hub import Hub
from tidings.client.feeds import Batch, MemoryStore, SyncFeedClient

pytestmark = [pytest.mark.hub, pytest.mark.spark]


def lines(hub: Hub, path: str) -> list[Any]:
    answer = hub.call("GET", path)
    assert answer.status == 200, answer.body
    return [json.loads(line) for line in answer.body.split(b"\n") if line]


def test_a_subscriptions_feed_has_what_passed_its_filter_and_projection(hub: Hub) -> None:
    topic = a_topic(hub)
    wanted = {"topic": topic, "where": "n > 1", "project": {"exclude": ["secret"]}, "delivery": {"kind": "pull"}}
    create(hub, f"/api/subscriptions/{topic}-feed", wanted)
    for n in range(4):
        hub.call("POST", f"/api/topics/{topic}/events", {"n": n, "secret": "x"})
    events: list[Any] = []
    cursor = "_first"

    def read_on() -> bool:
        nonlocal cursor
        for line in lines(hub, f"/feeds/~{topic}-feed?n=1&cursor0={cursor}&wait=5"):
            if "data" in line:
                events.append(line["data"]["data"])
            else:
                cursor = line["cursor"]
        return len(events) >= 2

    hub.until(read_on, 60, "both events are in the feed")
    assert events == [{"n": 2}, {"n": 3}]
    hub.call("POST", f"/api/topics/{topic}/events", {"n": 9})
    hub.until(lambda: read_on() and len(events) == 3, 60, "the feed goes on")
    assert events[2] == {"n": 9}


@pytest.mark.parametrize(("order", "body"), [("rewind", {"to": "_first"}), ("redeliver", {"positions": ["first"]})])
def test_a_lane_that_was_replayed_no_longer_promises_exactly_once(hub: Hub, order: str, body: dict[str, Any]) -> None:
    topic = a_topic(hub, duplicates="forever")
    create(hub, f"/api/subscriptions/{topic}-feed", {"topic": topic, "delivery": {"kind": "pull"}})
    first = hub.call("POST", f"/api/topics/{topic}/events", {"n": 1}).json["first"]
    hub.until(lambda: len(lines(hub, f"/feeds/~{topic}-feed?n=1&cursor0=_first")) == 2, 60, "the event is in the lane")
    found = hub.call("GET", f"/feeds/~{topic}-feed").json
    assert found["exactlyOnce"] is True and found["consistent"] is False
    if "positions" in body:
        body = {"positions": [first]}
    answer = hub.call("POST", f"/api/subscriptions/{topic}-feed/{order}", body)
    assert answer.status in (200, 202), answer.body
    hub.until(lambda: hub.call("GET", f"/feeds/~{topic}-feed").json["exactlyOnce"] is False, 30, "the promise is taken back")
    assert hub.call("GET", f"/feeds/{topic}").json["exactlyOnce"] is True


def test_the_client_reads_the_feed_of_a_subscription(hub: Hub) -> None:
    topic = a_topic(hub)
    create(hub, f"/api/subscriptions/{topic}-feed", {"topic": topic, "where": "n > 1", "delivery": {"kind": "pull"}})
    for n in range(5):
        hub.call("POST", f"/api/topics/{topic}/events", {"n": n})
    store = MemoryStore()
    got: list[int] = []

    def take(tx: object, batch: Batch) -> None:
        got.extend(event.data["data"]["n"] for event in batch)

    def read_on() -> bool:
        with SyncFeedClient(f"http://127.0.0.1:{hub.port}/feeds/~{topic}-feed", store=store, wait=1) as client:
            client.run(take, follow=False)
        return len(got) >= 3

    hub.until(read_on, 60, "the client has read what passed the filter")
    assert got == [2, 3, 4]


@pytest.mark.slow
def test_a_hub_killed_in_mid_stream_loses_and_repeats_nothing(tmp_path: Path) -> None:
    """The reader keeps whole batches up to the last checkpoint it saw, as every reader of feeds does."""
    hub = Hub(tmp_path / "data").start().wait_live()
    try:
        assert hub.call("PUT", "/api/topics/orders", {"feed": {"partitions": 2}}).status == 201
        head = {"content-type": "application/cloudevents-batch+json"}
        for first in range(0, 20_000, 1000):
            batch = [
                {"specversion": "1.0", "id": str(n), "source": "/s", "type": "t", "subject": f"k{n % 50}", "data": "x" * 200}
                for n in range(first, first + 1000)
            ]
            assert hub.call("POST", "/api/topics/orders/events", batch, head).status == 202
        got: list[str] = []
        cursors = {0: "_first", 1: "_first"}
        cuts = 0
        while cuts < 3 or len(got) < 20_000:
            cuts += _read_a_page(hub, cursors, got, kill=cuts < 3)
            hub.until(lambda: hub.call("GET", "/health/live").status == 200, 60, "the api is back")
        assert sorted(got, key=int) == [str(n) for n in range(20_000)]
    finally:
        hub.stop()


def _read_a_page(hub: Hub, cursors: dict[int, str], got: list[str], kill: bool) -> int:
    """Read with both cursors; events count when their partition's checkpoint came. Whether the stream was cut."""
    query = "&".join(f"cursor{p}={cursor}" for p, cursor in cursors.items())
    connection = http.client.HTTPConnection("127.0.0.1", hub.port, timeout=120)
    held: dict[int, list[str]] = {0: [], 1: []}
    killed = False
    try:
        connection.request("GET", f"/feeds/orders?n=2&{query}&pagesizehint=10000")
        answer = connection.getresponse()
        while raw := answer.readline():
            if not raw.endswith(b"\n"):
                break
            line = json.loads(raw)
            if "data" in line:
                held[line["partition"]].append(line["data"]["id"])
                continue
            cursors[line["partition"]] = line["cursor"]
            got += held[line["partition"]]
            held[line["partition"]] = []
            if kill and not killed and got:
                killed = hub.kill("api")
    except (OSError, http.client.HTTPException):
        return 1
    finally:
        connection.close()
    return int(killed)
