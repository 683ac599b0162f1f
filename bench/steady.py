"""Events at a steady rate past many subscriptions: how long some of them take to their callback, and whether routing stays live."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable

from bench.figures import Figure, percentile
from tests.hub import Hub

SUBSCRIPTIONS = 1000
BEAT = 0.02
"""Seconds between two requests of the steady publisher."""

AIMS = {2000: "≤ 50", 5000: "≤ 150"}


class SteadyPublisher(threading.Thread):
    """Publishes so many events a second, whether or not the hub keeps up. `published`: how many it came to."""

    def __init__(self, hub: Hub, rate: int) -> None:
        super().__init__(daemon=True)
        self._hub = hub
        self._size = int(rate * BEAT)
        self._ending = threading.Event()
        self.published = 0
        self.seconds = 0.0

    def run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._hub.port, timeout=60)
        began = time.monotonic()
        due = began
        while not self._ending.is_set():
            numbers = range(self.published, self.published + self._size)
            lines = b"\n".join(
                json.dumps({"n": n, "part": n % (10 * SUBSCRIPTIONS), "note": "x" * 200}).encode() for n in numbers
            )
            connection.request("POST", "/api/topics/steady/events", lines, {"content-type": "application/x-ndjson"})
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 202, answer.status
            self.published += self._size
            due += BEAT
            time.sleep(max(0.0, due - time.monotonic()))
        self.seconds = time.monotonic() - began

    def end(self) -> None:
        self._ending.set()
        self.join()


def prepare(hub: Hub) -> None:
    """The topic and its subscriptions: pulled ones, so that nothing but routing is done for them."""
    assert hub.call("PUT", "/api/topics/steady", {}).status == 201
    names = range(SUBSCRIPTIONS)
    documents = [{"name": f"s{n}", "topic": "steady", "where": f"part = {n}", "delivery": {"kind": "pull"}} for n in names]
    answer = hub.call("POST", "/api/apply", {"subscriptions": documents})
    assert answer.status == 200, answer.body


def steady(hub: Hub, once: Callable[[], float], rate: int, seconds: float) -> list[Figure]:
    """Times of single events of another topic while so many are published beside them."""
    changed = _changed(hub)
    publisher = SteadyPublisher(hub, rate)
    publisher.start()
    times: list[float] = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        times.append(once())
        time.sleep(0.05)
    publisher.end()
    name = f"publish → callback beside {rate:,} events/s, {SUBSCRIPTIONS:,} subscriptions"
    return [
        Figure(f"{name}, p50", percentile(times, 0.5) * 1000, "ms"),
        Figure(f"{name}, p95", percentile(times, 0.95) * 1000, "ms", "", None, AIMS.get(rate, "")),
        Figure(f"{name}: published in fact", publisher.published / publisher.seconds, "events/s"),
        Figure(f"{name}: routing changed its mode", float(_changed(hub) != changed), "(0: never)", "", None, "0"),
    ]


def _changed(hub: Hub) -> str:
    """When routing last changed its mode."""
    lines = hub.call("GET", "/metrics").body.decode().splitlines()
    return next((line for line in lines if line.startswith("tidings_routing_changed_seconds")), "")
