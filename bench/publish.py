"""Publishing over HTTP: single events and batches, with the log, without it, and beside raw SQLite commits.

The server runs in a process of its own; the load comes from this one, over plain sockets that are kept open.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import uvloop

from bench.figures import Figure, percentile, table
from tests.hub import free_port
from tidings import config
from tidings.log.port import Draft
from tidings.log.position import EMBEDDED, Offset, Position

TOPIC = "bench"
EVENT = (
    b'{"specversion":"1.0","id":"%d","source":"/bench","type":"order.created","subject":"c-%d",'
    b'"datacontenttype":"application/json","data":{"order":%d,"total":42.5,"currency":"EUR","items":'
    b'[{"sku":"A-100","quantity":2},{"sku":"B-200","quantity":1}],"note":"left at the door, please ring twice"}}'
)


@dataclass(frozen=True, slots=True)
class Load:
    """What one run of load came to: requests a second, and how long each took in milliseconds."""

    rate: float
    p50: float
    p99: float


def figures(seconds: float = 4.0, rounds: int = 2) -> list[Figure]:
    """Every publish figure. Each is the best of `rounds`, with and without the log in turn."""
    best: dict[tuple[str, int], float] = {}
    for _ in range(rounds):
        for kind in ("without", "with"):
            with a_server(kind) as port:
                for connections in (1, 16, 64):
                    best[kind, connections] = max(best.get((kind, connections), 0.0), load(port, connections, seconds).rate)
                if kind == "with":
                    best["batch", 100] = max(best.get(("batch", 100), 0.0), 100 * load(port, 4, seconds, batch=100).rate)
    groups, bulk = raw_commits(64, seconds / 2), raw_commits(1000, seconds / 2)
    return [
        *_singles(best),
        Figure("raw SQLite, 64 rows a commit", groups, "rows/s", "64 connections, durable", best["with", 64] / groups),
        Figure(
            "batch publish, 100 events a request",
            best["batch", 100],
            "events/s",
            "raw SQLite append",
            best["batch", 100] / bulk,
            "≥ 0.5",
        ),
        Figure("raw SQLite, 1,000 rows a commit", bulk, "rows/s"),
    ]


def _singles(best: dict[tuple[str, int], float]) -> Iterator[Figure]:
    for connections, aim in ((1, "≥ 0.25"), (16, ""), (64, "≥ 0.45")):
        durable, bare = best["with", connections], best["without", connections]
        yield Figure(f"publish without the log, {connections} connections", bare, "requests/s")
        yield Figure(
            f"publish, durable, {connections} connections", durable, "requests/s", "without the log", durable / bare, aim
        )


def load(port: int, connections: int, seconds: float, batch: int = 0) -> Load:
    """Publish over this many connections, each with one request under way, for some seconds."""
    return uvloop.run(_load(port, connections, seconds, batch))


async def _load(port: int, connections: int, seconds: float, batch: int) -> Load:
    loop = asyncio.get_running_loop()
    publishers = [_Publisher(_requests(n, batch)) for n in range(connections)]
    for publisher in publishers:
        await loop.create_connection(lambda p=publisher: p, "127.0.0.1", port)
    await asyncio.sleep(min(0.5, seconds / 4))
    for publisher in publishers:
        publisher.times.clear()
    began = loop.time()
    await asyncio.sleep(seconds)
    took = loop.time() - began
    times = [one for publisher in publishers for one in publisher.times]
    for publisher in publishers:
        publisher.close()
    refused = sum(publisher.refused for publisher in publishers)
    if refused:
        raise RuntimeError(f"{refused} requests were refused: the figures would mean nothing")
    return Load(len(times) / took, 1000 * percentile(times, 0.5), 1000 * percentile(times, 0.99))


def _requests(seed: int, batch: int) -> Sequence[bytes]:
    """Requests made beforehand, so that making them takes no time from the load."""
    numbers = range(seed * 1000, seed * 1000 + 100)
    if batch:
        bodies = [b"[" + b",".join(EVENT % (n, n, n) for n in range(first, first + batch)) + b"]" for first in numbers[:10]]
        kind = b"application/cloudevents-batch+json"
    else:
        bodies, kind = [EVENT % (n, n, n) for n in numbers], b"application/cloudevents+json"
    head = b"POST /api/topics/%b/events HTTP/1.1\r\nhost: localhost\r\ncontent-type: %b\r\ncontent-length: %d\r\n\r\n%b"
    return [head % (TOPIC.encode(), kind, len(body), body) for body in bodies]


class _Publisher(asyncio.Protocol):
    """One connection: the next request goes out when the last one is answered."""

    def __init__(self, requests: Sequence[bytes]) -> None:
        self._time = time.perf_counter
        self._requests = requests
        self._number = 0
        self._sent = 0.0
        self.times: list[float] = []
        self.refused = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self._next()

    def data_received(self, data: bytes) -> None:
        # Answers are small and their last byte is that of a JSON object.
        if data[-1:] != b"}":
            return
        self.times.append(self._time() - self._sent)
        self.refused += not data.startswith(b"HTTP/1.1 202")
        if not self._transport.is_closing():
            self._next()

    def _next(self) -> None:
        self._sent = self._time()
        self._transport.write(self._requests[self._number % len(self._requests)])
        self._number += 1

    def close(self) -> None:
        self._transport.close()


@contextmanager
def a_server(kind: str) -> Iterator[int]:
    """The port of an api process of its own, `with` the log or `without` it."""
    with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
        port = free_port()
        child = subprocess.Popen([sys.executable, "-m", "bench.publish", kind, folder, str(port)], env={**os.environ})
        try:
            _wait_for(port)
            yield port
        finally:
            child.terminate()
            child.wait(20)


def _wait_for(port: int) -> None:
    for _ in range(400):
        try:
            # The first answer comes when everything is loaded; until then loading would take part of the measured time.
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health/live", timeout=10):
                return
        except OSError:
            time.sleep(0.05)
    raise TimeoutError("the server did not start")


class NoLog:
    """A log that keeps nothing: what is left is the cost of HTTP, reading and admitting."""

    def __init__(self) -> None:
        self._end = 0

    async def append(self, drafts: Sequence[Draft]) -> Sequence[Position]:
        first = self._end + 1
        self._end += len(drafts)
        return [Position(EMBEDDED, Offset(n)) for n in range(first, self._end + 1)]


async def _serve(kind: str, folder: str, port: int) -> None:
    import signal

    from tidings.app import Api, build_api, serve
    from tidings.doors.registry_changes import put
    from tidings.observe.part_status import PartStatus
    from tidings.registry.model import Name, Topic
    from tidings.server.listeners import listening

    settings = config.load(environ={}, flags={"data": folder, "server": {"port": port}})
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with AsyncExitStack() as stack:
        api = await build_api(settings, PartStatus(Path(folder) / "run", "api"), stack)
        await put(api.parts, [Topic(name=Name("default", TOPIC))], "bench")
        if kind == "without":
            api = Api(replace(api.parts, intake=replace(api.parts.intake, log=NoLog())))
        await serve(api, listening(settings.server), stop)


def raw_commits(rows: int, seconds: float) -> float:
    """Rows a second into one SQLite table with `synchronous=FULL`, this many in each commit."""
    with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
        connection = sqlite3.connect(Path(folder) / "raw.db", isolation_level=None)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute(
            "CREATE TABLE entries (id INTEGER PRIMARY KEY AUTOINCREMENT, topic INT, at INT, head BLOB, data BLOB)"
        )
        body = EVENT % (1, 1, 1)
        batch = [(1, n, body[:120], body[120:]) for n in range(rows)]
        count, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            connection.execute("BEGIN")
            connection.executemany("INSERT INTO entries (topic, at, head, data) VALUES (?, ?, ?, ?)", batch)
            connection.execute("COMMIT")
            count += rows
        return count / (time.perf_counter() - began)


if __name__ == "__main__":
    if len(sys.argv) == 4:
        uvloop.run(_serve(sys.argv[1], sys.argv[2], int(sys.argv[3])))
    else:
        print(table(figures()))
