"""Rows on scopes, filters and what is shown of deliveries, through a running hub (sections 4, 8 and 9 of the rules)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.doors.horizon.flows import World, arrived, posts
from tests.doors.horizon.worlds import a_rover, an_entry, exposing, violations
from tests.hub import Hub
from tests.polling import until
from tests.receivers import Answer, Arrival, Receiver

pytestmark = [pytest.mark.hub, pytest.mark.spark]


def eq(field: str, value: Any) -> dict[str, Any]:
    return {"eq": {"field": field, "value": value}}


def many(count: int) -> dict[str, Any]:
    """A filter of so many operators."""
    return {"or": [eq("$.n", n) for n in range(count - 1)]}


def test_hor_164_and_176_an_empty_trigger_many_operators_and_a_trigger_that_changes(hub: Hub) -> None:
    with Receiver() as open_one, Receiver() as wide, Receiver() as changing:
        scopes = [
            {"name": "everything", "trigger": {}},
            {"name": "low", "trigger": {"advancedSelectionFilter": many(42)}},
            {"name": "high", "trigger": {"advancedSelectionFilter": {"ge": {"field": "$.n", "value": 100}}}},
        ]
        world = World(hub, scopes=scopes)
        world.subscribe(open_one, "one", scopes=["everything"])
        # 42 operators each, 85 together: counted as they are written.
        world.subscribe(wide, "two", scopes=["low", "high"], trigger={"advancedSelectionFilter": many(42)})
        changed = world.subscribe(changing, "three", scopes=["high"])
        ids = world.send({"n": 40}, {"n": 50}, {"n": 100})
        assert {one["id"] for one in arrived(open_one, 3)} == set(ids)
        assert [one["id"] for one in arrived(wide, 1)] == ids[:1]
        assert [one["id"] for one in arrived(changing, 1)] == ids[2:]
        scopes[2]["trigger"] = {"advancedSelectionFilter": {"ge": {"field": "$.n", "value": 50}}, "responseFilter": ["n"]}
        world.applied(exposing(scopes=scopes))
        assert world.state(changed) == "ACTIVE"
        later = world.send({"n": 49, "m": 1}, {"n": 50, "m": 1})
        assert [(one["id"], one["data"]) for one in arrived(changing, 2)][1:] == [(later[1], {"n": 50})]


def test_hor_104_and_106_mixed_modes_and_unknown_scopes_are_told(hub: Hub) -> None:
    world = World(hub, scopes=[{"name": "a", "trigger": {"responseFilter": ["x"]}}, {"name": "b", "trigger": {}}])
    mixed = [{"name": "a", "trigger": {"responseFilter": ["x"]}}]
    mixed.append({"name": "b", "trigger": {"responseFilter": ["y"], "responseFilterMode": "exclude"}})
    refused = world.apply(exposing(scopes=mixed))
    assert refused.status == 400 and "spec.exposures[0].scopes" in violations(refused)
    refused = world.apply(a_rover("bill", subscriptions=[an_entry(scopes=["b", "bb"])]))
    assert refused.status == 400
    assert violations(refused) == {"spec.subscriptions[0].scopes[1]": "orders.v1 has no scope 'bb'; it has a, b"}


def test_hor_68_71_and_178_what_was_tried_is_told_and_members_keep_their_order(hub: Hub) -> None:
    with Receiver() as receiver:
        scope = {"advancedSelectionFilter": eq("$.kind", "order"), "responseFilter": ["total", "order"]}
        world = World(hub, scopes=[{"name": "billing", "trigger": scope}])
        wanted = {"advancedSelectionFilter": {"and": [eq("$.total", 5), eq("$.kind", "order")]}}
        picky = world.subscribe(receiver, "picky", scopes=["billing"], trigger=wanted)
        plain = world.subscribe(receiver, "plain", scopes=["billing"])
        ids = world.send({"order": 1, "kind": "order", "total": 5}, {"kind": "other", "total": 5})
        (got,) = arrived(receiver, 1)
        assert list(got["data"]) == ["order", "total"] and got["data"] == {"order": 1, "total": 5}
        dropped = until(lambda: world.events(picky, "?status=DROPPED"), "dropped ones")
        told = {one["event"]["id"]: one["properties"] for one in dropped}
        assert told[ids[0]]["selectionFilterResult"] == "CONSUMER_FILTER_ERROR"
        assert told[ids[1]]["selectionFilterResult"] == "SCOPE_FILTER_ERROR"
        trace = told[ids[0]]["selectionFilterTrace"]
        assert (trace["operatorName"], trace["match"]) == ("and", False)
        assert [one["match"] for one in trace["childOperators"]] == [True, False]
        assert trace["causeDescription"] == "Not all child-operators matched."
        until(lambda: world.statuses(plain) == {ids[0]: "DELIVERED"}, "it is delivered")
        assert len(posts(receiver)) == 1


def test_hor_92_and_175_values_of_a_simple_filter_count_as_their_text(hub: Hub) -> None:
    with Receiver() as receiver:
        world = World(hub)
        yaml = f"""
apiVersion: tcp.ei.telekom.de/v1
kind: Rover
metadata: {{name: bill}}
spec:
  zone: caas
  subscriptions:
    - eventType: orders.v1
      deliveryType: callback
      payloadType: data
      callback: {receiver.url}
      trigger:
        selectionFilter: {{country: NO, day: 2024-01-01, n: 12, paid: true, toys.0: car}}
"""
        path = f"/horizon/rover/v1/{world.environment}/apply"
        answer = world.call("POST", path, yaml.encode(), {"content-type": "application/yaml"})
        assert answer.status == 200, answer.body
        fits = {"country": "NO", "day": "2024-01-01", "n": 12, "paid": True, "toys": ["car"]}
        ids = world.send({**fits, "country": False}, {**fits, "n": 12.0}, {**fits, "toys": ["x", "car"]}, fits)
        assert [one["id"] for one in arrived(receiver, 1)] == ids[3:]


def test_hor_150_and_154_status_data_has_every_member_and_can_be_asked_for(hub: Hub) -> None:
    def answer(arrival: Arrival) -> Answer:
        return Answer(404) if b'"bad"' in arrival.body else Answer()

    with Receiver(answer) as receiver:
        world = World(hub, scopes=[{"name": "default", "trigger": {}}])
        subscription = world.subscribe(receiver, eventRetentionTime="3d")
        good, bad = world.send("good", "bad", datacontenttype="text/plain")
        until(lambda: world.statuses(subscription) == {good: "DELIVERED", bad: "FAILED"}, "both are final")
        path = f"/horizon/v1/{world.environment}/subscriptions/{subscription}/events"
        newest, oldest = world.call("GET", f"{path}?limit=1").json, world.events(subscription, "?status=DELIVERED")
        assert [one["event"]["id"] for one in newest["items"]] == [bad]
        rest = world.call("GET", f"{path}?limit=1&cursor={newest['next']}").json["items"]
        assert [one["event"]["id"] for one in (*rest, *oldest)] == [good, good]
        one = world.call("GET", f"{path}/{newest['items'][0]['id']}").json
        assert one.keys() >= {"id", "multiplexedFrom", "timestamp", "modified", "errorMessage", "history"}
        shown = {
            "event": {"id": bad, "type": "orders.v1", "time": one["event"]["time"]},
            "environment": world.environment,
            "subscriptionId": subscription,
            "deliveryType": "callback",
            "eventRetentionTime": "3d",
            "appliedScopes": ["default"],
            "status": "FAILED",
            "attempts": 1,
            "properties": {"subscriber-id": "hub--team--bill", "callback-url": receiver.url},
            "errorType": "HttpStatus404",
        }
        assert {name: one[name] for name in shown} == shown
        assert [(fact["status"], fact["code"], fact["attempt"]) for fact in one["history"]] == [("FAILED", 404, 1)]
        assert [each["event"]["id"] for each in world.events(subscription, f"?eventId={good}")] == [good]
        assert world.events(subscription, f"?from={one['modified']}&status=FAILED") == []
        assert world.call("GET", f"{path}?status=SOMETHING").status == 400
        assert world.call("GET", f"{path}?limit=1001").status == 400
        assert world.call("GET", f"{path}/{subscription}").status == 404
