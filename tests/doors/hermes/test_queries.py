"""Queries over documents, and filters on trial (HER-23, HER-24, HER-T20)."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from tests.api_process import an_api
from tests.doors.hermes.worlds import HermesDoor, refusal


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HermesDoor]:
    with an_api(tmp_path_factory.mktemp("api")) as api:
        door = HermesDoor(api)
        door.topic("shop.orders", trackingEnabled=True)
        door.topic("shop.carts", maxMessageSize=2048)
        door.topic("bank.orders")
        door.subscribe("mail", "shop.orders", endpoint="http://mail.example/in", headers=[{"name": "Key", "value": "s"}])
        door.subscribe("bill", "shop.orders", subscriptionPolicy={"rate": 7})
        yield door


def found(door: HermesDoor, path: str, query: Any) -> Any:
    answer = door.call("POST", path, {"query": query})
    assert answer.status == 200, answer.body
    return answer.json


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({}, ["bank.orders", "shop.carts", "shop.orders"]),
        ({"name": "shop.carts"}, ["shop.carts"]),
        ({"trackingEnabled": True}, ["shop.orders"]),
        ({"trackingEnabled": "true"}, ["shop.orders"]),
        ({"name": {"like": "shop.*"}}, ["shop.carts", "shop.orders"]),
        ({"name": {"like": "shop"}}, []),
        ({"maxMessageSize": {"lt": 3000}}, ["shop.carts"]),
        ({"maxMessageSize": {"gt": 3000}, "name": {"ne": "bank.orders"}}, ["shop.orders"]),
        ({"retentionTime.duration": {"eq": 1}, "name": {"in": ["bank.orders", "x"]}}, ["bank.orders"]),
        ({"or": [{"name": "bank.orders"}, {"name": "shop.carts"}]}, ["bank.orders", "shop.carts"]),
        ({"and": [{"name": {"like": ".*orders"}}, {"not": {"name": {"like": "bank.*"}}}]}, ["shop.orders"]),
        ({"name": {"not": {"like": "shop.*"}}}, ["bank.orders"]),
        ({"nothing": {"gt": 1}}, []),
    ],
)
def test_topics_are_found(door: HermesDoor, query: Any, names: list[str]) -> None:
    assert found(door, "/topics/query", query) == names
    assert [one["name"] for one in found(door, "/query/topics", query)] == names


def test_subscriptions_and_groups_are_found(door: HermesDoor) -> None:
    assert found(door, "/topics/shop.orders/subscriptions/query", {"subscriptionPolicy.rate": {"lt": 100}}) == ["bill"]
    (mail,) = found(door, "/query/subscriptions", {"endpoint": {"like": ".*mail.*"}})
    assert mail["headers"] == [{"name": "Key", "value": "s"}]
    assert found(door, "/query/groups", {"groupName": "bank"}) == [{"groupName": "bank"}]
    (counted,) = found(door, "/query/subscriptions/metrics", {"name": "bill"})
    assert counted["metrics"] == {"delivered": 0, "discarded": 0, "volume": 0}


@pytest.mark.parametrize(
    "body", [{}, {"query": 5}, {"query": {"name": {"like": "("}}}, {"query": {"name": {"near": 1}}}, {"query": {"or": 1}}]
)
def test_a_query_that_cannot_be_read_is_refused(door: HermesDoor, body: Any) -> None:
    answer = door.call("POST", "/query/topics", body)
    assert refusal(answer) == (400, "FORMAT_ERROR") and answer.json["message"].startswith("Query could not be parsed")


def tried(door: HermesDoor, topic: str, chain: list[dict[str, Any]], message: bytes) -> dict[str, Any]:
    body = {"filters": chain, "message": base64.b64encode(message).decode()}
    answer = door.call("POST", f"/filters/{topic}", body)
    assert answer.status == 200, answer.body
    shown: dict[str, Any] = answer.json
    return shown


def test_filters_are_tried_on_a_message(door: HermesDoor) -> None:
    chain = [{"type": "jsonpath", "path": "$.a", "matcher": "x"}]
    assert tried(door, "shop.orders", chain, b'{"a": "x"}') == {"status": "MATCHED"}
    assert tried(door, "shop.orders", chain, b'{"a": "y"}') == {"status": "NOT_MATCHED"}
    broken = tried(door, "shop.orders", chain, b"hello")
    assert broken["status"] == "NOT_MATCHED" and "JSON" in broken["errorMessage"]
    bad = door.call("POST", "/filters/shop.orders", {"filters": [{"type": "jsonpath", "path": "$[", "matcher": "x"}]})
    assert refusal(bad)[0] == 400
    assert refusal(door.call("POST", "/filters/shop.nothing", {"filters": []})) == (404, "TOPIC_NOT_EXISTS")
