"""Horizon worlds in a running hub: an environment of its own for each test, its subscribers and what reaches them."""

from __future__ import annotations

import json
import uuid
from typing import Any

from tests.doors.horizon.worlds import Door, a_horizon_event, a_rover, a_specification, an_entry, exposing
from tests.hub import Hub
from tests.polling import until
from tests.receivers import Arrival, Receiver


class World(Door):
    """An environment of its own in a shared hub, with one type that the application `shop` exposes."""

    def __init__(self, hub: Hub, **exposure: Any) -> None:
        super().__init__(hub, environment=f"e{uuid.uuid4().hex[:12]}")
        self.applied(exposing(**exposure), a_specification())

    def subscribe(self, receiver: Receiver | None, name: str = "bill", **members: Any) -> str:
        """Subscribe an application of the same team; its subscription id."""
        to = {"callback": receiver.url} if receiver is not None else {}
        (part,) = self.parts(a_rover(name, subscriptions=[an_entry(**{**to, **members})]))
        assert part["state"] == "ACTIVE", part
        return str(part["subscriptionId"])

    def send(self, *datas: Any, **members: Any) -> list[str]:
        """Publish an event for each payload; their ids."""
        ids = []
        for data in datas:
            event = a_horizon_event(data=data, **members)
            assert self.publish(event).status == 201
            ids.append(event["id"])
        return ids

    def events(self, subscription: str, query: str = "") -> list[dict[str, Any]]:
        answer = self.call("GET", f"/horizon/v1/{self.environment}/subscriptions/{subscription}/events{query}")
        assert answer.status == 200, answer.body
        items: list[dict[str, Any]] = answer.json["items"]
        return items

    def statuses(self, subscription: str) -> dict[str, str]:
        return {one["event"]["id"]: one["status"] for one in self.events(subscription)}


def arrived(receiver: Receiver, many: int) -> list[Any]:
    """The events that arrived, once there are this many."""
    until(lambda: len(posts(receiver)) >= many, f"{many} events, not {len(posts(receiver))}")
    return [json.loads(one.body) for one in posts(receiver)]


def posts(receiver: Receiver) -> list[Arrival]:
    """What was delivered, probes aside."""
    return [one for one in receiver.arrivals if one.method == "POST"]


def breaker(world: World, subscription: str) -> dict[str, Any]:
    """The entry of a subscription's circuit breaker."""
    answer = world.call("GET", f"/horizon/api/v1/circuit-breakers/{subscription}")
    assert answer.status == 200, answer.body
    found: dict[str, Any] = answer.json
    return found
