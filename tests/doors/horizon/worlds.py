"""Small Horizon worlds over a running api: documents, tokens, events."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any

from tests.api_process import ApiProcess
from tests.hub import Answer, Hub
from tidings.access.authentication import token_digest

API = {"apiVersion": "tcp.ei.telekom.de/v1"}
ENVIRONMENT = "playground"


def a_rover(name: str = "shop", **spec: Any) -> dict[str, Any]:
    return {**API, "kind": "Rover", "metadata": {"name": name}, "spec": {"zone": "caas", **spec}}


def a_specification(event_type: str = "orders.v1", **spec: Any) -> dict[str, Any]:
    members = {"type": event_type, "version": "1.0.0", "description": "orders", **spec}
    return {
        **API,
        "kind": "EventSpecification",
        "metadata": {"name": event_type.replace(".", "-")},
        "spec": {key: value for key, value in members.items() if value is not None},
    }


def an_entry(event_type: str = "orders.v1", **members: Any) -> dict[str, Any]:
    entry = {
        "eventType": event_type,
        "deliveryType": "callback",
        "payloadType": "data",
        "callback": "https://shop.example/hook",
        **members,
    }
    return {key: value for key, value in entry.items() if value is not None}


def a_stream(event_type: str = "orders.v1", **members: Any) -> dict[str, Any]:
    return an_entry(event_type, deliveryType="server_sent_event", callback=None, **members)


def exposing(event_type: str = "orders.v1", name: str = "shop", **members: Any) -> dict[str, Any]:
    return a_rover(name, exposures=[{"eventType": event_type, **members}])


def a_horizon_event(event_type: str = "orders.v1", **members: Any) -> dict[str, Any]:
    event = {
        "id": str(uuid.uuid4()),
        "type": event_type,
        "source": "http://shop.example",
        "specversion": "1.0",
        "datacontenttype": "application/json",
        "data": {"orderId": "1"},
        **members,
    }
    return {key: value for key, value in event.items() if value is not None}


class Door:
    """The Horizon door of a hub or api, as one caller sees it."""

    def __init__(self, api: ApiProcess | Hub, token: str | None = None, environment: str = ENVIRONMENT) -> None:
        self.api = api
        self.environment = environment
        self._headers = {"authorization": f"Bearer {token}"} if token else {}

    def call(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Answer:
        return self.api.call(method, path, body, {**self._headers, **(headers or {})})

    def apply(self, *documents: Any, query: str = "") -> Answer:
        return self.call("POST", f"/horizon/rover/v1/{self.environment}/apply{query}", list(documents))

    def applied(self, *documents: Any) -> list[dict[str, Any]]:
        """The results of documents that are accepted."""
        answer = self.apply(*documents)
        assert answer.status == 200, answer.body
        results: list[dict[str, Any]] = answer.json["results"]
        return results

    def parts(self, *documents: Any) -> list[dict[str, Any]]:
        return [part for one in self.applied(*documents) for part in one["parts"]]

    def publish(self, event: Any, **headers: str) -> Answer:
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.call("POST", f"/horizon/v1/{self.environment}/events", event, more)

    def state(self, subscription: str) -> str:
        answer = self.call("GET", f"/horizon/v1/{self.environment}/subscriptions/{subscription}")
        assert answer.status == 200, answer.body
        return str(answer.json["state"])

    def decide(self, subscription: str, decision: str, **body: str) -> Answer:
        path = f"/horizon/v1/{self.environment}/subscriptions/{subscription}/approval"
        return self.call("POST", path, {"decision": decision, **body})


def violations(answer: Answer) -> dict[str, str]:
    return {one["path"]: one["reason"] for one in json.loads(answer.body)["violations"]}


def tokens(*clients: str, admin: str = "root", **realms: str) -> dict[str, Any]:
    """Settings of a hub where each of these clients has its id as its token, and one is an administrator."""
    entries = [
        {"name": one, "sha256": token_digest(one), "rights": [], "client_id": one, "realm": realms.get("realm", "")}
        for one in clients
    ]
    return {
        "mode": "tokens",
        "tokens": [*entries, {"name": admin, "sha256": token_digest(admin), "rights": ["admin"]}],
    }
