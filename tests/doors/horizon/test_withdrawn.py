"""What was approved and is not any more: nothing of it is streamed, repeated, referred to or sent again until it is once more."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.doors.horizon.worlds import Door, a_horizon_event, a_rover, a_specification, a_stream, an_entry, tokens
from tests.doors.sse.worlds import Reader, Streaming, streaming
from tests.hub import Answer
from tidings.doors.horizon.names import subscription_id

PROVIDER, CONSUMER = "hub--team--shop", "hub--other--billing"
TYPES = ("orders.v1", "waits.v1", "called.v1", "blocked.v1")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Streaming]:
    with streaming(tmp_path_factory.mktemp("withdrawn"), access=tokens(PROVIDER, CONSUMER)) as world:
        Door(world.api, PROVIDER).applied(
            a_rover("shop", exposures=[{"eventType": one} for one in TYPES]), *map(a_specification, TYPES)
        )
        streams = [a_stream("orders.v1"), a_stream("waits.v1"), a_stream("blocked.v1")]
        Door(world.api, CONSUMER).applied(a_rover("billing", subscriptions=[*streams, an_entry("called.v1")]))
        yield world


def subscribed(event_type: str) -> str:
    return subscription_id("playground", event_type, CONSUMER)


def stream(event_type: str) -> str:
    return f"/horizon/v1/playground/sse/{subscribed(event_type)}"


def publish(world: Streaming, event_type: str, count: int, first: int = 1) -> None:
    for n in range(first, first + count):
        assert Door(world.api, PROVIDER).publish(a_horizon_event(event_type, data={"n": n})).status == 201
    world.route(world.lane(subscribed(event_type)))


def refused(answer: Answer, state: str, reason: str = "") -> bool:
    return answer.status == 409 and state in answer.json["detail"] and reason in answer.json["detail"]


def test_a_stream_that_waits_for_approval_says_so(world: Streaming) -> None:
    door = Door(world.api, CONSUMER)
    assert refused(door.call("GET", stream("waits.v1")), "PENDING")
    assert refused(door.call("POST", f"{stream('waits.v1')}/ticket"), "PENDING")


def test_rejected_is_rejected_and_a_new_approval_goes_on(world: Streaming) -> None:
    owner, door, mine = Door(world.api, PROVIDER), Door(world.api, CONSUMER), subscribed("orders.v1")
    headers = {"authorization": f"Bearer {CONSUMER}", "accept": "text/event-stream"}
    assert owner.decide(mine, "APPROVE").status == 200
    publish(world, "orders.v1", 2)
    reader = Reader(world.api, stream("orders.v1"), **headers)
    (message, _), _ = reader.frames(2)
    assert owner.decide(mine, "REJECT", reason="misuse").status == 200
    assert reader.answer().body.strip() == b""
    publish(world, "orders.v1", 1, first=3)
    below = f"/horizon/v1/playground/subscriptions/{mine}"
    for answer in (
        door.call("GET", stream("orders.v1")),
        door.call("GET", f"{stream('orders.v1')}?lastEventId={message}"),
        door.call("GET", f"/horizon/v1/playground/data/{mine}/{message}"),
        door.call("POST", f"{below}/redeliver", {"ids": [message]}),
        door.call("POST", f"{below}/redeliver", {"status": ["DELIVERED"]}),
    ):
        assert refused(answer, "REJECTED", "misuse"), answer.body
    assert door.call("GET", f"{below}/events").status == 200
    assert owner.decide(mine, "APPROVE").status == 200
    lines = Reader(world.api, f"{stream('orders.v1')}?maxNumber=1", authorization=headers["authorization"]).answer()
    assert json.loads(lines.body)["data"]["n"] == 3
    assert door.call("GET", f"/horizon/v1/playground/data/{mine}/{message}").status == 200


def test_what_is_blocked_says_why(world: Streaming) -> None:
    owner, door = Door(world.api, PROVIDER), Door(world.api, CONSUMER)
    mine = subscribed("blocked.v1")
    assert owner.decide(mine, "APPROVE").status == 200
    kept = [{"eventType": one} for one in TYPES if one != "blocked.v1"]
    owner.applied(a_rover("shop", exposures=kept))
    shown = door.call("GET", f"/horizon/v1/playground/subscriptions/{mine}").json
    assert refused(door.call("GET", stream("blocked.v1")), "BLOCKED", shown["reason"])
    owner.applied(a_rover("shop", exposures=[{"eventType": one} for one in TYPES]))


def test_a_breaker_is_not_closed_for_what_may_not_be_sent(world: Streaming) -> None:
    path = f"/horizon/api/v1/circuit-breakers/close/{subscribed('called.v1')}"
    assert refused(Door(world.api, CONSUMER).call("PUT", path), "PENDING")


def test_the_native_door_refuses_it_too(world: Streaming) -> None:
    api, admin = world.api, {"authorization": "Bearer root"}
    assert api.call("PUT", "/api/topics/secrets", {}, headers=admin).status == 201
    assert api.call("PUT", "/api/exposures/secrets", {"approval": "manual"}, headers=admin).status in (200, 201)
    for name, kind in (("s", "sse"), ("f", "pull")):
        body = {"topic": "secrets", "delivery": {"kind": kind}}
        assert api.call("PUT", f"/api/subscriptions/{name}", body, headers=admin).status == 201
    for method, path, body in (
        ("GET", "/api/subscriptions/s/stream", None),
        ("POST", "/api/subscriptions/s/redeliver", {"deadLetters": True}),
        ("POST", "/api/subscriptions/s/breaker/close", None),
        ("POST", "/api/subscriptions/s/dead-letters/retry", {"all": True}),
    ):
        answer = api.call(method, path, body, headers=admin)
        assert (answer.status, "pending" in answer.json["detail"]) == (409, True), (path, answer.body)
    assert api.call("GET", "/api/subscriptions/s/state", headers=admin).json["state"] == "pending"
    feed = api.call("GET", "/feeds/~f", headers=admin)
    assert (feed.status, "pending" in feed.json["detail"]) == (403, True)
    for name in ("s", "f"):
        assert api.call("PUT", f"/api/approvals/{name}/secrets", {"state": "granted"}, headers=admin).status == 200
    assert api.call("GET", "/feeds/~f", headers=admin).status == 200
    assert Reader(api, "/api/subscriptions/s/stream", **admin).response.status == 200


def test_a_stream_of_a_suspended_subscription_says_so(world: Streaming) -> None:
    api, admin = world.api, {"authorization": "Bearer root"}
    body = {"topic": "orders", "delivery": {"kind": "sse"}}
    assert api.call("PUT", "/api/topics/orders", {}, headers=admin).status in (200, 201)
    assert api.call("PUT", "/api/subscriptions/sleepy", body, headers=admin).status == 201
    assert api.call("PUT", "/api/subscriptions/sleepy/state", {"state": "suspended"}, headers=admin).status == 200
    answer = api.call("GET", "/api/subscriptions/sleepy/stream", headers=admin)
    assert (answer.status, "suspended" in answer.json["detail"]) == (409, True)
    assert api.call("PUT", "/api/subscriptions/sleepy/state", {"state": "active"}, headers=admin).status == 200
    assert Reader(api, "/api/subscriptions/sleepy/stream", **admin).response.status == 200
