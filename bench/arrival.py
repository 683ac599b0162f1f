"""From publish to callback on a whole hub: light load step by step, steady load, after silence; memory, and what idling costs."""

from __future__ import annotations

import http.client
import json
import shutil
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

from bench.figures import Figure, percentile
from bench.micro_batch import empty_batches
from bench.processes import cpu_seconds, memory
from bench.steady import prepare, steady
from bench.steps import steps_of
from tests.faults.receiver import CountingReceiver
from tests.hub import Hub

LIGHT = 0.05
"""Seconds between single events under light load."""

RATES = (2000, 5000)


def figures(events: int = 150, silence: float = 120.0, backlog: int = 200_000, steady_seconds: float = 20.0) -> list[Figure]:
    """Every figure of a whole hub; an empty Spark micro-batch is measured in the same run."""
    folder = Path(tempfile.mkdtemp(prefix="tidings-bench-"))
    receiver = TimingReceiver()
    hub = Hub(folder / "data").start()
    try:
        hub.wait_ready(600)
        probe = Probe(hub, receiver)
        for _ in range(40):
            probe.once()
        times = [probe.once(pause=LIGHT) for _ in range(events)]
        steps = steps_of(hub, partial(probe.timed, LIGHT), events)
        idle_memory, idle_cpu = memory(hub), _idle(hub, silence)
        first = percentile([probe.after_silence(), *(probe.after_silence(silence) for _ in range(2))], 0.5)
        prepare(hub)
        steadily = [figure for rate in RATES for figure in steady(hub, probe.once, rate, steady_seconds)]
        loaded = [_after_backlog(hub, receiver, backlog, done) for done in (0, backlog)]
    finally:
        hub.stop()
        receiver.close()
        shutil.rmtree(folder, ignore_errors=True)
    empty = percentile(empty_batches(events // 2), 0.5)
    return [
        Figure("an empty Spark micro-batch, p50", empty * 1000, "ms"),
        *_arrivals(times, empty),
        *steps,
        *steadily,
        Figure(
            f"first event after {silence:.0f} s of silence, median of 3",
            first * 1000,
            "ms",
            "p50 under light load",
            first / percentile(times, 0.5),
            "≤ 2",
        ),
        Figure("CPU of all processes when idle", idle_cpu * 100, "% of one core", "", None, "< 1"),
        *_memories(idle_memory, loaded, backlog),
    ]


def _arrivals(times: list[float], empty: float) -> list[Figure]:
    p50, p95, p99 = (percentile(times, share) for share in (0.5, 0.95, 0.99))
    against = "the empty micro-batch"
    return [
        Figure("publish → callback, light load, p50", p50 * 1000, "ms", against, p50 / empty, "≤ 0.12"),
        Figure("publish → callback, light load, p95", p95 * 1000, "ms", against, p95 / empty),
        Figure("publish → callback, light load, p99", p99 * 1000, "ms", against, p99 / empty),
    ]


def _memories(idle: dict[str, float], loaded: list[dict[str, float]], backlog: int) -> list[Figure]:
    """Idle, after a backlog, and after as much again: what grows from the second to the third would grow for ever."""
    found = []
    for part, before in idle.items():
        once, twice = loaded[0][part], loaded[1][part]
        found.append(Figure(f"memory of {part}, idle", before, "MiB"))
        found.append(Figure(f"memory of {part}, after {backlog:,} events", once, "MiB", "idle", once / before))
        found.append(
            Figure(
                f"memory of {part}, after {2 * backlog:,} events",
                twice,
                "MiB",
                f"after {backlog:,}",
                twice / once,
                "flat: about 1",
            )
        )
    return found


class TimingReceiver(CountingReceiver):
    """Also tells when something arrived."""

    def __init__(self) -> None:
        self.came = threading.Event()
        self.at = 0.0
        super().__init__()

    def take(self, path: str, body: bytes) -> None:
        self.at = time.monotonic()
        super().take(path, body)
        self.came.set()


class Probe:
    """Publishes one event on a kept connection and waits until it arrives."""

    def __init__(self, hub: Hub, receiver: TimingReceiver) -> None:
        assert hub.call("PUT", "/api/topics/probe", {}).status == 201
        assert hub.call("PUT", "/api/subscriptions/probe", {"topic": "probe", "to": receiver.url("/probe")}).status == 201
        self._receiver = receiver
        self._hub = hub
        self.connect()

    def connect(self) -> None:
        """Open a connection, so that the next event does not wait for one."""
        self._connection = http.client.HTTPConnection("127.0.0.1", self._hub.port, timeout=60)
        self._connection.connect()

    def after_silence(self, seconds: float = 0.0) -> float:
        """Like `once`, after a silence that is longer than the server keeps an idle connection."""
        time.sleep(seconds)
        self.connect()
        return self.once()

    def once(self, pause: float = 0.0) -> float:
        """Seconds from sending the request to the arrival at the callback."""
        began, arrived = self.timed(pause)
        return arrived - began

    def timed(self, pause: float = 0.0) -> tuple[float, float]:
        """When the request was sent and when the event arrived, in monotonic seconds."""
        time.sleep(pause)
        self._receiver.came.clear()
        began = time.monotonic()
        self._connection.request("POST", "/api/topics/probe/events", b'{"n":1}', {"content-type": "application/json"})
        self._connection.getresponse().read()
        assert self._receiver.came.wait(60)
        return began, self._receiver.at


def _idle(hub: Hub, seconds: float) -> float:
    """The share of one core that all processes use while nothing happens."""
    before, began = cpu_seconds(hub), time.monotonic()
    time.sleep(seconds)
    return (cpu_seconds(hub) - before) / (time.monotonic() - began)


def _after_backlog(hub: Hub, receiver: TimingReceiver, backlog: int, done: int) -> dict[str, float]:
    """Memory after this many more events were published and routed, and every tenth of them delivered."""
    if not done:
        assert hub.call("PUT", "/api/topics/load", {}).status == 201
        body = {"topic": "load", "to": receiver.url("/load"), "where": "n = 0"}
        assert hub.call("PUT", "/api/subscriptions/load", body).status == 201
    connection = http.client.HTTPConnection("127.0.0.1", hub.port, timeout=60)
    for start in range(0, backlog, 1000):
        lines = b"\n".join(json.dumps({"n": n % 10, "note": "x" * 200}).encode() for n in range(start, start + 1000))
        connection.request("POST", "/api/topics/load/events", lines, {"content-type": "application/x-ndjson"})
        response = connection.getresponse()
        response.read()
        assert response.status == 202, response.status
    wanted = (done + backlog) // 10
    hub.until(lambda: len(receiver.arrived["/load"]) >= wanted, 600, "the backlog is delivered")
    time.sleep(5)
    return memory(hub)
