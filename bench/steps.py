"""The way of one event through a hub, step by step: seen from outside, by the same bells that wake the stages."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from bench.figures import Figure, percentile
from tests.hub import Hub
from tidings.log.wake import WakeListener

ROUTING_STEP = "tidings_batch_seconds"


class Steps(NamedTuple):
    """Seconds of one event: until it is durable, until it is in its lanes, until it is at the callback."""

    commit: float
    routing: float
    delivery: float


class BellWatch:
    """Notes when a channel rang last, in a thread of its own."""

    def __init__(self, folder: Path, channel: str) -> None:
        self.at = 0.0
        self._listener = WakeListener(folder, channel)
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ending.is_set():
            if self._listener.wait(0.2):
                self.at = time.monotonic()

    def close(self) -> None:
        self._ending.set()
        self._thread.join()
        self._listener.close()


def steps_of(hub: Hub, once: Callable[[], tuple[float, float]], events: int) -> list[Figure]:
    """The steps of so many events. `once` publishes one and says when it was sent and when it arrived."""
    log, lanes = BellWatch(hub.data, "log"), BellWatch(hub.data, "lanes")
    before = _step_totals(hub)
    found: list[Steps] = []
    try:
        for _ in range(events):
            sent, arrived = once()
            # A bell that was not heard in time, or that rang for something else, says nothing of this event.
            if sent <= log.at <= lanes.at <= arrived:
                found.append(Steps(log.at - sent, lanes.at - log.at, arrived - lanes.at))
    finally:
        log.close()
        lanes.close()
    after = _step_totals(hub)
    return _figures(found, (after[0] - before[0]) / max(1.0, after[1] - before[1]))


def _figures(found: list[Steps], step: float) -> list[Figure]:
    if not found:
        return []
    whole = percentile(map(sum, found), 0.5)
    names = {
        "step 1, commit: request → durable in the log": [one.commit for one in found],
        "step 2, wake, route, lanes: log → lanes": [one.routing for one in found],
        "step 4, wake, read, send: lanes → callback": [one.delivery for one in found],
    }
    figures = [
        Figure(
            f"{name}, p50 of {len(found)}", percentile(times, 0.5) * 1000, "ms", "the whole way", percentile(times, 0.5) / whole
        )
        for name, times in names.items()
    ]
    routing = Figure(
        "step 3, of that route and lanes (the hub's own figure), mean", step * 1000, "ms", "the whole way", step / whole
    )
    return [*figures[:2], routing, figures[2]]


def _step_totals(hub: Hub) -> tuple[float, float]:
    """The sum and the number of routing's steps so far."""
    lines = hub.call("GET", "/metrics").body.decode().splitlines()
    values = {
        name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line.startswith(ROUTING_STEP))
    }
    return values.get(f"{ROUTING_STEP}_sum", 0.0), values.get(f"{ROUTING_STEP}_count", 0.0)
