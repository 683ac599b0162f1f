"""Publishes numbered events without end, and keeps what was acknowledged.

Whoever gets no answer does not try again: such an event may or may not be in the log, and both are right.
"""

from __future__ import annotations

import http.client
import json
import math
import random
import threading
import time
from bisect import bisect_right
from collections import Counter

from tests.hub import Hub

KEYS = 5
TAKEN, BUSY = 202, 503
TRICKLE = 0.5
"""Seconds between the requests of a publisher that has used up its haste."""


class Publisher(threading.Thread):
    """Publishes in small requests until told to stop, `pause` seconds apart. `hold` lets it wait.

    With `haste` it slows down after so many events; `spur` gives it more.
    """

    def __init__(self, name: str, topic: str, hub: Hub, pause: float, haste: float = math.inf) -> None:
        super().__init__(name=name, daemon=True)
        self.topic = topic
        self.acknowledged: dict[str, int] = {}
        self.unanswered: set[str] = set()
        self.refusals: Counter[int] = Counter()
        """Other answers than 202; 503 is the only one that anybody should get."""
        self.stop = threading.Event()
        self._going = threading.Event()
        self._going.set()
        self._idle = threading.Event()
        self._hub = hub
        self._pause = pause
        self._haste = haste
        self._chance = random.Random(name)
        self._next = 0
        self._begun: list[tuple[int, float]] = []
        self._connection: http.client.HTTPConnection | None = None

    def run(self) -> None:
        while not self.stop.is_set():
            if not self._going.is_set():
                self._idle.set()
                self._going.wait(0.1)
                continue
            numbers = range(self._next, self._next + self._chance.randint(1, 40))
            self._next = numbers.stop
            self._begun.append((numbers.start, time.time()))
            if not self._publish({f"{self.name}-{n}": n for n in numbers}):
                time.sleep(0.05)
            time.sleep(self._pause if self._next < self._haste else TRICKLE)

    def hold(self, within: float = 60) -> None:
        """Let it wait; returns when its last request was answered."""
        self._idle.clear()
        self._going.clear()
        assert self._idle.wait(within), f"publisher {self.name} does not come to rest"

    def go_on(self) -> None:
        self._going.set()

    def spur(self, events: float) -> None:
        """Let it publish so many events, from now on, without slowing down."""
        self._haste = max(self._haste, self._next + events)

    def begun_at(self, number: int) -> float:
        """When the request with this event began, as Unix time."""
        return self._begun[bisect_right(self._begun, (number, float("inf"))) - 1][1]

    def _publish(self, events: dict[str, int]) -> bool:
        body = json.dumps([self._event(event, n) for event, n in events.items()]).encode()
        try:
            if self._connection is None:
                self._connection = http.client.HTTPConnection("127.0.0.1", self._hub.port, timeout=20)
            self._connection.request(
                "POST", f"/api/topics/{self.topic}/events", body, {"content-type": "application/cloudevents-batch+json"}
            )
            response = self._connection.getresponse()
            response.read()
        except (OSError, http.client.HTTPException):
            self._connection = None
            self.unanswered.update(events)
            return False
        if response.status == TAKEN:
            self.acknowledged.update(events)
            return True
        self.refusals[response.status] += 1
        return False

    def _event(self, event: str, n: int) -> dict[str, object]:
        data = {"n": n, "third": n % 3, "twentieth": n % 20, "region": "EU" if n % 2 == 0 else "US"}
        named = {"specversion": "1.0", "id": event, "source": f"/{self.name}", "type": self.topic, "subject": f"k{n % KEYS}"}
        return {**named, "data": data}
