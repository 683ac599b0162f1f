"""Applying, showing and deleting documents over HTTP."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from tests.api_process import ApiProcess, an_api
from tests.doors.horizon.worlds import (
    Door,
    a_rover,
    a_specification,
    a_stream,
    an_entry,
    exposing,
    tokens,
    violations,
)
from tests.openapi import operations
from tidings.doors.horizon.documents.schemas import SCHEMAS
from tidings.doors.horizon.names import subscription_id

OWNER, SAME, OTHER = "hub--team--shop", "hub--team--bill", "hub--other--bill"
SUBSCRIPTION = subscription_id("playground", "orders.v1", OTHER)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    with an_api(tmp_path_factory.mktemp("api"), access=tokens(OWNER, SAME, OTHER)) as running:
        yield running


@pytest.fixture
def world(api: ApiProcess) -> Iterator[dict[str, Door]]:
    """One door for each caller; nothing stands before or after."""
    doors = {"owner": Door(api, OWNER), "same": Door(api, SAME), "other": Door(api, OTHER), "root": Door(api, "root")}
    yield doors
    for kind, name in (("Rover", OWNER), ("Rover", SAME), ("Rover", OTHER), ("EventSpecification", "orders-v1")):
        doors["root"].call("DELETE", f"/horizon/rover/v1/playground/{kind}/{name}")


def results(parts: list[dict[str, Any]]) -> list[tuple[str, str, str | None]]:
    return [(part["kind"], part["result"], part.get("state")) for part in parts]


def test_documents_are_applied_in_any_order_and_a_second_time_changes_nothing(world: dict[str, Door]) -> None:
    owner = world["owner"]
    documents = [a_rover("bill", subscriptions=[an_entry()]), exposing(), a_specification()]
    first = owner.applied(*documents)
    assert [(one["kind"], one["result"]) for one in first] == [
        ("Rover", "created"),
        ("Rover", "created"),
        ("EventSpecification", "created"),
    ]
    assert (first[0]["clientId"], first[0]["parts"][0]["state"]) == ("hub--team--bill", "ACTIVE")
    assert first[0]["parts"][0]["subscriptionId"] == subscription_id("playground", "orders.v1", SAME)
    again = owner.applied(*documents)
    assert {one["result"] for one in again} == {"unchanged"}
    assert {part["result"] for one in again for part in one["parts"]} == {"unchanged"}


def test_a_fault_anywhere_changes_nothing_at_all(world: dict[str, Door]) -> None:
    refused = world["owner"].apply(exposing(), a_rover("bill", subscriptions=[an_entry(deliveryType="mail")]))
    assert (refused.status, refused.headers["content-type"]) == (400, "application/problem+json")
    assert refused.json["violations"] == [
        {
            "path": "spec.subscriptions[0].deliveryType",
            "reason": "must be one of callback, server_sent_event, sse, found 'mail'",
            "document": 1,
        }
    ]
    assert set(refused.json) == {"type", "title", "status", "detail", "violations"}
    assert world["owner"].call("GET", "/horizon/rover/v1/playground/Rover/shop").status == 404


def test_faults_and_conflicts_of_several_documents_are_told_at_once(world: dict[str, Door]) -> None:
    world["owner"].applied(exposing())
    wrong, taken = a_rover("bill", subscriptions=[an_entry(deliveryType="mail")]), exposing(name="thief")
    refused = world["owner"].apply(wrong, taken)
    told = {(one["document"], one["path"]) for one in refused.json["violations"]}
    assert refused.status == 400
    assert told == {(0, "spec.subscriptions[0].deliveryType"), (1, "spec.exposures[0].eventType")}
    assert world["owner"].apply(taken).status == 409


def test_a_dry_run_tells_the_same_and_changes_nothing(world: dict[str, Door]) -> None:
    owner = world["owner"]
    told = owner.apply(exposing(), a_specification(), a_rover("bill", subscriptions=[an_entry()]), query="?dryRun=true").json
    assert told["dryRun"] and told["results"][2]["parts"][0]["state"] == "ACTIVE"
    assert owner.call("GET", "/horizon/rover/v1/playground/Rover/shop").status == 404
    assert owner.apply(exposing(visibility="x"), query="?dryRun=true").status == 400


def test_yaml_with_several_documents_is_read(world: dict[str, Door]) -> None:
    text = b"""
apiVersion: tcp.ei.telekom.de/v1
kind: Rover
metadata: {name: shop}
spec:
  zone: caas
  exposures:
    - eventType: orders.v1
---
apiVersion: tcp.ei.telekom.de/v1
kind: EventSpecification
metadata: {name: orders-v1}
spec: {type: orders.v1, version: '1.0', description: NO}
"""
    path = "/horizon/rover/v1/playground/apply"
    assert world["owner"].call("POST", path, text, {"content-type": "application/yaml"}).status == 200
    assert world["owner"].call("POST", path, text, {"content-type": "application/xml"}).status == 415
    broken = world["owner"].call("POST", path, b"a: [", {"content-type": "text/yaml"})
    assert broken.status == 400 and "line 2" in broken.json["detail"]
    shown = world["owner"].call("GET", "/horizon/rover/v1/playground/EventSpecification/orders-v1").json
    assert shown["spec"]["description"] == "NO"


def test_a_rover_is_shown_as_written_with_ids_states_and_stream_addresses(world: dict[str, Door]) -> None:
    wanted = a_rover("bill", subscriptions=[a_stream()])
    world["other"].applied(wanted)
    shown = world["other"].call("GET", "/horizon/rover/v1/playground/Rover/bill").json
    assert {key: shown[key] for key in wanted} == wanted
    (status,) = shown["status"]["subscriptions"]
    assert (shown["status"]["clientId"], status["subscriptionId"], status["state"]) == (OTHER, SUBSCRIPTION, "BLOCKED")
    assert status["sseUrl"].endswith(f"/playground/horizon/sse/v1/orders.v1/{SUBSCRIPTION}")


def test_others_learn_nothing_of_a_teams_documents(world: dict[str, Door]) -> None:
    world["owner"].applied(exposing(), a_specification())
    for method in ("GET", "DELETE"):
        for name in ("Rover/shop", f"Rover/{OWNER}", "EventSpecification/orders-v1"):
            assert world["other"].call(method, f"/horizon/rover/v1/playground/{name}").status == 404
    assert world["root"].call("GET", f"/horizon/rover/v1/playground/Rover/{OWNER}").status == 200
    assert world["other"].apply(a_specification()).status == 403
    assert world["other"].apply(exposing(), query="?team=hub--team").status == 403
    assert world["root"].apply(exposing(), query="?team=hub--team").status == 200


def test_the_other_team_waits_for_approval_the_same_team_does_not(world: dict[str, Door]) -> None:
    owner, other = world["owner"], world["other"]
    owner.applied(exposing(), a_specification())
    assert results(other.parts(a_rover("bill", subscriptions=[an_entry()]))) == [("subscription", "created", "PENDING")]
    assert results(owner.parts(a_rover("bill", subscriptions=[an_entry()]))) == [("subscription", "created", "ACTIVE")]
    listed = owner.call("GET", "/horizon/v1/playground/approvals").json["items"]
    assert [(one["subscriptionId"], one["subscriberId"], one["deliveryType"]) for one in listed] == [
        (SUBSCRIPTION, OTHER, "callback")
    ]
    assert other.call("GET", "/horizon/v1/playground/approvals").json["items"] == []
    assert other.decide(SUBSCRIPTION, "APPROVE").status == 403
    assert owner.decide(SUBSCRIPTION, "MAYBE").status == 400
    assert owner.decide(SUBSCRIPTION, "REJECT", reason="too much").json["reason"] == "too much"
    assert other.state(SUBSCRIPTION) == "REJECTED"
    assert owner.decide(SUBSCRIPTION, "APPROVE").json["state"] == "ACTIVE"
    assert owner.call("GET", "/horizon/v1/playground/approvals").json["items"] == []
    active = owner.call("GET", "/horizon/v1/playground/approvals?state=ACTIVE&eventType=orders.v1").json["items"]
    assert {one["subscriberId"] for one in active} == {SAME, OTHER}


def test_four_eyes_auto_and_trusted_teams(world: dict[str, Door]) -> None:
    owner, other = world["owner"], world["other"]
    subscriber = a_rover("bill", subscriptions=[an_entry()])
    owner.applied(exposing(approval="FOUREYES"), a_specification())
    other.applied(subscriber)
    assert owner.decide(SUBSCRIPTION, "APPROVE").json["state"] == "PENDING"
    assert owner.decide(SUBSCRIPTION, "APPROVE").json["approvedBy"] == [OWNER]
    assert world["same"].decide(SUBSCRIPTION, "APPROVE").json["state"] == "ACTIVE"
    other.call("DELETE", "/horizon/rover/v1/playground/Rover/bill")
    owner.applied(exposing(approval="AUTO"))
    assert other.parts(subscriber)[0]["state"] == "ACTIVE"
    other.call("DELETE", "/horizon/rover/v1/playground/Rover/bill")
    owner.applied(exposing(trustedTeams=["other"]))
    assert other.parts(subscriber)[0]["state"] == "ACTIVE"


def test_a_subscription_waits_for_its_type_and_loses_it_again(world: dict[str, Door]) -> None:
    owner, other = world["owner"], world["other"]
    assert results(other.parts(a_rover("bill", subscriptions=[an_entry()]))) == [("subscription", "created", "BLOCKED")]
    assert other.decide(SUBSCRIPTION, "APPROVE").status == 403
    assert world["root"].decide(SUBSCRIPTION, "APPROVE").status == 409
    assert results(owner.parts(exposing())) == [("exposure", "created", "INCOMPLETE")]
    assert other.state(SUBSCRIPTION) == "PENDING"
    owner.applied(a_specification())
    owner.decide(SUBSCRIPTION, "APPROVE")
    assert other.state(SUBSCRIPTION) == "ACTIVE"
    assert results(owner.parts(a_rover("shop", exposures=[]))) == [("exposure", "deleted", None)]
    assert other.state(SUBSCRIPTION) == "BLOCKED"
    owner.applied(exposing())
    assert other.state(SUBSCRIPTION) == "PENDING"


def test_removing_the_last_scope_asks_for_approval_again_unless_there_is_a_default(world: dict[str, Door]) -> None:
    owner, other = world["owner"], world["other"]
    scopes = [{"name": "a", "trigger": {}}, {"name": "b", "trigger": {}}]
    owner.applied(exposing(scopes=scopes), a_specification())

    def subscribed(*names: str) -> Any:
        return other.apply(a_rover("bill", subscriptions=[an_entry(scopes=list(names))]))

    assert subscribed("a", "b").status == 200
    owner.decide(SUBSCRIPTION, "APPROVE")
    assert subscribed("b").json["results"][0]["parts"][0]["state"] == "ACTIVE"
    assert subscribed("a", "b").status == 409
    assert violations(subscribed("x")) == {"spec.subscriptions[0].scopes[0]": "orders.v1 has no scope 'x'; it has a, b"}
    assert subscribed().json["results"][0]["parts"][0]["state"] == "PENDING"


def test_many_apply_at_the_same_time_and_nobody_is_lost(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        door = Door(api)
        door.applied(exposing(), a_specification())
        rovers = [a_rover(f"app-{n}", subscriptions=[an_entry()]) for n in range(24)]
        with ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(door.apply, rovers))
        assert [answer.status for answer in answers] == [200] * 24
        listed = door.call("GET", "/horizon/v1/playground/approvals?state=ACTIVE").json["items"]
        assert len(listed) == 24


def test_a_client_of_no_team_needs_a_right_to_change_documents(tmp_path: Path) -> None:
    with an_api(tmp_path, access=tokens("web-ui")) as api:
        assert Door(api, "web-ui").apply(exposing()).status == 403
        assert Door(api, "web-ui").call("DELETE", "/horizon/rover/v1/playground/Rover/shop").status == 403
        assert Door(api, "root").apply(exposing()).status == 200


def test_a_misspelled_list_removes_nothing(world: dict[str, Door]) -> None:
    other = world["other"]
    other.applied(a_rover("bill", subscriptions=[an_entry()]))
    refused = other.apply(a_rover("bill", subsciptions=[an_entry()]))
    assert refused.status == 400 and "subscriptions" in violations(refused)["spec.subsciptions"]
    assert other.state(SUBSCRIPTION) == "BLOCKED"
    assert results(other.parts(a_rover("bill", subscriptions=[]))) == [("subscription", "deleted", None)]


def test_the_wrong_realm_and_no_token_are_refused(tmp_path: Path) -> None:
    with an_api(tmp_path, access=tokens(OWNER, realm="prod")) as api:
        assert Door(api).apply(exposing()).status == 401
        refused = Door(api, OWNER).apply(exposing())
        assert refused.status == 401 and refused.json["detail"] == "Realm prod does not match environment playground."
        assert "www-authenticate" in refused.headers
        assert Door(api, OWNER, "prod").apply(exposing()).status == 200


def test_with_open_access_nobody_is_checked_and_the_settings_name_the_team(tmp_path: Path) -> None:
    with an_api(tmp_path, horizon={"hub": "h", "team": "t"}) as api:
        door = Door(api)
        assert door.applied(exposing())[0]["clientId"] == "h--t--shop"
        other = door.apply(a_rover("bill", subscriptions=[an_entry()]), query="?team=x--y").json["results"][0]
        assert (other["clientId"], other["parts"][0]["state"]) == ("x--y--bill", "PENDING")


def test_every_call_but_health_keys_schemas_and_the_description_needs_a_token(api: ApiProcess) -> None:
    document = api.call("GET", "/horizon/openapi.json").json
    free = set()
    for path, method in operations(document):
        prefix = document["paths"][path].get("servers", document["servers"])[0]["url"].rstrip("/")
        filled = path.replace("{subscription}", SUBSCRIPTION).replace("{name}.json", "exposure.json")
        filled = re.sub(r"\{kind\}", "Rover", re.sub(r"\{environment\}", "playground", filled))
        answer = api.call(method.upper(), prefix + re.sub(r"\{\w+\}", "orders.v1", filled))
        if answer.status != 401:
            free.add((method, path))
    assert free == {
        *(("head", path) for path, method in operations(document) if method == "head"),
        ("get", "/.well-known/jwks.json"),
        ("get", "/.well-known/openid-configuration"),
        ("get", "/v1/{environment}/.well-known/openid-configuration"),
        ("get", "/horizon/schemas/{name}.json"),
    }


@pytest.mark.parametrize("name", ["exposure", "subscription", "event-specification"])
def test_the_schemas_can_be_fetched_without_a_token(world: dict[str, Door], name: str) -> None:
    answer = Door(world["owner"].api).call("GET", f"/horizon/schemas/{name}.json")
    assert answer.status == 200 and answer.json == SCHEMAS[name]
    jsonschema_rs.validator_for(answer.json)


def test_schemas_and_rules_agree() -> None:
    subscription = jsonschema_rs.validator_for(SCHEMAS["subscription"])
    assert subscription.is_valid(an_entry()) and subscription.is_valid(a_stream())
    for wrong in ({"deliveryType": "x"}, {"callback": None}, {"eventRetentionTime": "2d"}, {"redeliveriesPerSecond": 0}):
        assert not subscription.is_valid(an_entry(**wrong))
    specification = jsonschema_rs.validator_for(SCHEMAS["event-specification"])
    assert specification.is_valid(a_specification()["spec"]) and specification.is_valid(a_specification("a.v2.b")["spec"])
    assert not specification.is_valid({**a_specification()["spec"], "type": "orders"})
