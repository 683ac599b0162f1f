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


def test_the_same_operations_find_something_with_a_token_of_the_right_realm(world: Streaming) -> None:
    door = Door(world.api, CLIENT, "prod")
    mine = subscription_id("default", "orders.v1", CLIENT)
    assert door.call("GET", f"/horizon/v1/prod/subscriptions/{mine}").status == 200
    assert door.call("GET", f"/horizon/api/v1/circuit-breakers/{mine}").status == 200
    assert door.call("PUT", f"/horizon/api/v1/circuit-breakers/close/{mine}").status == 200
    listed = door.call("GET", "/horizon/api/v1/circuit-breakers?status=CLOSED").json["items"]
    assert [one["subscriptionId"] for one in listed] == [mine]
