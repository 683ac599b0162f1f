"""What there is, as each caller sees it, and what an apply tells beyond its documents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api_process import ApiProcess, an_api
from tests.doors.horizon.worlds import Door, a_rover, a_specification, a_stream, an_entry, exposing, tokens
from tidings.access.authentication import token_digest
from tidings.doors.horizon.names import subscription_id

OWNER, OTHER, STRANGER = "hub--team--shop", "hub--other--bill", "hub--third--spy"
SUBSCRIPTION = subscription_id("playground", "orders.v1", OTHER)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    access = tokens(OWNER, OTHER, STRANGER)
    elsewhere = {"name": "elsewhere", "sha256": token_digest("elsewhere"), "rights": ["admin"], "realm": "elsewhere"}
    access["tokens"].append(elsewhere)
    with an_api(tmp_path_factory.mktemp("api"), access=access) as api:
        exposures = [
            {"eventType": "orders.v1", "visibility": "world", "scopes": [{"name": "eu", "trigger": {}}]},
            {"eventType": "secret.v1", "visibility": "zone", "approval": "AUTO"},
        ]
        Door(api, OWNER).applied(a_rover("shop", exposures=exposures), a_specification())
        Door(api, OTHER).applied(a_rover("bill", subscriptions=[an_entry(scopes=["eu"]), a_stream("calls.v1")]))
        Door(api, OWNER, "elsewhere").applied(exposing("secret.v1"))
        yield api


def items(api: ApiProcess, who: str, path: str, status: int = 200) -> list[dict[str, Any]]:
    answer = Door(api, who).call("GET", path)
    assert answer.status == status, answer.body
    listed: list[dict[str, Any]] = answer.json["items"]
    return listed


def test_rovers_are_listed_for_their_team_with_states_and_reasons(api: ApiProcess) -> None:
    path = "/horizon/rover/v1/playground/Rover"
    (bill,) = items(api, OTHER, path)
    assert (bill["clientId"], bill["name"], bill["team"], bill["zone"]) == (OTHER, "bill", "hub--other", "caas")
    assert [(one["eventType"], one["state"], one.get("reason")) for one in bill["subscriptions"]] == [
        ("orders.v1", "PENDING", None),
        ("calls.v1", "BLOCKED", "the event type calls.v1 is not exposed"),
    ]
    assert [one["clientId"] for one in items(api, OWNER, path)] == [OWNER]
    assert [one["clientId"] for one in items(api, "root", path)] == [OTHER, OWNER]
    assert items(api, STRANGER, path) == []


def test_specifications_are_listed_for_their_team_with_who_exposes_them(api: ApiProcess) -> None:
    path = "/horizon/rover/v1/playground/EventSpecification"
    (one,) = items(api, OWNER, path)
    assert one == {
        "name": "orders-v1",
        "team": "hub--team",
        "eventType": "orders.v1",
        "version": "1.0.0",
        "description": "orders",
        "publisherId": OWNER,
    }
    assert items(api, OTHER, path) == []


def test_event_types_are_listed_for_who_names_them_and_those_of_the_world_for_all(api: ApiProcess) -> None:
    path = "/horizon/v1/playground/event-types"
    orders = {
        "eventType": "orders.v1",
        "version": "1.0.0",
        "publisherId": OWNER,
        "visibility": "world",
        "approval": "SIMPLE",
        "scopes": ["eu"],
        "state": "ACTIVE",
        "subscriptions": {"PENDING": 1},
    }
    secret = {
        "eventType": "secret.v1",
        "publisherId": OWNER,
        "visibility": "zone",
        "approval": "AUTO",
        "scopes": [],
        "state": "INCOMPLETE",
        "reason": "there is no EventSpecification of this type",
        "subscriptions": {},
    }
    calls = {"eventType": "calls.v1", "state": "BLOCKED", "reason": "nobody exposes it", "subscriptions": {"BLOCKED": 1}}
    assert items(api, OWNER, path) == [orders, secret]
    assert items(api, OTHER, path) == [calls, orders]
    assert items(api, STRANGER, path) == [{**orders, "subscriptions": {}}]
    assert items(api, "root", path) == [calls, orders, secret]


def test_subscriptions_are_listed_for_subscriber_and_owner_of_the_type(api: ApiProcess) -> None:
    path = "/horizon/v1/playground/subscriptions"
    orders = {
        "subscriptionId": SUBSCRIPTION,
        "eventType": "orders.v1",
        "subscriberId": OTHER,
        "publisherId": OWNER,
        "deliveryType": "callback",
        "state": "PENDING",
    }
    assert items(api, OWNER, path) == [orders]
    assert [one["eventType"] for one in items(api, OTHER, path)] == ["calls.v1", "orders.v1"]
    assert [one["reason"] for one in items(api, OTHER, f"{path}?state=BLOCKED")] == ["the event type calls.v1 is not exposed"]
    assert items(api, OTHER, f"{path}?eventType=orders.v1") == [orders]
    assert items(api, STRANGER, path) == []


def test_environments_are_listed_for_who_has_documents_there(api: ApiProcess) -> None:
    path = "/horizon/v1/environments"
    assert [one["environment"] for one in items(api, OWNER, path)] == ["elsewhere", "playground"]
    assert items(api, OTHER, path) == [
        {
            "environment": "playground",
            "rovers": 1,
            "specifications": 0,
            "eventTypes": 2,
            "subscriptions": {"BLOCKED": 1, "PENDING": 1},
        }
    ]
    assert items(api, STRANGER, path) == []
    assert [one["environment"] for one in items(api, "elsewhere", path)] == ["elsewhere"]
    assert [one["environment"] for one in items(api, "root", path)] == ["elsewhere", "playground"]


@pytest.mark.parametrize("path", ["v1/playground/subscriptions", "v1/playground/event-types", "rover/v1/playground/Rover"])
def test_a_token_of_another_environment_gets_no_list(api: ApiProcess, path: str) -> None:
    assert Door(api, "elsewhere").call("GET", f"/horizon/{path}").status == 401


def test_an_apply_tells_which_subscriptions_of_others_change_their_state(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        door = Door(api)
        offered = exposing(scopes=[{"name": "eu", "trigger": {}}, {"name": "us", "trigger": {}}])
        door.applied(offered, a_specification(), a_rover("bill", subscriptions=[an_entry(scopes=["us"])]))
        fewer = exposing(scopes=[{"name": "eu", "trigger": {}}])
        change = {
            "subscriptionId": subscription_id("playground", "orders.v1", "hub--team--bill"),
            "eventType": "orders.v1",
            "subscriberId": "hub--team--bill",
            "formerState": "ACTIVE",
            "state": "BLOCKED",
            "reason": "the event type orders.v1 has no scope us (any more)",
        }
        assert door.apply(fewer, query="?dryRun=true").json["stateChanges"] == [change]
        assert door.apply(fewer).json["stateChanges"] == [change]
        assert door.apply(fewer).json["stateChanges"] == []
        (back,) = door.apply(offered).json["stateChanges"]
        assert (back["formerState"], back["state"]) == ("BLOCKED", "ACTIVE")


def test_an_apply_warns_of_a_callback_at_a_private_address(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        rover = a_rover("bill", subscriptions=[an_entry(callback="https://10.0.0.5/in"), an_entry("calls.v1")])
        private, public = Door(api).parts(rover)
        assert private["warnings"] == [
            "spec.subscriptions[0].callback: callbacks may not go to 10.0.0.5: "
            "every delivery will fail with ssrf-blocked until push.allow names it"
        ]
        assert public["warnings"] == []
    with an_api(tmp_path, push={"allow": ["10.0.0.0/8"]}) as api:
        assert Door(api).parts(rover)[0]["warnings"] == []


def test_an_apply_refuses_a_callback_at_an_address_of_the_hub_itself(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        callback = f"http://localhost:{api.port}/horizon/v1/playground/events"
        refused = Door(api).apply(a_rover("bill", subscriptions=[an_entry(callback=callback)]))
        assert (refused.status, "is an address of the hub itself" in refused.json["detail"]) == (400, True)


def test_an_apply_warns_of_an_environment_that_nobody_used_before(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        used, mistyped = Door(api, environment="playground"), Door(api, environment="playgruond")
        told = used.apply(exposing()).json["warnings"]
        assert told == ["the environment playground is new: nobody used it before"]
        assert used.apply(exposing()).json["warnings"] == []
        told = mistyped.apply(exposing(), query="?dryRun=true").json["warnings"]
        assert told == ["the environment playgruond is new: nobody used it before (there is playground)"]


def test_an_apply_warns_who_gets_everything_when_the_default_scope_is_dropped(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        door, trigger = Door(api), {"responseFilter": ["orderId"]}
        named = [{"name": "ids", "trigger": trigger}]
        subscribers = [a_rover("bill", subscriptions=[a_stream()]), a_rover("post", subscriptions=[a_stream(scopes=["ids"])])]
        door.applied(exposing(scopes=[*named, {"name": "default", "trigger": trigger}]), a_specification(), *subscribers)
        (exposure,) = door.parts(exposing(scopes=named))
        assert exposure["warnings"] == [
            "spec.exposures[0].scopes no longer has default: hub--team--bill named no scope and will get everything"
        ]
        assert door.parts(exposing(scopes=named))[0]["warnings"] == []
