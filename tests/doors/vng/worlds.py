"""Small VNG worlds over a running hub or api: domains, events, subscriptions, and sinks that consent."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from tests.api_process import ApiProcess
from tests.hub import Answer, Hub
from tests.receivers import Answer as SinkAnswer
from tests.receivers import Arrival, Receiver, Script
from tidings.access.authentication import token_digest

EVENT = "application/cloudevents+json; charset=utf-8"
CONSENT = SinkAnswer(200, {"webhook-allowed-origin": "*"})
ZAKEN = "nl.vng.zaken"


def an_event(**members: Any) -> dict[str, Any]:
    """A valid event of the domain `nl.vng.zaken`; members that are given as `...` are left out."""
    event = {
        "specversion": "1.0",
        "id": str(uuid.uuid4()),
        "source": "urn:nld:oin:00000001234567890000:systeem:Zaaksysteem",
        "domain": ZAKEN,
        "type": "nl.vng.zaken.status_gewijzigd",
        "time": "2022-03-16T15:29:30.833664Z",
        "datacontenttype": "application/json",
        "data": {"zaak": 1},
        **members,
    }
    return {name: value for name, value in event.items() if value is not ...}


def consenting(answers: Script = (SinkAnswer(204),), consent: SinkAnswer = CONSENT) -> Receiver:
    """A sink that consents to the handshake and then answers POSTs by the script."""
    posts: list[Arrival] = []

    def script(arrival: Arrival) -> SinkAnswer:
        if arrival.method == "OPTIONS":
            return consent
        posts.append(arrival)
        return answers(arrival) if callable(answers) else answers[min(len(posts), len(answers)) - 1]

    return Receiver(script)


def posts(receiver: Receiver) -> list[Arrival]:
    return [one for one in receiver.arrivals if one.method == "POST"]


class VngDoor:
    """The VNG door of a hub or api, as one caller sees it."""

    def __init__(self, api: ApiProcess | Hub, token: str | None = None) -> None:
        self.api = api
        self._headers = {"authorization": f"Bearer {token}"} if token else {}

    def call(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Answer:
        return self.api.call(method, f"/vng{path}", body, {**self._headers, **(headers or {})})

    def publish(self, event: Any, content_type: str = EVENT, **headers: str) -> Answer:
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.call("POST", "/events", event, {"content-type": content_type, **more})

    def domain(self, name: str = ZAKEN, *attributes: str, **members: Any) -> dict[str, Any]:
        """A domain that is made."""
        answer = self.call("POST", "/domains", {"name": name, "filterAttributes": list(attributes), **members})
        assert answer.status == 201, answer.body
        made: dict[str, Any] = answer.json
        return made

    def subscribe(self, sink: str, **members: Any) -> Answer:
        return self.call("POST", "/subscriptions", {"sink": sink, "protocol": "HTTP", **members})

    def subscribed(self, sink: str, **members: Any) -> dict[str, Any]:
        """A subscription that is made."""
        answer = self.subscribe(sink, **members)
        assert answer.status == 201, answer.body
        made: dict[str, Any] = answer.json
        return made


def params(answer: Answer) -> dict[str, str]:
    """What a 400 says is wrong: name and code."""
    assert answer.status == 400, answer.body
    return {one["name"]: one["code"] for one in answer.json["invalidParams"]}


def tokens(**rights: list[str]) -> dict[str, Any]:
    """Settings of a hub where each of these names is its own token, with these rights."""
    return {
        "mode": "tokens",
        "tokens": [{"name": name, "sha256": token_digest(name), "rights": given} for name, given in rights.items()],
    }
