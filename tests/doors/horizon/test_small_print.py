"""Smaller promises of the door, each of which was once not kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.api_process import ApiProcess, an_api
from tests.doors.horizon.worlds import (
    Door,
    a_horizon_event,
    a_rover,
    a_specification,
    a_stream,
    an_entry,
    exposing,
    tokens,
    violations,
)
from tidings.doors.all_doors import DOORS
from tidings.doors.door import reserved_addresses, reserved_words

OWNER, OTHER, STRANGER = "hub--team--shop", "hub--other--bill", "hub--third--x"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    with an_api(tmp_path_factory.mktemp("api"), access=tokens(OWNER, OTHER, STRANGER)) as api:
        yield api


def doors(api: ApiProcess, environment: str) -> tuple[Door, Door]:
    return Door(api, OWNER, environment), Door(api, OTHER, environment)


def test_whoever_exposes_a_type_may_change_the_specification_that_another_team_wrote(api: ApiProcess) -> None:
    owner, other = doors(api, "specs")
    other.applied(a_specification())
    assert owner.apply(a_specification(description="mine")).status == 403
    owner.applied(exposing())
    assert "exposes it" in other.apply(a_specification(description="still mine")).json["detail"]
    assert other.call("DELETE", "/horizon/rover/v1/specs/EventSpecification/orders-v1").status == 403
    assert owner.applied(a_specification(description="ours"))[0]["result"] == "updated"
    assert owner.call("DELETE", "/horizon/rover/v1/specs/EventSpecification/orders-v1").status == 204


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/horizon/v1/hidden/subscriptions/{}", None),
        ("GET", "/horizon/v1/hidden/subscriptions/{}/events", None),
        ("POST", "/horizon/v1/hidden/subscriptions/{}/redeliver", {"ids": ["x"]}),
        ("POST", "/horizon/v1/hidden/subscriptions/{}/approval", {"decision": "APPROVE"}),
        ("GET", "/horizon/v1/hidden/data/{}/x", None),
        ("GET", "/horizon/v1/hidden/sse/{}", None),
        ("GET", "/horizon/api/v1/circuit-breakers/{}", None),
        ("PUT", "/horizon/api/v1/circuit-breakers/close/{}", None),
    ],
)
def test_a_stranger_cannot_tell_what_is_not_theirs_from_what_is_not_there(
    api: ApiProcess, method: str, path: str, body: Any
) -> None:
    owner, other = doors(api, "hidden")
    owner.applied(exposing(), a_specification())
    (part,) = other.parts(a_rover("bill", subscriptions=[an_entry()]))
    told = []
    for name in (part["subscriptionId"], "0" * 40):
        answer = Door(api, STRANGER).call(method, path.format(name), body)
        told.append((answer.status, answer.json["detail"].replace(name, "…")))
    assert told[0] == told[1] and told[0][0] == 403


def test_a_stranger_cannot_tell_which_types_there_are(api: ApiProcess) -> None:
    owner, _ = doors(api, "types")
    owner.applied(exposing(), a_specification())
    paths = [f"/horizon/v1/types/event-types/{name}/events" for name in ("orders.v1", "other.v1")]
    assert [Door(api, STRANGER).call("GET", path).status for path in paths] == [403, 403]


@pytest.mark.parametrize("environment", ["api", "feeds", "plain"])
def test_streams_of_every_environment_have_an_address_that_works(api: ApiProcess, environment: str) -> None:
    owner, _ = doors(api, environment)
    parts = owner.parts(a_rover("shop", exposures=[{"eventType": "orders.v1"}], subscriptions=[a_stream()]), a_specification())
    address = next(part["sseUrl"] for part in parts if "sseUrl" in part)
    path = "/" + address.split("/", 3)[3]
    # No delivery process answers here: that the stream is known is what counts.
    assert owner.call("POST", f"{path}/ticket").status == 200


def test_every_address_of_the_hub_is_known_to_be_taken() -> None:
    words = reserved_words(DOORS)
    assert {"api", "feeds", "horizon", "health"} <= words
    assert all(address.split("/")[1] in words for address in reserved_addresses(DOORS))


def test_unchanged_is_only_what_stands_as_before(api: ApiProcess) -> None:
    owner, other = doors(api, "flips")
    subscribing = a_rover("bill", subscriptions=[an_entry()])
    assert other.parts(subscribing)[0]["state"] == "BLOCKED"
    exposed = owner.applied(exposing())[0]["parts"][0]
    assert (exposed["result"], exposed["state"]) == ("created", "INCOMPLETE")
    (again,) = owner.applied(exposing())
    assert (again["result"], again["parts"][0]["result"]) == ("unchanged", "unchanged")
    (rover, _) = owner.applied(exposing(), a_specification())
    assert (rover["result"], rover["parts"][0]["result"], rover["parts"][0]["state"]) == ("updated", "updated", "ACTIVE")
    both = owner.applied(a_rover("shop", exposures=[]))[0]
    assert both["result"] == "updated"


@pytest.mark.parametrize("event_type", ["bad..v1", "orders.v1.", "orders..v1.x"])
def test_a_type_has_no_part_without_a_name(api: ApiProcess, event_type: str) -> None:
    owner, _ = doors(api, "odd")
    assert "part without a name" in violations(owner.apply(a_specification(event_type)))["spec.type"]
    assert "spec.exposures[0].eventType" in violations(owner.apply(exposing(event_type)))


def test_the_advice_for_an_element_of_a_list_helps(api: ApiProcess) -> None:
    owner, other = doors(api, "advice")
    owner.applied(exposing(), a_specification())

    def subscribing(trigger: dict[str, Any]) -> dict[str, Any]:
        return a_rover("bill", subscriptions=[an_entry(trigger=trigger)])

    told = violations(other.apply(subscribing({"selectionFilter": {"$.a[0].b": "x"}})))
    (advice,) = told.values()
    assert "write a.0.b, or use advancedSelectionFilter" in advice and "responseFilter" not in advice
    other.applied(subscribing({"selectionFilter": {"a.0.b": "x"}}))
    other.applied(subscribing({"advancedSelectionFilter": {"eq": {"field": "$.a[0].b", "value": "x"}}}))


def test_a_publisher_of_another_zone_is_told_so(api: ApiProcess) -> None:
    owner, other = doors(api, "zones")
    owner.applied(exposing(additionalPublisherIds=[OTHER]), a_specification())
    assert other.publish(a_horizon_event()).status == 201
    rover = a_rover("bill")
    rover["spec"]["zone"] = "aws"
    other.applied(rover)
    refused = other.publish(a_horizon_event())
    assert refused.status == 403 and "zone aws" in refused.json["detail"] and "caas" in refused.json["detail"]
    stranger = Door(api, STRANGER, "zones").publish(a_horizon_event())
    assert stranger.status == 403 and "zone" not in stranger.json["detail"]


@pytest.mark.parametrize(
    ("method", "path", "meant"),
    [
        ("GET", "/horizon/v1/typos/sse/{}?maxByte=1", "maxBytes"),
        ("GET", "/horizon/v1/typos/subscriptions/{}/events?eventid=1", "eventId"),
        ("GET", "/horizon/v1/typos/approvals?State=PENDING", "state"),
        ("POST", "/horizon/rover/v1/typos/apply?dryrun=true", "dryRun"),
        ("GET", "/api/subscriptions?limits=5", ""),
        ("GET", "/api/subscriptions/x/deliveries?form=2030-01-01", "from"),
        ("POST", "/api/topics/orders/events?key=1", "none"),
        ("GET", "/feeds/orders?pagesizhint=5", "pagesizehint"),
    ],
)
def test_a_query_parameter_with_a_slip_is_refused(api: ApiProcess, method: str, path: str, meant: str) -> None:
    owner, _ = doors(api, "typos")
    (part,) = (
        one
        for one in owner.parts(
            a_rover("shop", exposures=[{"eventType": "orders.v1"}], subscriptions=[a_stream()]), a_specification()
        )
        if "subscriptionId" in one
    )
    assert api.call("PUT", "/api/topics/orders", {}, headers={"authorization": "Bearer root"}).status in (200, 201)
    caller = owner if "/horizon/" in path else Door(api, "root")
    answer = caller.call(method, path.format(part["subscriptionId"]), [exposing()] if method == "POST" else None)
    assert answer.status == 400 and meant in answer.json["detail"], answer.body


def test_the_query_of_a_callback_is_shown_to_its_subscriber_alone(api: ApiProcess) -> None:
    owner, other = doors(api, "queries")
    owner.applied(exposing(), a_specification())
    callback = "https://bill.example/in?key=secret"
    (part,) = other.parts(a_rover("bill", subscriptions=[an_entry(callback=callback)]))
    path = f"/horizon/v1/queries/subscriptions/{part['subscriptionId']}"
    assert other.call("GET", path).json["callback"] == callback
    for stranger in (owner, Door(api, "root")):
        assert stranger.call("GET", path).json["callback"] == "https://bill.example/in?…"
    (pending,) = owner.call("GET", "/horizon/v1/queries/approvals").json["items"]
    assert "secret" not in str(pending)
    assert "secret" not in owner.call("GET", "/horizon/v1/queries/subscriptions").body.decode()
    root = Door(api, "root")
    name = f"horizon%2Fqueries:{part['subscriptionId']}"
    assert root.call("GET", f"/api/subscriptions/{name}").json["delivery"]["url"] == "https://bill.example/in?…"
    assert "key=secret" not in root.call("GET", "/api/subscriptions").body.decode()


def test_the_audit_log_leaves_out_the_queries_of_callbacks(api: ApiProcess) -> None:
    root = Door(api, "root")
    root.call("PUT", "/api/topics/audited", {})
    push = {"topic": "audited", "delivery": {"kind": "push", "url": "https://shop.example/in?key=audit-secret"}}
    assert root.call("PUT", "/api/subscriptions/audited", push).status == 201
    Door(api, OTHER, "audits").applied(
        a_rover("bill", subscriptions=[an_entry(callback="https://bill.example/in?key=audit-secret")])
    )
    changes = root.call("GET", "/api/changes?limit=1000").body.decode()
    assert "https://shop.example/in?…" in changes and "https://bill.example/in?…" in changes
    assert "audit-secret" not in changes
    # Whoever made the subscription reads and puts back what was written.
    assert root.call("GET", "/api/subscriptions/audited").json["delivery"]["url"].endswith("?key=audit-secret")


def test_other_parameters_of_feeds_are_passed_over(api: ApiProcess) -> None:
    admin = {"authorization": "Bearer root"}
    assert api.call("PUT", "/api/topics/orders", {}, headers=admin).status in (200, 201)
    assert api.call("GET", "/feeds/orders?_=17&utm=x", headers=admin).status == 200
