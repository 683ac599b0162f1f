"""Lanes filled from the log: older events come first and in order, live ones follow, whatever is killed meanwhile."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.hub import Hub
from tests.receivers import Receiver

pytestmark = [pytest.mark.hub, pytest.mark.spark]

EVENTS = 30_000
CHOSEN = 100
"""One event of so many is delivered."""


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    started = Hub(tmp_path / "data", "[pipeline]\nbatch_events = 2000\n")
    try:
        yield started.start().wait_ready()
    finally:
        started.stop()


def publish(hub: Hub, first: int, count: int, topic: str = "orders") -> None:
    for begin in range(first, first + count, 1000):
        lines = b"\n".join(b'{"n":%d,"chosen":%d}' % (n, n % CHOSEN) for n in range(begin, min(begin + 1000, first + count)))
        answer = hub.call("POST", f"/api/topics/{topic}/events", lines, {"content-type": "application/x-ndjson"})
        assert answer.status == 202, answer.body


def state_of(hub: Hub, name: str) -> Any:
    return hub.call("GET", f"/api/subscriptions/{name}/state").json


def numbers(receiver: Receiver) -> list[int]:
    return [json.loads(arrival.body)["data"]["n"] for arrival in receiver.arrivals]


def matching(first: int, end: int) -> list[int]:
    return [n for n in range(first, end) if n % CHOSEN == 0]


def test_a_subscription_that_starts_first_gets_everything_once_and_in_order_though_the_pipeline_is_killed(hub: Hub) -> None:
    assert hub.call("PUT", "/api/topics/orders", {}).status == 201
    publish(hub, 0, EVENTS)
    with Receiver() as receiver:
        body = {"topic": "orders", "where": "chosen = 0", "start": "first"}
        delivery = {"kind": "push", "url": receiver.url, "ordering": "strict"}
        assert hub.call("PUT", "/api/subscriptions/late", {**body, "delivery": delivery}).status == 201
        assert state_of(hub, "late")["refill"]["state"] in ("waiting", "filling")
        for begun in (1, 40):
            hub.until(lambda begun=begun: len(receiver.arrivals) >= begun, 120, f"{begun} older events came")
            hub.kill("pipeline")
            publish(hub, EVENTS + (0 if begun == 1 else 1000), 1000)
        hub.until(lambda: (state_of(hub, "late")["refill"] or {}).get("state") == "done", 180, "the lane is filled")
        publish(hub, EVENTS + 2000, 500)
        wanted = matching(0, EVENTS + 2500)
        receiver.wait_for(len(wanted), 120)
        hub.until(lambda: state_of(hub, "late")["lag"] == 0, 60, "nothing is left")
    assert numbers(receiver) == wanted
    shown = hub.call("GET", "/api/status").json["subscriptions"]
    assert [(one["name"], one["refill"]) for one in shown] == [("late", None)]


def test_a_lane_is_filled_again_by_the_filter_of_today_and_live_ones_of_others_are_not_delayed(hub: Hub) -> None:
    assert hub.call("PUT", "/api/topics/orders", {}).status == 201
    with Receiver() as receiver, Receiver() as others:
        for name, url in (("one", receiver.url), ("other", others.url)):
            body = {"topic": "orders", "where": "n = 3", "delivery": {"kind": "push", "url": url, "ordering": "strict"}}
            assert hub.call("PUT", f"/api/subscriptions/{name}", body).status == 201
        publish(hub, 0, 10)
        receiver.wait_for(1, 60)
        between = datetime.now(UTC).isoformat()
        time.sleep(0.01)
        publish(hub, 0, 10)
        receiver.wait_for(2, 60)
        hub.until(lambda: state_of(hub, "one")["lag"] == 0, 60, "everything is delivered")

        assert hub.call("PATCH", "/api/subscriptions/one", {"where": "n = 3 or n = 5"}).status == 200
        assert hub.call("POST", "/api/subscriptions/one/refill", {"from": between}).status == 202
        receiver.wait_for(4, 60)
        publish(hub, 0, 10)
        receiver.wait_for(6, 60)
        assert hub.call("PUT", "/api/subscriptions/one/state", {"state": "suspended"}).status in (200, 202)
        assert hub.call("POST", "/api/subscriptions/one/refill", {"from": "first"}).status == 202
        hub.until(lambda: state_of(hub, "one")["refill"]["state"] == "done", 60, "the lane is filled")
        assert state_of(hub, "one")["state"] == "suspended"
        assert len(receiver.arrivals) == 6
        assert hub.call("PUT", "/api/subscriptions/one/state", {"state": "active"}).status in (200, 202)
        receiver.wait_for(12, 60)
        hub.until(lambda: state_of(hub, "one")["lag"] == 0, 60, "everything is delivered")
    assert numbers(receiver) == [3, 3, 3, 5, 3, 5, *[3, 5] * 3]
    assert numbers(others) == [3, 3, 3]


def test_a_start_that_cannot_be_is_refused_and_leaves_nothing_behind(hub: Hub) -> None:
    assert hub.call("PUT", "/api/topics/orders", {}).status == 201
    for start in ("yesterday", "2999-01-01T00:00:00Z", "2026-01-01T00:00:00"):
        answer = hub.call("PUT", "/api/subscriptions/late", {"topic": "orders", "delivery": {"kind": "pull"}, "start": start})
        assert answer.status == 400, answer.body
    assert hub.call("GET", "/api/subscriptions/late").status == 404
    assert (
        hub.call("PUT", "/api/subscriptions/now", {"topic": "orders", "delivery": {"kind": "pull"}, "start": "now"}).status
        == 201
    )
    assert state_of(hub, "now")["refill"] is None
    assert hub.call("POST", "/api/subscriptions/nobody/refill", {"from": "first"}).status == 404
    assert hub.call("POST", "/api/subscriptions/now/refill", {"from": "somewhere"}).status == 400
