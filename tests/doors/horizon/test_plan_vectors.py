"""The published vectors through a running hub: written as documents, published, routed, delivered to callbacks (HOR-T10, HOR-T16).

Every vector has an event type of its own. Where the reference is not binding, what our rules say counts, as in
`tests/conformance/suites/horizon.py`.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conformance import SHARED_DATA
from tests.conformance.suites.horizon import OURS, REFUSED_HERE
from tests.conformance.suites.jsonpath import same
from tests.doors.horizon.flows import World, arrived, posts
from tests.doors.horizon.worlds import Door, a_horizon_event, a_rover, a_specification, an_entry, exposing
from tests.hub import Hub
from tests.receivers import Receiver

VECTORS = SHARED_DATA / "filters" / "horizon.json"
pytestmark = [
    pytest.mark.hub,
    pytest.mark.spark,
    pytest.mark.skipif(not VECTORS.exists(), reason=f"the vectors are not at {VECTORS}"),
]

NOT_IN_DOCUMENTS = {"exs-dollar", "exs-dollar-key", "exr-dollar", "exr-jp-invalid"}
"""A leading `$.` is stripped when a document is applied, and a broken path is refused (HOR-D18, HOR-101)."""

FINISH = "finish.v1"


def vectors(kind: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(VECTORS.read_text("utf-8"))[kind]
    return found


def type_of(vector: dict[str, Any]) -> str:
    return f"{vector['id']}.v1"


def trigger_of(vector: dict[str, Any]) -> dict[str, Any]:
    syntax = {"responseFilterSyntax": "jsonpath"} if vector.get("jsonPathFeature") else {}
    return {**(vector.get("trigger") or {}), **syntax}


def exposed(vector: dict[str, Any]) -> dict[str, Any]:
    offered = vector.get("publisherTrigger")
    scopes = {"scopes": [{"name": "default", "trigger": offered}]} if offered is not None else {}
    return {"eventType": type_of(vector), **scopes}


def published(vector: dict[str, Any]) -> dict[str, Any]:
    # An event has data or refers to it.
    reference = {"dataref": "http://data.example/1"} if vector["data"] is None else {}
    return a_horizon_event(type_of(vector), data=vector["data"], datacontenttype=vector.get("datacontenttype"), **reference)


def wanted(vector: dict[str, Any]) -> tuple[bool, Any]:
    """Whether it is delivered, and with which payload."""
    expected = vector["expected"]
    if vector.get("quirk"):
        return OURS[vector["id"]]
    if vector.get("java_type_strict"):
        return vector["lenient_numeric_would_deliver"], vector["data"]
    return expected["deliver"], expected.get("payload", vector["data"])


def test_hor_t10_the_filter_vectors_through_the_hub(hub: Hub) -> None:
    chosen = [one for one in vectors("filter_vectors") if one["id"] not in NOT_IN_DOCUMENTS]
    with Receiver() as receiver:
        world = World(hub)
        names = [*map(type_of, chosen), FINISH]
        world.applied(
            a_rover("shop", exposures=[{"eventType": "orders.v1"}, {"eventType": FINISH}, *map(exposed, chosen)]),
            *map(a_specification, names),
        )
        entries = [an_entry(type_of(one), callback=f"{receiver.url}/{one['id']}", trigger=trigger_of(one)) for one in chosen]
        parts = world.parts(a_rover("bill", subscriptions=[*entries, an_entry(FINISH, callback=f"{receiver.url}/finish")]))
        assert [one["state"] for one in parts] == ["ACTIVE"] * len(names)
        events = {one["id"]: published(one) for one in chosen}
        for event in [*events.values(), a_horizon_event(FINISH)]:
            assert world.publish(event).status == 201
        arrived(receiver, sum(wanted(one)[0] for one in chosen) + 1)
        got = {one.path.rpartition("/")[2]: json.loads(one.body) for one in posts(receiver)}
        assert got.keys() - {"finish"} == {one["id"] for one in chosen if wanted(one)[0]}
        wrong = {
            one["id"]: got[one["id"]].get("data")
            for one in chosen
            if wanted(one)[0] and not same(wanted(one)[1], got[one["id"]].get("data"))
        }
        assert wrong == {}
        # What did not arrive is told with the result that the reference names.
        ids = {part["eventType"]: part["subscriptionId"] for part in parts}
        told = {one["id"]: world.events(ids[type_of(one)], f"?eventId={events[one['id']]['id']}") for one in chosen}
        results = {name: (one["status"], one["properties"].get("selectionFilterResult")) for name, (one,) in told.items()}
        for one in chosen:
            if not wanted(one)[0] and not one.get("quirk") and not one.get("java_type_strict"):
                assert results[one["id"]] == ("DROPPED", one["expected"]["result"]), one["id"]
        assert len(posts(receiver)) == len(got)


def test_hor_t10_the_parse_vectors_as_documents(hub: Hub) -> None:
    door = Door(hub, environment="parsed")
    for vector in vectors("parse_vectors"):
        # Documents may write the mode in any case (HOR-29).
        accepted = vector["id"] == "exr-lower-mode" or vector["expected"]["result"] == "ACCEPTED"
        answer = door.apply(a_rover("bill", subscriptions=[an_entry(trigger=vector["trigger"])]))
        wanted = 200 if accepted and vector["id"] not in REFUSED_HERE else 400
        assert answer.status == wanted, (vector["id"], answer.body)


def test_hor_t16_the_scope_merge_vectors_as_documents(hub: Hub) -> None:
    refused = {
        # Scopes that the exposure does not have (HOR-106), and two modes in one exposure (HOR-104).
        "cp-scope-no-exposure-scopes": 400,
        "cp-scope-unknown": 400,
        "cp-scope-mode-last-wins": 400,
        "cp-scope-mode-empty-keeps": 400,
    }
    for number, vector in enumerate(vectors("scope_merge_vectors")):
        door = Door(hub, environment=f"merged{number}")
        scopes = [{"name": one["name"], "trigger": as_written(one["trigger"])} for one in vector["scopes"]]
        rover = a_rover("bill", subscriptions=[an_entry(scopes=vector["subscribed"])])
        answer = door.apply(exposing(scopes=scopes), a_specification(), rover)
        assert answer.status == refused.get(vector["id"], 200), (vector["id"], answer.body)
        if answer.status == 200:
            subscription = next(
                part["subscriptionId"] for one in answer.json["results"] for part in one["parts"] if "subscriptionId" in part
            )
            shown = door.call("GET", f"/horizon/v1/{door.environment}/subscriptions/{subscription}").json
            assert shown.get("publisherTrigger") == stripped(vector["expected"]), vector["id"]


def as_written(trigger: dict[str, Any]) -> dict[str, Any]:
    """A vector's trigger as documents write it (HOR-105)."""
    selection, response = trigger.get("selectionFilter", {}), trigger.get("responseFilter", {})
    written = {
        "selectionFilter": selection.get("attributes"),
        "advancedSelectionFilter": selection.get("expression"),
        "responseFilter": response.get("paths"),
        "responseFilterMode": response.get("mode"),
    }
    return {name: value for name, value in written.items() if value is not None}


def stripped(trigger: dict[str, Any] | None) -> dict[str, Any] | None:
    """The same with response paths as the evaluator reads them (HOR-D18)."""
    if trigger is None or "responseFilter" not in trigger:
        return trigger
    return {**trigger, "responseFilter": [path.removeprefix("$.") for path in trigger["responseFilter"]]}
