"""A hub with the CloudEvents door, and what tests send to it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.api_process import ApiProcess, an_api
from tests.hub import Answer as HubAnswer
from tests.hub import Hub
from tests.receivers import Answer

ORIGIN = "hub.example"
STRUCTURED = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"
CONSENT = Answer(200, {"WebHook-Allowed-Origin": "*"})


def an_event(**attributes: Any) -> dict[str, Any]:
    """A valid event in JSON form; None leaves a member out."""
    members = {"specversion": "1.0", "id": "1", "source": "/shop", "type": "order.created", "data": {"total": 5}}
    return {name: value for name, value in (members | attributes).items() if value is not None}


@dataclass(frozen=True)
class Door:
    """The door of a running api."""

    api: ApiProcess

    def call(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> HubAnswer:
        return self.api.call(method, f"/cloudevents{path}", body, headers)

    def publish(self, body: Any, content_type: str = STRUCTURED, path: str = "/topics/orders", **more: str) -> HubAnswer:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.call("POST", path, raw, {"content-type": content_type, **more})

    def binary(self, body: bytes | None, path: str = "/topics/orders", **headers: str) -> HubAnswer:
        """An event in binary mode; underscores in names of headers are dashes."""
        usual = {"ce_specversion": "1.0", "ce_id": "1", "ce_source": "/shop", "ce_type": "order.created"}
        sent = {name.replace("_", "-"): value for name, value in (usual | headers).items() if value}
        return self.call("POST", path, body if body is not None else b"", sent)

    def create(self, sink: str, **members: Any) -> HubAnswer:
        return self.call("POST", "/subscriptions", {"sink": sink, "protocol": "HTTP", **members})

    def events(self, topic: str = "orders") -> list[Any]:
        return self.api.events(topic)


@contextmanager
def a_door(data: Path, **settings: Any) -> Iterator[Door]:
    push = {
        "public_dns_name": ORIGIN,
        "allow": ["127.0.0.1", "127.0.0.0/8"],
        "connect_timeout": "2s",
        **settings.pop("push", {}),
    }
    with an_api(data, push=push, **settings) as api:
        assert api.call("PUT", "/api/topics/orders", {"duplicates": "24h"}).status == 201
        yield Door(api)


@dataclass(frozen=True)
class HubDoor:
    """The door of a whole hub; each test has topics of its own."""

    hub: Hub

    def call(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> HubAnswer:
        return self.hub.call(method, f"/cloudevents{path}", body, headers)

    def topic(self, **fields: Any) -> str:
        name = f"ce-{uuid.uuid4().hex[:12]}"
        assert self.hub.call("PUT", f"/api/topics/{name}", fields).status == 201
        return name

    def subscribe(self, sink: str, topic: str, members: Mapping[str, Any] | None = None, **config: Any) -> Any:
        body = {"sink": sink, "protocol": "HTTP", "config": {"topic": topic, **config}, **(members or {})}
        made = self.call("POST", "/subscriptions", body)
        assert made.status == 201, made.body
        return made.json

    def publish_all(self, topic: str, events: list[dict[str, Any]]) -> None:
        answer = self.call("POST", f"/topics/{topic}", json.dumps(events).encode(), {"content-type": BATCH})
        assert answer.status == 202, answer.body
