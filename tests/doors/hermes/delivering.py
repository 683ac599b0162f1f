"""Hermes subscriptions that are delivered to: the api and a real deliver process; messages are routed by hand, without Spark."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.doors.hermes.worlds import HermesDoor
from tests.doors.sse.worlds import Streaming, streaming
from tests.polling import until
from tests.receivers import Arrival, Receiver

_numbers = itertools.count(1)


class HermesWorld(HermesDoor):
    """A door with a deliver process behind it."""

    def __init__(self, world: Streaming) -> None:
        super().__init__(world.api)
        self.world = world

    def subscribed(self, receiver: Receiver | str, path: str = "", topic: str = "", **members: Any) -> Subscribed:
        """A topic of its own, unless one is named, and a subscription to it."""
        topic = topic or self.topic(f"shop.t{next(_numbers)}")
        name = f"s{next(_numbers)}"
        endpoint = receiver if isinstance(receiver, str) else receiver.url.removesuffix("/in") + (path or "/in")
        self.subscribe(name, topic, endpoint=endpoint, **members)
        return Subscribed(self, topic, name)


class Subscribed:
    """One subscription: what is sent to it, and what is told of it."""

    def __init__(self, door: HermesWorld, topic: str, name: str) -> None:
        self.door = door
        self.topic = topic
        self.path = f"/topics/{topic}/subscriptions/{name}"
        self.lane = door.world.lane(name)

    def send(self, *bodies: Any, **headers: str) -> list[str]:
        """Publish messages, and bring them into the lane; their ids."""
        ids = [self.door.sent(self.topic, body, **headers) for body in bodies]
        self.door.world.route(self.lane)
        return ids

    def state(self, state: str, method: str = "PUT") -> int:
        return self.door.call(method, f"{self.path}/state", f'"{state}"'.encode()).status

    def metrics(self) -> dict[str, Any]:
        found: dict[str, Any] = self.door.get(f"{self.path}/metrics")
        return found

    def done(self, delivered: int = 0, discarded: int = 0) -> None:
        """Go on when so many messages are final."""

        def holds() -> bool:
            found = self.metrics()
            return bool((found["delivered"], found["discarded"]) == (delivered, discarded))

        until(holds, lambda: f"{delivered} delivered and {discarded} discarded, not {self.metrics()}")


def retries(arrivals: list[Arrival]) -> list[str]:
    return [one.headers["hermes-retry-count"] for one in arrivals]


@contextmanager
def a_hermes_world(data: Path, **flags: Any) -> Iterator[HermesWorld]:
    with streaming(data, **flags) as world:
        yield HermesWorld(world)
