"""Consent of sinks through the door: CT-18, CT-19, CT-20."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doors.cloudevents.worlds import ORIGIN, Door, a_door
from tests.receivers import Answer, Receiver


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with a_door(tmp_path_factory.mktemp("handshakes")) as door:
        yield door


def consent(origin: str = ORIGIN, status: int = 200, rate: str | None = None) -> Answer:
    return Answer(status, {"WebHook-Allowed-Origin": origin} | ({} if rate is None else {"WebHook-Allowed-Rate": rate}))


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (consent(), 201),
        (consent(origin="*"), 201),
        (consent(origin="elsewhere.example"), 400),
        (Answer(200), 400),
        (consent(status=405), 201),
        (Answer(302, {"WebHook-Allowed-Origin": ORIGIN, "location": "http://127.0.0.1:9/"}), 400),
        (Answer(drop=True), 400),
        (Answer(hang=True), 400),
        (consent(rate="0"), 400),
        (consent(rate="x"), 400),
    ],
)
def test_ct_18_a_sink_is_asked_first(door: Door, answer: Answer, status: int) -> None:
    with Receiver([answer]) as sink:
        made = door.create(f"{sink.url}?x=1", config={"rate": 100})
    assert made.status == status, made.body
    (asked,) = sink.arrivals
    assert (asked.method, asked.path) == ("OPTIONS", "/in?x=1")
    assert (asked.headers["webhook-request-origin"], asked.headers["webhook-request-rate"]) == (ORIGIN, "100")
    assert "webhook-request-callback" not in asked.headers
    if status == 201:
        door.call("DELETE", f"/subscriptions/{made.json['id']}")
    else:
        assert made.json["code"] == "handshake-refused"
    assert door.call("GET", "/subscriptions").json == []


@pytest.mark.parametrize(("allowed", "minute"), [("60", 60), ("*", 100), (None, 100), ("1000", 100)])
def test_ct_19_the_allowed_rate_bounds_deliveries(door: Door, allowed: str | None, minute: int) -> None:
    with Receiver([consent(rate=allowed)]) as sink:
        id = door.create(sink.url, config={"rate": 100}).json["id"]
    policy = door.api.call("GET", f"/api/subscriptions/cloudevents:{id}/policy").json
    assert policy["inForce"]["pace"]["minute"] == minute
    door.call("DELETE", f"/subscriptions/{id}")


def test_ct_20_warn_stores_it_unverified_and_slow(tmp_path: Path) -> None:
    with a_door(tmp_path, cloudevents={"handshake": "warn"}) as door, Receiver([Answer(405)]) as sink:
        made = door.create(sink.url)
        assert (made.status, made.json["status"]) == (201, "unverified")
        policy = door.api.call("GET", f"/api/subscriptions/cloudevents:{made.json['id']}/policy").json
        assert policy["inForce"]["pace"]["minute"] == 6


@pytest.mark.parametrize(("posted", "status"), [(204, 201), (500, 400)])
def test_ct_20_legacy_post_lets_a_test_event_decide(tmp_path: Path, posted: int, status: int) -> None:
    with (
        a_door(tmp_path, cloudevents={"handshake": "legacy-post"}) as door,
        Receiver([Answer(405), Answer(posted)]) as sink,
    ):
        assert door.create(sink.url).status == status
        assert [arrival.method for arrival in sink.arrivals] == ["OPTIONS", "POST"]


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_ct_20_consent_may_come_later_once(tmp_path: Path, method: str) -> None:
    with a_door(tmp_path, push={"callback_url": "https://hub.example"}) as door, Receiver([Answer(200)]) as sink:
        made = door.create(sink.url)
        assert (made.status, made.json["status"]) == (201, "pending")
        offered = sink.arrivals[0].headers["webhook-request-callback"]
        found = re.fullmatch(r"https://hub\.example/cloudevents(/confirm/[\w-]{22,})", offered)
        assert found is not None
        assert door.call(method, f"{found[1]}x").status == 404, "a wrong secret"
        assert door.call(method, found[1], headers={"WebHook-Allowed-Rate": "0"}).status == 400
        assert door.call(method, found[1], headers={"WebHook-Allowed-Rate": "30"}).status == 200
        assert door.call("GET", f"/subscriptions/{made.json['id']}").json["status"] == "active"
        assert door.call(method, found[1]).status == 404, "it is used up"
        assert door.call("DELETE", found[1]).status == 405
