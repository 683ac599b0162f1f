"""A token is good for its own environment: every operation of the door is tried with one of another realm."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.doors.horizon.worlds import Door, a_horizon_event, a_rover, a_specification, a_stream, an_entry, exposing, tokens
from tests.doors.sse.worlds import Streaming, streaming
from tests.openapi import operations
from tidings.access.authentication import token_digest
from tidings.doors.horizon.names import subscription_id

CLIENT = "hub--team--shop"
ELSEWHERE, ADMIN = "of the realm play", "administrator of the realm play"
OPEN_TO_ALL = (
    "/horizon/schemas/{name}.json",
    "/.well-known/jwks.json",
    "/.well-known/openid-configuration",
    "/v1/{environment}/.well-known/openid-configuration",
)
HEALTH = "head"
BODIES: dict[str, Any] = {
    "approval": {"decision": "APPROVE"},
    "apply": [exposing()],
    "events": a_horizon_event(),
    "v1": a_horizon_event(),
}


NATIVE: dict[str, Any] = {
    "events": {"specversion": "1.0", "id": "1", "source": "/x", "type": "seen.v1", "data": {}},
    "rewind": {"to": "0-0"},
    "refill": {"from": "first"},
    "redeliver": {"deadLetters": True},
    "retry": {"all": True},
    "state": {"state": "suspended"},
    "policy": {"tries": 3},
    "close": {},
    "rotate": {},
    "explain": {"data": {}},
    "partitions": {"method": "close", "count": 2},
    "{topic}": {"state": "granted"},
    "{name}": {},
}
"""Bodies that would do something."""


def _native_body(path: str) -> Any:
    last = path.rsplit("/", 1)[-1]
    return {} if path == "/api/exposures/{topic}" else NATIVE.get(last, {})


def token(text: str, rights: list[str]) -> dict[str, Any]:
    return {"name": text, "sha256": token_digest(text), "rights": rights, "client_id": CLIENT, "realm": "play"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Streaming]:
    access = tokens(CLIENT)
    access["tokens"] += [token(ELSEWHERE, []), token(ADMIN, ["admin"])]
    with streaming(tmp_path_factory.mktemp("realms"), access=access, horizon={"environment": "prod"}) as world:
        door = Door(world.api, CLIENT, "prod")
        door.applied(
            a_rover("shop", exposures=[{"eventType": "orders.v1"}], subscriptions=[an_entry(), a_stream("seen.v1")]),
            exposing("seen.v1", "other"),
            *map(a_specification, ("orders.v1", "seen.v1")),
        )
        assert door.publish(a_horizon_event()).status == 201
        yield world


def filled(path: str, subscription: str) -> str:
    known = {"environment": "prod", "subscription": subscription, "kind": "Rover", "name": "shop", "message": "x"}
    for name, value in {**known, "event_type": "orders.v1", "eventType": "orders.v1"}.items():
        path = path.replace("{" + name + "}", value)
    return path


@pytest.mark.parametrize("realm", [ELSEWHERE, ADMIN])
def test_no_operation_succeeds_with_a_token_of_another_realm(world: Streaming, realm: str) -> None:
    document = world.api.call("GET", "/horizon/openapi.json").json
    stranger, tried = Door(world.api, realm), 0
    for path, method in operations(document):
        if path in OPEN_TO_ALL or method == HEALTH:
            continue
        prefix = document["paths"][path].get("servers", document["servers"])[0]["url"].rstrip("/")
        event_type = "seen.v1" if "sse" in path else "orders.v1"
        address = prefix + filled(path, subscription_id("default", event_type, CLIENT)).replace("orders.v1", event_type)
        answer = stranger.call(method.upper(), address, BODIES.get(path.rsplit("/", 1)[-1], {"ids": ["x"]}))
        if "{" in path or method != "get":
            assert answer.status in (401, 403, 404), (method, address, answer.status, answer.body)
        else:
            assert answer.json["items"] == [], (address, answer.body)
        tried += 1
    assert tried > 20


def test_no_other_door_does_anything_for_a_token_of_another_realm(world: Streaming) -> None:
    api, stranger, right = world.api, Door(world.api, ADMIN), Door(world.api, "root")
    event_type = "horizon%2Fdefault:seen.v1"
    subscription = f"horizon%2Fdefault:{subscription_id('default', 'seen.v1', CLIENT)}"
    wrong: list[Any] = []
    document, tried = api.call("GET", "/api/openapi.json").json, 0
    for path, method in operations(document):
        if method == "options":
            continue
        named = "/api/topics/{name}" in path or "{topic}" in path or "{feed}" in path
        if "{" not in path or not (named or "/api/subscriptions/{name}" in path or "{subscription}" in path):
            continue
        address = path.replace("{name}", event_type if "/topics/" in path else subscription)
        for word, value in {"topic": event_type, "feed": event_type, "subscription": subscription}.items():
            address = address.replace("{" + word + "}", value)
        for word, value in {"cursor": "0-1", "number": "1", "delivery": "0-1"}.items():
            address = address.replace("{" + word + "}", value)
        address += "?id=1" if path.endswith("/find") else ""
        answer = stranger.call(method.upper(), address, _native_body(path) if method != "get" else None)
        if answer.status not in (403, 404) and b"follows from Horizon documents" not in answer.body:
            wrong.append((method, address, answer.status, answer.body))
        tried += 1
    assert tried > 25 and not wrong, "\n".join(map(str, wrong))
    for door, listed in (("/api/subscriptions", "subscriptions"), ("/api/topics", "topics"), ("/api/approvals", "approvals")):
        assert "horizon" not in str(stranger.call("GET", door).json[listed])
        assert "horizon" in str(right.call("GET", door).json[listed]) or door == "/api/approvals"
    for feed in (event_type, f"~{subscription}"):
        assert stranger.call("GET", f"/feeds/{feed}").status in (403, 404)
    assert "horizon" not in stranger.call("GET", "/feeds").body.decode()
    for path in (f"/api/subscriptions/{subscription}/state", f"/api/topics/{event_type}", f"/feeds/{event_type}"):
        assert right.call("GET", path).status == 200, path


def test_the_same_operations_find_something_with_a_token_of_the_right_realm(world: Streaming) -> None:
    door = Door(world.api, CLIENT, "prod")
    mine = subscription_id("default", "orders.v1", CLIENT)
    assert door.call("GET", f"/horizon/v1/prod/subscriptions/{mine}").status == 200
    assert door.call("GET", f"/horizon/api/v1/circuit-breakers/{mine}").status == 200
    assert door.call("PUT", f"/horizon/api/v1/circuit-breakers/close/{mine}").status == 200
    listed = door.call("GET", "/horizon/api/v1/circuit-breakers?status=CLOSED").json["items"]
    assert [one["subscriptionId"] for one in listed] == [mine]
