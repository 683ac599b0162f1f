"""Small Hermes worlds over a running api or hub: groups, topics, subscriptions, messages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.api_process import ApiProcess
from tests.hub import Answer, Hub

OWNER = {"source": "Plaintext", "id": "My Team"}


def a_topic(name: str = "shop.orders", **members: Any) -> dict[str, Any]:
    topic = {
        "name": name,
        "description": "orders",
        "owner": OWNER,
        "retentionTime": {"duration": 1},
        "contentType": "JSON",
        **members,
    }
    return {key: value for key, value in topic.items() if value is not None}


def a_subscription(name: str = "mySubscription", topic: str = "shop.orders", **members: Any) -> dict[str, Any]:
    """The page's minimal request, and what a test wants of it; None leaves a member out."""
    subscription = {
        "topicName": topic,
        "name": name,
        "description": "This is my subscription",
        "endpoint": "http://my-service",
        "owner": OWNER,
        **members,
    }
    return {key: value for key, value in subscription.items() if value is not None}


class HermesDoor:
    """The Hermes door of a hub or api, as one caller sees it."""

    def __init__(self, api: ApiProcess | Hub, token: str | None = None, prefix: str = "/hermes") -> None:
        self.api = api
        self._prefix = prefix
        self._headers = {"authorization": f"Bearer {token}"} if token else {}

    def call(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Answer:
        return self.api.call(method, self._prefix + path, body, {**self._headers, **(headers or {})})

    def get(self, path: str) -> Any:
        answer = self.call("GET", path)
        assert answer.status == 200, answer.body
        return answer.json

    def made(self, path: str, body: Any) -> Answer:
        answer = self.call("POST", path, body)
        assert answer.status == 201, answer.body
        return answer

    def topic(self, name: str = "shop.orders", **members: Any) -> str:
        """Create a topic, and its group where it is not there."""
        group = name.rpartition(".")[0]
        if group not in self.get("/groups"):
            self.made("/groups", {"groupName": group})
        self.made("/topics", a_topic(name, **members))
        return name

    def subscribe(self, name: str = "mySubscription", topic: str = "shop.orders", **members: Any) -> str:
        """Create a subscription; its path."""
        self.made(f"/topics/{topic}/subscriptions", a_subscription(name, topic, **members))
        return f"/topics/{topic}/subscriptions/{name}"

    def publish(self, topic: str, body: Any, **headers: str) -> Answer:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.call("POST", f"/topics/{topic}", raw, {name.replace("_", "-"): value for name, value in headers.items()})

    def sent(self, topic: str, body: Any, **headers: str) -> str:
        """Publish a message that is accepted; its id."""
        answer = self.publish(topic, body, **headers)
        assert answer.status == 201, answer.body
        return answer.headers["hermes-message-id"]

    def stored(self, topic: str = "shop.orders") -> list[Any]:
        """What the log has of a topic, as CloudEvents."""
        answer = self.api.call("GET", f"/api/topics/hermes:{topic}/events?limit=1000", None, self._headers)
        assert answer.status == 200, answer.body
        return [json.loads(line)["event"] for line in answer.body.splitlines() if b'"event"' in line]


def refusal(answer: Answer) -> tuple[int, str]:
    """Status and code of a refusal, whose body has Hermes' form."""
    assert set(answer.json) == {"message", "code"}, answer.body
    return answer.status, answer.json["code"]
