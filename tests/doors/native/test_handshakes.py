"""Handshakes through the API, with real callbacks: CT-18, CT-19, CT-20."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.api_process import ApiProcess, an_api
from tests.receivers import Answer, Receiver

ORIGIN = "hub.example"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    settings = {"push": {"public_dns_name": ORIGIN, "connect_timeout": "2s"}, "ingest": {"webhook_origins": ["other.example"]}}
    with an_api(tmp_path_factory.mktemp("handshakes"), **settings) as api:
        api.call("PUT", "/api/topics/orders", {})
        yield api


def put(api: ApiProcess, name: str, url: str, handshake: str = "require", **delivery: Any) -> Any:
    body = {"topic": "orders", "delivery": {"url": url, **delivery}, "handshake": handshake}
    return api.call("PUT", f"/api/subscriptions/{name}", body)


def consent(status: int = 200, origin: str = ORIGIN, **headers: str) -> Answer:
    return Answer(
        status, {"WebHook-Allowed-Origin": origin, **{name.replace("_", "-"): text for name, text in headers.items()}}
    )


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (consent(), 201),
        (consent(origin="*"), 201),
        (consent(origin="elsewhere.example"), 400),
        (Answer(200), 400),
        (consent(405), 201),
        (Answer(302, {"WebHook-Allowed-Origin": ORIGIN, "location": "http://127.0.0.1:9/"}), 400),
        (Answer(drop=True), 400),
        (consent(WebHook_Allowed_Rate="60"), 201),
        (consent(WebHook_Allowed_Rate="*"), 201),
        (consent(WebHook_Allowed_Rate="0"), 400),
    ],
)
def test_a_callback_is_asked_before_it_is_stored(api: ApiProcess, answer: Answer, status: int) -> None:
    """CT-18, CT-19."""
    with Receiver([answer]) as receiver:
        found = put(api, "asked", f"{receiver.url}?x=1", ratePerMinute=100)
    assert found.status == status, found.body
    (asked,) = receiver.arrivals
    assert (asked.method, asked.path) == ("OPTIONS", "/in?x=1")
    assert (asked.headers["webhook-request-origin"], asked.headers["webhook-request-rate"]) == (ORIGIN, "100")
    assert "webhook-request-callback" not in asked.headers
    if status == 201:
        assert found.json["consent"] == "given"
        assert api.call("DELETE", "/api/subscriptions/asked").status == 204
    else:
        assert found.json["code"] == "handshake-refused"
        assert api.call("GET", "/api/subscriptions/asked").status == 404


def test_the_allowed_rate_bounds_the_wished_one(api: ApiProcess) -> None:
    def minute(name: str) -> Any:
        return api.call("GET", f"/api/subscriptions/{name}/policy").json["inForce"]["pace"]["minute"]

    with Receiver([consent(WebHook_Allowed_Rate="60")]) as receiver:
        put(api, "bounded", receiver.url, ratePerMinute=100)
        assert minute("bounded") == 60
        put(api, "bounded", receiver.url, ratePerMinute=10)
        assert minute("bounded") == 10
        assert len(receiver.arrivals) == 1, "the address is the same, so it is not asked again"
    with Receiver([consent()]) as receiver:
        put(api, "requested", receiver.url, ratePerMinute=100)
        assert minute("requested") == 100


def test_another_address_is_asked_again_and_a_refusal_changes_nothing(api: ApiProcess) -> None:
    """SUB-18."""
    with Receiver([consent()]) as first, Receiver([Answer(200)]) as second:
        put(api, "moving", first.url)
        assert put(api, "moving", second.url).status == 400
        assert api.call("GET", "/api/subscriptions/moving").json["delivery"]["url"] == first.url


def test_warn_stores_it_unverified_and_slow(api: ApiProcess) -> None:
    """CT-20."""
    with Receiver([Answer(405)]) as receiver:
        stored = put(api, "warned", receiver.url, "warn")
    assert (stored.status, stored.json["consent"]) == (201, "unverified")
    assert api.call("GET", "/api/subscriptions/warned/policy").json["inForce"]["pace"]["minute"] == 6


@pytest.mark.parametrize(("posted", "status"), [(204, 201), (500, 400)])
def test_legacy_post_lets_a_test_event_decide(api: ApiProcess, posted: int, status: int) -> None:
    with Receiver([Answer(405), Answer(posted)]) as receiver:
        assert put(api, f"legacy-{posted}", receiver.url, "legacy-post").status == status
    assert [arrival.method for arrival in receiver.arrivals] == ["OPTIONS", "POST"]
    assert receiver.arrivals[1].headers["content-type"] == "application/cloudevents+json; charset=utf-8"
    assert b"tidings.handshake" in receiver.arrivals[1].body


def test_a_blocked_address_is_never_asked(api: ApiProcess) -> None:
    answer = put(api, "blocked", "http://10.0.0.1:9/in", "warn")
    assert (answer.status, answer.json["code"]) == (400, "handshake-refused")
    assert "10.0.0.1" not in answer.json["detail"]


def test_apply_asks_too_but_not_when_it_is_only_shown(api: ApiProcess) -> None:
    with Receiver([consent()]) as receiver:
        one = {"topic": "orders", "to": receiver.url, "handshake": "require"}
        document = {"subscriptions": {"applied": one}}
        api.call("POST", "/api/apply", document, dryRun=True)
        assert receiver.arrivals == []
        assert api.call("POST", "/api/apply", document).status == 200
        again = api.call("POST", "/api/apply", document).json
        assert (again["unchanged"], len(receiver.arrivals)) == (1, 1)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_consent_may_come_later_once(tmp_path: Any, method: str) -> None:
    """WH-13, CT-20."""
    with an_api(tmp_path, push={"callback_url": "https://hub.example/"}) as api, Receiver([Answer(200)]) as receiver:
        api.call("PUT", "/api/topics/orders", {})
        stored = put(api, "later", receiver.url)
        assert (stored.status, stored.json["consent"]) == (201, "pending")
        offered = receiver.arrivals[0].headers["webhook-request-callback"]
        secret = re.fullmatch(r"https://hub\.example/api/webhooks/confirm/([\w-]{22,})", offered)
        assert secret is not None
        assert secret[1].encode() not in (api.data / "registry.db").read_bytes()
        path = f"/api/webhooks/confirm/{secret[1]}"
        assert api.call(method, f"{path}x").status == 404, "a wrong secret"
        assert api.call(method, path, headers={"WebHook-Allowed-Rate": "0"}).status == 400
        assert api.call(method, path, headers={"WebHook-Allowed-Rate": "30"}).status == 200
        assert api.call("GET", "/api/subscriptions/later").json["consent"] == "given"
        assert api.call("GET", "/api/subscriptions/later/policy").json["inForce"]["pace"]["minute"] == 30
        assert api.call(method, path).status == 404, "it is used up"


def test_we_as_a_target_consent_to_the_hubs_that_are_listed(api: ApiProcess) -> None:
    """WH-16."""
    path = "/api/topics/orders/events"
    listed = api.call("OPTIONS", path, headers={"WebHook-Request-Origin": "Other.Example"})
    assert (listed.status, listed.headers["webhook-allowed-origin"]) == (200, "Other.Example")
    assert listed.headers["webhook-allowed-rate"] == "*"
    stranger = api.call("OPTIONS", path, headers={"WebHook-Request-Origin": "stranger.example"})
    assert (stranger.status, "webhook-allowed-origin" in stranger.headers) == (200, False)
    assert "POST" in stranger.headers["allow"]
