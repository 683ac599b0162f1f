"""Documents, events and callbacks through a running hub: rows of the test plan, each named by its id."""

from __future__ import annotations

import json
import uuid

import jwt
import pytest

from tests.doors.horizon.flows import World, arrived, posts
from tests.doors.horizon.worlds import Door, a_horizon_event, a_rover, an_entry
from tests.hub import Hub
from tests.polling import until
from tests.receivers import Receiver
from tidings.doors.horizon.names import subscription_id

pytestmark = [pytest.mark.hub, pytest.mark.spark]

HANDBOOK = {
    "and": [
        {"eq": {"field": "$.processing.state", "value": "IN_PROGRESS"}},
        {
            "or": [
                {"ge": {"field": "$.total.amount", "value": 100000}},
                {"eq": {"field": "$.notify.policy", "value": "ALWAYS"}},
            ]
        },
    ]
}


def test_hor_t01_two_subscribers_get_one_post_each_and_both_are_delivered(hub: Hub) -> None:
    with Receiver() as one, Receiver() as two:
        world = World(hub)
        subscriptions = [world.subscribe(one, "one"), world.subscribe(two, "two")]
        (event,) = world.send({"orderId": "1"})
        assert [found["id"] for found in (*arrived(one, 1), *arrived(two, 1))] == [event, event]
        for subscription in subscriptions:
            until(lambda name=subscription: world.statuses(name) == {event: "DELIVERED"}, "it is delivered")  # type: ignore[misc]
        assert (len(posts(one)), len(posts(two))) == (1, 1)


def test_hor_t02_a_later_subscriber_does_not_get_what_came_before(hub: Hub) -> None:
    with Receiver() as receiver:
        world = World(hub)
        world.send({"n": 1})
        world.subscribe(receiver)
        (later,) = world.send({"n": 2})
        assert [one["id"] for one in arrived(receiver, 1)] == [later]


def test_hor_t11_numbers_are_compared_by_value_and_booleans_are_no_numbers(hub: Hub) -> None:
    with Receiver() as handbook, Receiver() as five, Receiver() as one:
        world = World(hub)
        world.subscribe(handbook, "a", trigger={"advancedSelectionFilter": HANDBOOK})
        world.subscribe(five, "b", trigger={"advancedSelectionFilter": {"eq": {"field": "$.n", "value": 5}}})
        dropped = world.subscribe(one, "c", trigger={"advancedSelectionFilter": {"eq": {"field": "$.n", "value": 1}}})
        state = {"processing": {"state": "IN_PROGRESS"}}
        ids = world.send({**state, "total": {"amount": 250000.5}, "n": 5.0}, {**state, "n": True}, {"n": 1})
        assert [found["id"] for found in arrived(handbook, 1)] == [ids[0]]
        assert [found["id"] for found in arrived(five, 1)] == [ids[0]]
        assert [found["id"] for found in arrived(one, 1)] == [ids[2]]
        (told,) = world.events(dropped, f"?eventId={ids[1]}")
        assert (told["status"], told["properties"]["selectionFilterResult"]) == ("DROPPED", "CONSUMER_FILTER_ERROR")
        trace = told["properties"]["selectionFilterTrace"]
        assert (trace["operatorName"], trace["match"]) == ("equal", False)
        assert trace["causeDescription"] == "Actual value did not equal expected value."
        assert trace["operator"] == {"operator": "EQ", "expectedValue": 1, "jsonPath": "$.n"}
        assert world.call("GET", f"/horizon/v1/{world.environment}/subscriptions/{dropped}/events/{told['id']}").json == told
        assert {found["event"]["id"] for found in world.events(dropped, "?status=DROPPED")} == {ids[0], ids[1]}


def test_hor_t13_the_handbook_response_filter_leaves_exactly_the_handbook_result(hub: Hub) -> None:
    order = {"number": 2389848, "shoppingCartRef": "/shoppingCart/b717b88c-ba6d-43be-b4f9-ad0316a60755"}
    data = {"order": order, "customer": {"name": "x"}, "total": {"amount": 39.99, "currency": "EUR", "taxRate": 19}}
    with Receiver() as receiver:
        world = World(hub)
        world.subscribe(receiver, trigger={"responseFilter": ["total.amount", "total.currency", "order.number"]})
        event = json.dumps(a_horizon_event(data=data), separators=(",", ":")).encode()
        assert world.publish(event).status == 201
        arrived(receiver, 1)
        # Member order is that of the event, as the handbook shows it (HOR-178).
        assert b'"data":{"order":{"number":2389848},"total":{"amount":39.99,"currency":"EUR"}}' in posts(receiver)[0].body


SCOPES = [
    {"name": "default", "trigger": {"responseFilter": ["orderItem.productid"]}},
    {"name": "billing", "trigger": {"responseFilter": ["orderId", "customerId"]}},
    {
        "name": "device-orders",
        "trigger": {
            "advancedSelectionFilter": {"eq": {"field": "type", "value": "DEVICE"}},
            "responseFilter": ["orderItem.productid", "orderItem.quantity"],
        },
    },
    {"name": "small", "trigger": {"selectionFilter": {"type": "SERVICE"}}},
]
ORDER = {"orderId": "1", "customerId": "c", "type": "DEVICE", "orderItem": {"productid": "p", "quantity": 2}}


def test_hor_t15_and_t16_scopes_and_the_default_scope(hub: Hub) -> None:
    with Receiver() as none, Receiver() as billing, Receiver() as two:
        world = World(hub, scopes=SCOPES)
        world.subscribe(none, "none")
        world.subscribe(billing, "billing", scopes=["billing"])
        both = world.subscribe(two, "two", scopes=["small", "device-orders"])
        world.send(ORDER, {**ORDER, "type": "SERVICE"}, {**ORDER, "type": "OTHER"})
        assert [one["data"] for one in arrived(none, 3)] == [{"orderItem": {"productid": "p"}}] * 3
        assert [one["data"] for one in arrived(billing, 3)] == [{"orderId": "1", "customerId": "c"}] * 3
        assert [one["data"] for one in arrived(two, 2)] == [{"orderItem": {"productid": "p", "quantity": 2}}] * 2
        shown = world.call("GET", f"/horizon/v1/{world.environment}/subscriptions/{both}").json
        assert shown["appliedScopes"] == ["small", "device-orders"]
        assert shown["publisherTrigger"] == {
            "advancedSelectionFilter": {
                "or": [
                    {"eq": {"field": "type", "value": "DEVICE"}},
                    {"eq": {"field": "type", "value": "SERVICE"}},
                ]
            },
            "responseFilter": ["orderItem.productid", "orderItem.quantity"],
            "responseFilterMode": "INCLUDE",
        }


def test_hor_t18_and_t48_the_consumer_filters_what_the_scopes_leave(hub: Hub) -> None:
    quantity = {"ge": {"field": "orderItem.quantity", "value": 2}}
    with Receiver() as stripped, Receiver() as wanted, Receiver() as always:
        world = World(hub, scopes=[*SCOPES, {"name": "all", "trigger": {}}])
        by_type = {"advancedSelectionFilter": {"eq": {"field": "type", "value": "DEVICE"}}}
        nothing = world.subscribe(stripped, "stripped", scopes=["billing"], trigger=by_type)
        scopes = ["billing", "device-orders"]
        world.subscribe(wanted, "wanted", scopes=scopes, trigger={"advancedSelectionFilter": quantity})
        world.subscribe(always, "always", scopes=["all"], trigger={"advancedSelectionFilter": HANDBOOK})
        policy = {"processing": {"state": "IN_PROGRESS"}, "notify": {"policy": "ALWAYS"}}
        few = {"productid": "p", "quantity": 1}
        ids = world.send(ORDER, {**ORDER, "orderItem": few}, {**ORDER, "type": "SERVICE"}, policy)
        assert [one["data"] for one in arrived(wanted, 1)] == [
            {"orderId": "1", "customerId": "c", "orderItem": {"productid": "p", "quantity": 2}}
        ]
        assert [one["id"] for one in arrived(always, 1)] == [ids[3]]
        dropped = until(lambda: world.events(nothing, "?status=DROPPED"), "dropped ones")
        assert {one["properties"]["selectionFilterResult"] for one in dropped} == {"CONSUMER_FILTER_ERROR"}
        assert len(dropped) == 4 and not stripped.arrivals


def test_hor_t20_the_other_team_gets_nothing_before_approval_and_events_after(hub: Hub) -> None:
    with Receiver() as other, Receiver() as same:
        world = World(hub)
        rover = a_rover("bill", subscriptions=[an_entry(callback=other.url)])
        part = world.apply(rover, query="?team=hub--other").json["results"][0]["parts"][0]
        assert part["state"] == "PENDING"
        world.subscribe(same, "same")
        (before,) = world.send({"n": 1})
        assert [one["id"] for one in arrived(same, 1)] == [before]
        assert world.decide(part["subscriptionId"], "APPROVE").json["state"] == "ACTIVE"
        (after,) = world.send({"n": 2})
        assert [one["id"] for one in arrived(other, 1)] == [after]


def test_hor_t40_the_callback_has_its_token_and_headers(hub: Hub) -> None:
    with Receiver() as receiver:
        world = World(hub)
        subscription = world.subscribe(receiver)
        event = a_horizon_event()
        assert world.publish(event, x_foo="1", cookie="a=b").status == 201
        arrived(receiver, 1)
        headers = posts(receiver)[0].headers
        assert headers["x-foo"] == "1" and "cookie" not in headers
        assert headers["content-type"] == headers["accept"] == "application/json"
        assert (headers["x-event-id"], headers["x-event-type"]) == (event["id"], "orders.v1")
        assert headers["x-pubsub-publisher-id"] == "hub--team--shop"
        assert headers["x-pubsub-subscriber-id"] == "hub--team--bill"
        assert headers["x-subscription-id"] == subscription
        keys = jwt.PyJWKSet.from_dict(hub.call("GET", "/.well-known/jwks.json").json)
        token = headers["authorization"].removeprefix("Bearer ")
        key = keys[jwt.get_unverified_header(token)["kid"]]
        claims = jwt.decode(token, key.key, algorithms=[key.algorithm_name])
        assert claims["clientId"] == "eventstore" and claims["requestPath"] == "/horizon-caas/callback/v1"
        assert (claims["publisherId"], claims["subscriberId"]) == ("hub--team--shop", "hub--team--bill")
        assert claims["exp"] - claims["iat"] == 300 and claims["iss"]


def test_hor_t43_the_subscription_id_of_the_documents(hub: Hub) -> None:
    rover = a_rover("order-processing", subscriptions=[an_entry()])
    answer = Door(hub).apply(rover, query="?team=ecommerce--billing").json
    assert answer["results"][0]["parts"][0]["subscriptionId"] == "e200491417afdf13deb1162a348bd3c887d11789"
    assert subscription_id("playground", "orders.v1", "ecommerce--billing--order-processing").startswith("e2004914")


def test_hor_t44_negative_operators_on_a_missing_field_and_on_null(hub: Hub) -> None:
    with Receiver() as ne, Receiver() as nin, Receiver() as nct:
        world = World(hub)
        for receiver, operator, value in ((ne, "ne", 1), (nin, "nin", [1]), (nct, "nct", 1)):
            filter = {operator: {"field": "$.n", "value": value}}
            world.subscribe(receiver, operator, trigger={"advancedSelectionFilter": filter})
        ids = world.send({"other": 1}, {"n": None}, {"n": 2})
        assert [one["id"] for one in arrived(nct, 2)] == [ids[1], ids[2]]
        assert [one["id"] for one in arrived(ne, 1)] == [ids[2]]
        assert [one["id"] for one in arrived(nin, 1)] == [ids[2]]


def test_hor_t45_text_data_is_parsed_for_filters_only(hub: Hub) -> None:
    with Receiver() as plain, Receiver() as filtered:
        world = World(hub)
        world.subscribe(plain, "plain")
        picky = world.subscribe(filtered, "picky", trigger={"advancedSelectionFilter": {"eq": {"field": "n", "value": 1}}})
        text = '{"n": 1, "m": "x"}'
        ids = world.send(text, "no json", "")
        ids += world.send({"a": 1}, datacontenttype="text/plain")
        found = {one["id"]: one["data"] for one in arrived(plain, 4)}
        assert [found[one] for one in ids] == [text, "no json", "", {"a": 1}]
        assert [one["data"] for one in arrived(filtered, 1)] == [{"n": 1, "m": "x"}]
        dropped = until(lambda: world.events(picky, "?status=DROPPED"), "dropped ones")
        results = {one["event"]["id"]: one["properties"]["selectionFilterResult"] for one in dropped}
        assert results == dict.fromkeys(ids[1:], "INVALID_PAYLOAD_ERROR")


def test_events_are_sent_again_and_what_cannot_be_is_told(hub: Hub) -> None:
    with Receiver() as receiver:
        world = World(hub)
        subscription = world.subscribe(receiver, trigger={"advancedSelectionFilter": {"eq": {"field": "n", "value": 1}}})
        ids = world.send({"n": 1}, {"n": 2})
        arrived(receiver, 1)
        until(lambda: world.statuses(subscription) == {ids[0]: "DELIVERED"}, "it is delivered")
        (one,), (other,) = world.events(subscription), world.events(subscription, "?status=DROPPED")
        path = f"/horizon/v1/{world.environment}/subscriptions/{subscription}/redeliver"
        answer = world.call("POST", path, {"ids": [one["id"], other["id"], str(uuid.uuid4())]})
        assert answer.status == 202 and answer.json["accepted"] == 1
        assert {(each["id"], each["reason"]) for each in answer.json["skipped"]} >= {(other["id"], "DROPPED")}
        assert [each["reason"] for each in answer.json["skipped"]].count("UNKNOWN") == 1
        assert [found["id"] for found in arrived(receiver, 2)] == [ids[0]] * 2
        until(lambda: world.statuses(subscription) == {ids[0]: "DELIVERED"}, "it is delivered again")
        assert world.call("POST", path, {"status": ["DELIVERED"]}).json == {"accepted": 1, "skipped": []}
        arrived(receiver, 3)
        assert world.call("POST", path, {}).status == 400
        told = world.call("GET", f"/horizon/v1/{world.environment}/subscriptions/{subscription}/events/{one['id']}").json
        assert told["attempts"] >= 2 and len(told["history"]) >= 2


def test_a_breaker_is_shown_and_closed(hub: Hub) -> None:
    with Receiver() as receiver:
        world = World(hub)
        subscription = world.subscribe(receiver)
        shown = world.call("GET", f"/horizon/api/v1/circuit-breakers/{subscription}")
        assert shown.status == 200 and shown.json["status"] == "CLOSED"
        assert world.call("GET", "/horizon/api/v1/circuit-breakers/nothing").status == 404
        for path in ("circuit-breakers", "health-checks", "republishing-entries"):
            assert isinstance(world.call("GET", f"/horizon/api/v1/{path}").json["items"], list)
        assert world.call("PUT", f"/horizon/api/v1/circuit-breakers/close/{subscription}").status in (200, 409)


def test_the_owner_tracks_what_was_published(hub: Hub) -> None:
    world = World(hub)
    ids = world.send({"n": 1}, {"n": 2}, {"n": 3})
    path = f"/horizon/v1/{world.environment}/event-types/orders.v1/events"
    assert [one["id"] for one in world.call("GET", path).json["items"]] == ids[::-1]
    first = world.call("GET", f"{path}?limit=2").json
    assert [one["id"] for one in first["items"]] == [ids[2], ids[1]]
    assert [one["id"] for one in world.call("GET", f"{path}?limit=2&cursor={first['next']}").json["items"]] == [ids[0]]
    assert [one["id"] for one in world.call("GET", f"{path}?eventId={ids[1]}").json["items"]] == [ids[1]]
    assert world.call("GET", path.replace("orders.v1", "other.v1")).status == 404
