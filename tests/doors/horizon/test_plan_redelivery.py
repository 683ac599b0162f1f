"""Sending again where nothing can be sent at once: behind an open breaker, and on a stream (HOR-155)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.doors.horizon.flows import World, arrived, posts
from tests.hub import Hub
from tests.polling import until
from tests.receivers import Answer, Arrival, Receiver

pytestmark = [pytest.mark.hub, pytest.mark.spark]


def redeliver(world: World, subscription: str, *ids: str) -> Any:
    path = f"/horizon/v1/{world.environment}/subscriptions/{subscription}/redeliver"
    answer = world.call("POST", path, {"ids": list(ids)})
    assert answer.status == 202, answer.body
    return answer.json


def test_hor_155_behind_an_open_breaker_what_is_sent_again_waits(hub: Hub) -> None:
    well = [True]

    def answer(arrival: Arrival) -> Answer:
        return Answer(200 if well[0] else 503)

    with Receiver(answer) as receiver:
        world = World(hub)
        subscription = world.subscribe(receiver, deliveryPolicy={"maxRetries": 0, "probeIntervalSeconds": 3600})
        (first,) = world.send({"n": 1})
        until(lambda: world.statuses(subscription) == {first: "DELIVERED"}, "it is delivered")
        well[0] = False
        (second,) = world.send({"n": 2})
        until(lambda: world.statuses(subscription) == {first: "DELIVERED", second: "WAITING"}, "the breaker is open")
        ids = {one["event"]["id"]: one["id"] for one in world.events(subscription)}
        told = redeliver(world, subscription, ids[first], ids[second])
        assert told == {"accepted": 1, "skipped": [{"id": ids[second], "reason": "NOT_FINAL"}]}
        until(lambda: world.statuses(subscription) == {first: "WAITING", second: "WAITING"}, "both wait")
        assert len(posts(receiver)) == 2
        well[0] = True
        assert world.call("PUT", f"/horizon/api/v1/circuit-breakers/close/{subscription}").status == 200
        until(lambda: world.statuses(subscription) == {first: "DELIVERED", second: "DELIVERED"}, "both are delivered")
        sent = [one["id"] for one in arrived(receiver, 4)]
        assert (sorted(sent), len(sent)) == (sorted([first, first, second, second]), 4)


def test_hor_155_what_a_stream_has_delivered_can_be_read_again(hub: Hub) -> None:
    world = World(hub)
    subscription = world.subscribe(None, deliveryType="server_sent_event", callback=None)
    stream = f"/horizon/v1/{world.environment}/sse/{subscription}?maxNumber=1"
    (event,) = world.send({"n": 1})
    assert json.loads(world.call("GET", stream).body)["id"] == event
    until(lambda: world.statuses(subscription) == {event: "DELIVERED"}, "it is delivered")
    (shown,) = world.events(subscription)
    assert redeliver(world, subscription, shown["id"]) == {"accepted": 1, "skipped": []}
    until(lambda: world.statuses(subscription) == {event: "PROCESSED"}, "it is there to be read")
    assert json.loads(world.call("GET", stream).body)["id"] == event
    until(lambda: world.statuses(subscription) == {event: "DELIVERED"}, "it is delivered again")
