"""Deliveries a second to a fast sink: one, ten and a thousand subscriptions, beside the bare client posting the same bytes.

Sink, client and workers are processes of their own. The lanes are filled beforehand, so that only delivering is measured.
"""

from __future__ import annotations

import asyncio
import http.client
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import uvloop

from bench.figures import Figure, table
from tidings.config import DeliverSettings, Settings, load

EVENTS = 20_000
ANSWER = b"HTTP/1.1 204 No Content\r\n\r\n"
AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Measured:
    """Requests a second at the sink, and CPU seconds of the sending side for 10,000 of them."""

    rate: float
    cpu: float


def figures(events: int = EVENTS) -> list[Figure]:
    """Every delivery figure, each against the bare client of the same run."""
    bare = max((measure_bare(events) for _ in range(2)), key=lambda one: one.rate)
    one = max((measure(events, 1) for _ in range(2)), key=lambda one: one.rate)
    ten, two_workers = measure(events, 10), measure(events, 10, workers=2)
    thousand = measure(events, 1000)
    strict, keyed = measure(events // 10, 1, ordering="strict"), measure(events // 2, 1, ordering="key")
    batched = measure(events, 1, batch_size=100, batch_time=1.0)
    against = "the bare client"
    return [
        Figure("bare client, 100 at once", bare.rate, "requests/s"),
        Figure("one subscription, one worker", one.rate, "deliveries/s", against, one.rate / bare.rate, "≥ 0.6"),
        Figure("ten subscriptions, one worker", ten.rate, "deliveries/s", against, ten.rate / bare.rate),
        Figure(
            "ten subscriptions, two workers",
            two_workers.rate,
            "deliveries/s",
            "one worker",
            two_workers.rate / ten.rate,
            "≥ 1.5",
        ),
        Figure("1,000 subscriptions", thousand.rate, "deliveries/s", "one subscription", thousand.rate / one.rate, "≥ 0.7"),
        Figure("ordered by key, 100 keys", keyed.rate, "deliveries/s", "one subscription", keyed.rate / one.rate),
        Figure(
            "strictly ordered, each outcome durable first",
            strict.rate,
            "deliveries/s",
            "one subscription",
            strict.rate / one.rate,
        ),
        Figure("batches of 100, one at a time", batched.rate, "events/s", "one subscription", batched.rate / one.rate),
        Figure("bare client, CPU for 10,000", bare.cpu, "s"),
        Figure("one subscription, CPU for 10,000", one.cpu, "s", against, one.cpu / bare.cpu, "≤ 2.5"),
    ]


def measure(events: int, subscriptions: int, workers: int = 1, **wishes: object) -> Measured:
    """Deliver this many events in all, shared evenly by the subscriptions."""
    with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder, a_sink() as port:
        asyncio.run(prepare(Path(folder), port, events, subscriptions, wishes))
        return _timed(port, events, [["deliver", folder, str(workers), str(n)] for n in range(workers)])


def measure_bare(events: int) -> Measured:
    """The HTTP client alone, with as many requests at once as one subscription has."""
    with a_sink() as port:
        return _timed(port, events, [["bare", str(port), str(events)]])


def _timed(port: int, events: int, commands: Sequence[Sequence[str]]) -> Measured:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    children = [subprocess.Popen([sys.executable, "-m", "bench.delivery", *command]) for command in commands]
    try:
        # The first tenth warms up: connections, caches, the window that grows with answers.
        began, first = _when(port, events // 10)
        ended, last = _when(port, events)
    finally:
        for child in children:
            child.terminate()
        for child in children:
            child.wait(20)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Measured((last - first) / (ended - began), used / events * 10_000)


def _when(port: int, count: int, patience: float = 60.0) -> tuple[float, int]:
    """When the sink has had at least this many events, and how many it had then."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    end = time.monotonic() + patience
    while time.monotonic() < end:
        connection.request("GET", "/")
        seen = int(connection.getresponse().read())
        if seen >= count:
            return time.monotonic(), seen
        time.sleep(0.01)
    raise TimeoutError(f"only some of {count} events arrived")


@contextmanager
def a_sink() -> Iterator[int]:
    """The port of a sink that answers 204 to everything; `GET /` tells how many events it had."""
    child = subprocess.Popen([sys.executable, "-m", "bench.delivery", "sink"], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        yield int(child.stdout.readline())
    finally:
        child.terminate()
        child.wait(20)


class _Sink(asyncio.Protocol):
    """Just enough HTTP/1.1; a list counts as many events."""

    events = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self._buffer = b""

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end]
            if head.startswith(b"GET"):
                text = b"%d" % _Sink.events
                self._buffer = self._buffer[end + 4 :]
                self._transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(text), text))
                continue
            at = head.index(b"\r\ncontent-length: ") + 18
            length = int(head[at:].split(b"\r\n", 1)[0])
            if len(self._buffer) < end + 4 + length:
                return
            body = self._buffer[end + 4 : end + 4 + length]
            self._buffer = self._buffer[end + 4 + length :]
            _Sink.events += body.count(b'"specversion"') if body.startswith(b"[") else 1
            self._transport.write(ANSWER)


async def sink() -> None:
    server = await asyncio.get_running_loop().create_server(_Sink, "127.0.0.1", 0, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def bare(port: int, events: int) -> None:
    """Post the bytes that the hub would post."""
    from pyreqwest.client import ClientBuilder

    headers, body = _request()
    client = ClientBuilder().no_proxy().http1_lower_case_headers().pool_max_idle_per_host(AT_ONCE).build()
    left = iter(range(events))

    async def post() -> None:
        for _ in left:
            async with client.post(f"http://127.0.0.1:{port}/in").headers(headers).body_bytes(body).build_streamed() as answer:
                assert answer.status == 204

    await asyncio.gather(*(post() for _ in range(AT_ONCE)))
    await asyncio.sleep(60)


def _event(n: int):  # type: ignore[no-untyped-def]
    from tidings.events.checks import checked

    data = b'{"order":%d,"total":42.5,"currency":"EUR","items":[{"sku":"A-100","quantity":2},{"sku":"B-200","quantity":1}]}' % n
    named = {"specversion": "1.0", "id": str(n), "source": "/bench", "type": "order.created"}
    return checked({**named, "datacontenttype": "application/json"}, data)


def _request() -> tuple[dict[str, str], bytes]:
    from tidings.events.http import encode_structured

    headers, body = encode_structured(_event(12345))
    return {**dict(headers), "tidings-delivery-id": "0" * 36, "tidings-attempt": "1"}, body


async def prepare(folder: Path, port: int, events: int, subscriptions: int, wishes: dict[str, object]) -> None:
    """A data folder whose lanes are full."""
    from tidings.clock import SystemClock
    from tidings.events.stored import head_of
    from tidings.log.block import packed
    from tidings.log.port import Draft, Routed
    from tidings.log.position import embedded
    from tidings.log.sqlite.lanes import SqliteLanesWriter
    from tidings.log.sqlite.writer import SqliteLogWriter
    from tidings.registry.model import Name, Push, Subscription, Topic, TopicsSource
    from tidings.registry.store import open_writer

    now, each = SystemClock().now(), events // subscriptions
    registry = open_writer(folder)
    name = Name("default", "bench")
    topic = registry.put([Topic(name=name)], by="bench", at=now, marks=embedded(0))[0]
    push = Push(url=f"http://127.0.0.1:{port}/in", **wishes)  # type: ignore[arg-type]
    wanted = [
        Subscription(name=Name("default", f"s{n}"), source=TopicsSource((name,)), delivery=push) for n in range(subscriptions)
    ]
    lanes = [one.lane for one in registry.put(wanted, by="bench", at=now, marks=embedded(0))]  # type: ignore[union-attr]
    registry.close()
    log = SqliteLogWriter(folder, _settings(folder).log)
    drafts = [
        Draft(topic.number, now, n % 100, head_of(event), event.data)  # type: ignore[union-attr]
        for n, event in ((n, _event(n)) for n in range(each))
    ]
    offsets = [position.offset for first in range(0, each, 1000) for position in await log.append(drafts[first : first + 1000])]
    await log.close()
    writer = SqliteLanesWriter(folder)
    blocks = [packed(lane, offsets[first : first + 2000]) for lane in sorted(lanes) for first in range(0, each, 2000)]
    writer.write(Routed(blocks=blocks, scanned=embedded(offsets[-1])))
    writer.close()


def _settings(folder: Path, workers: int = 1) -> Settings:
    return replace(load(environ={}, flags={"data": str(folder)}), deliver=DeliverSettings(workers))


async def deliver(folder: Path, workers: int, number: int) -> None:
    """One deliver worker, as `tidings deliver` runs it."""
    import signal

    from tidings.delivery.push.run import run
    from tidings.observe.board import Board

    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await run(_settings(folder, workers), stop, Board(folder / "run", f"deliver-{number}"), number)


def main(words: Sequence[str]) -> None:
    match words:
        case ["sink"]:
            uvloop.run(sink())
        case ["bare", port, events]:
            uvloop.run(bare(int(port), int(events)))
        case ["deliver", folder, workers, number]:
            uvloop.run(deliver(Path(folder), int(workers), int(number)))
        case _:
            print(table(figures(int(os.environ.get("BENCH_EVENTS", EVENTS)))))


if __name__ == "__main__":
    main(sys.argv[1:])
