"""What happens in the demo: two publishers, three subscribers, one callback."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tidings.cli.receiver import ReceivedRequest, Receiver
from tidings.client.http import HubClient
from tidings.errors import HubProblem, HubUnreachable
from tidings.ids import random_id

MARKER = "demo"
"""A file in the data folder that says: this hub was made by the demo."""


@dataclass(frozen=True, slots=True)
class Publisher:
    """Somebody who publishes."""

    name: str
    topic: str
    type: str
    per_second: float
    data: Callable[[random.Random], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Subscriber:
    """Somebody who gets events at a path of the demo's callback."""

    name: str
    topic: str
    where: str | None
    path: str


def _order(chance: random.Random) -> dict[str, Any]:
    return {"order": chance.randrange(10_000), "total": chance.randrange(5, 300), "region": chance.choice(["EU", "US"])}


def _parcel(chance: random.Random) -> dict[str, Any]:
    return {"parcel": chance.randrange(10_000), "weight": chance.randrange(1, 30), "region": chance.choice(["EU", "US"])}


PUBLISHERS = (
    Publisher("web shop", "demo-orders", "order.created", 3.0, _order),
    Publisher("warehouse", "demo-parcels", "parcel.sent", 1.0, _parcel),
)

SUBSCRIBERS = (
    Subscriber("demo-bookkeeping", "demo-orders", None, "/bookkeeping"),
    Subscriber("demo-big-orders", "demo-orders", "total >= 200", "/big-orders"),
    Subscriber("demo-europe", "demo-parcels", "region = 'EU'", "/europe"),
)


class Scene:
    """Everything that happens, in threads of its own. What it counts is read by the view."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.published: Counter[str] = Counter()
        self.arrived: Counter[str] = Counter()
        self.recent: deque[str] = deque(maxlen=6)
        self.receiver = Receiver(self._take)
        self._stop = threading.Event()

    def start(self) -> None:
        """Make topics and subscriptions on the hub, then publish."""
        client = HubClient(self.url, timeout=10)
        for publisher in PUBLISHERS:
            client.put(f"/api/topics/{publisher.topic}", {"description": f"What the {publisher.name} tells (demo)"})
        self.receiver.start()
        for one in SUBSCRIBERS:
            wanted = {"topic": one.topic, "to": self.receiver.url + one.path, "description": "A subscriber of the demo"}
            client.put(f"/api/subscriptions/{one.name}", {**wanted, "where": one.where} if one.where else wanted)
        client.close()
        for publisher in PUBLISHERS:
            threading.Thread(target=self._publish, args=(publisher,), name=publisher.name, daemon=True).start()

    def stop(self) -> None:
        """No more events; the callback answers until the process ends."""
        self._stop.set()

    def _publish(self, publisher: Publisher) -> None:
        client, chance = HubClient(self.url, timeout=10), random.Random()
        while not self._stop.wait(chance.expovariate(publisher.per_second)):
            body = json.dumps(_event(publisher, chance)).encode()
            try:
                client.send("POST", f"/api/topics/{publisher.topic}/events", body, content_type="application/cloudevents+json")
            except (HubProblem, HubUnreachable):
                # The hub tells its own troubles; a publisher of the demo just goes on.
                client.close()
                continue
            self.published[publisher.topic] += 1

    def _take(self, arrival: ReceivedRequest) -> None:
        event = arrival.event()
        self.arrived[arrival.path] += 1
        self.recent.append(f"{arrival.path:<14}{event.get('type')}  {json.dumps(event.get('data'))}{_age(event.get('time'))}")


def _event(publisher: Publisher, chance: random.Random) -> dict[str, Any]:
    return {
        "specversion": "1.0",
        "id": random_id(),
        "source": f"/demo/{publisher.name.replace(' ', '-')}",
        "type": publisher.type,
        "time": datetime.now(UTC).isoformat(),
        "data": publisher.data(chance),
    }


def _age(sent: object) -> str:
    """How long the event was on its way."""
    try:
        took = time.time() - datetime.fromisoformat(str(sent)).timestamp()
    except ValueError:
        return ""
    return f"  after {took * 1000:,.0f} ms" if took < 10 else f"  after {took:,.0f} s"
