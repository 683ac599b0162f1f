"""A feed of somebody else: a small FeedAPI and ZeroEventHub server that has nothing of ours, with the quirks the texts allow.

Cursors are opaque words. `restless` makes it the hardest kind: each partition is two inner streams in one, their events are mixed
differently in every answer, and so checkpoints differ between equal calls. The order of one key is kept.
"""

from __future__ import annotations

import json
import random
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass
class Stored:
    seq: int
    key: str
    data: Any

    @property
    def hash(self) -> int:
        return zlib.crc32(self.key.encode())


@dataclass
class Part:
    """Events with `hash % count == index` in (low, high]."""

    id: int
    index: int
    count: int
    low: int = 0
    high: int | None = None
    after: int | None = None
    ancestors: tuple[int, ...] = ()

    def holds(self, event: Stored) -> bool:
        return event.hash % self.count == self.index and self.low < event.seq and (self.high is None or event.seq <= self.high)


@dataclass
class Asked:
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    at: float


Fault = Callable[[BaseHTTPRequestHandler], bool]


@dataclass
class Foreign:
    """The feed itself. Every change and every read holds the lock."""

    partitions: int = 1
    version: int = 2
    page: int = 20
    every: int = 3
    restless: bool = False
    discovery_extra: dict[str, Any] = field(default_factory=dict)
    seed: int = 1

    def __post_init__(self) -> None:
        self.lock = threading.RLock()
        self.events: list[Stored] = []
        self.parts = [Part(n, n, self.partitions) for n in range(self.partitions)]
        self.token = 1
        self.faults: list[Fault] = []
        self.cuts: list[int] = []
        """The next pages end after so many bytes, with the connection."""
        self.asked: list[Asked] = []
        self.chance = random.Random(self.seed)
        self.url = ""

    def publish(self, key: str, data: Any) -> None:
        with self.lock:
            self.events.append(Stored(len(self.events) + 1, key, data))

    def cloudevent(self, key: str, n: int, type: str = "order.created") -> None:
        self.publish(
            key,
            {"specversion": "1.0", "id": str(n), "source": "/shop", "type": type, "subject": key, "data": {"n": n, "key": key}},
        )

    def close(self, times: int = 2) -> None:
        """Method 1: new events on new partitions."""
        with self.lock:
            live = [part for part in self.parts if part.high is None]
            fresh, count, at = max(part.id for part in self.parts) + 1, len(live) * times, len(self.events)
            for part in live:
                part.high = at
            self.parts += [Part(fresh + n, n, count, low=at, after=live[n % len(live)].id) for n in range(count)]
            self.token += 1

    def redistribute(self, times: int = 2) -> None:
        """Method 2: the whole history on new partitions."""
        with self.lock:
            live = [part for part in self.parts if part.high is None]
            fresh, count = max(part.id for part in self.parts) + 1, len(live) * times
            self.parts = [
                Part(fresh + n, n, count, ancestors=(live[n % len(live)].id, *self._line(live[n % len(live)])))
                for n in range(count)
            ]
            self.token += 1

    def begin_again(self) -> None:
        """As after a backup from before every repartition: the first partitions, open, with the events that there are."""
        with self.lock:
            self.parts = [Part(n, n, self.partitions) for n in range(self.partitions)]
            self.token += 1

    def _line(self, part: Part) -> tuple[int, ...]:
        if part.after is None:
            return part.ancestors
        parent = next(one for one in self.parts if one.id == part.after)
        return (parent.id, *self._line(parent))

    def discovery(self) -> dict[str, Any]:
        with self.lock:
            return {"token": str(self.token), "partitions": [_listed(part) for part in self.parts], **self.discovery_extra}

    def lines(self, part: Part, cursor: str, size: int) -> Iterator[dict[str, Any]]:
        """One page of a partition."""
        positions = [max(one, part.low) for one in self._positions(cursor)]
        streams = [
            [one for one in self.events if part.holds(one) and self._stream(one) == n and one.seq > positions[n]]
            for n in range(2)
        ]
        since = 0
        every = self.every
        for _ in range(size):
            waiting = [stream for stream in streams if stream]
            if not waiting:
                break
            stream = self.chance.choice(waiting) if self.restless else min(waiting, key=lambda one: one[0].seq)
            event = stream.pop(0)
            for n in range(2) if not self.restless else (self._stream(event),):
                positions[n] = event.seq
            yield {"data": event.data}
            since += 1
            if since >= every:
                every = self.chance.randint(1, 2 * self.every) if self.restless else self.every
                since = 0
                yield {"cursor": self._word(positions)}
        yield {"cursor": self._word(positions)}

    def _stream(self, event: Stored) -> int:
        return (event.hash >> 8) % 2

    def _positions(self, cursor: str) -> list[int]:
        if cursor == "_first":
            return [0, 0]
        if cursor == "_last":
            return [len(self.events)] * 2
        first, second = cursor.removeprefix("c").split("x")
        return [int(first, 16), int(second, 16)]

    def _word(self, positions: list[int]) -> str:
        return f"c{positions[0]:x}x{positions[1]:x}"

    @contextmanager
    def served(self) -> Iterator[Foreign]:
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        server.daemon_threads = True
        self.url = f"http://127.0.0.1:{server.server_address[1]}/their/feed"
        threading.Thread(target=lambda: server.serve_forever(0.02), daemon=True).start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()


def _listed(part: Part) -> dict[str, Any]:
    listed: dict[str, Any] = {"id": str(part.id)}
    if part.high is not None:
        listed["closed"] = True
    if part.after is not None:
        listed["startsAfterPartition"] = str(part.after)
    if part.ancestors:
        listed["cursorFromPartitions"] = [str(id) for id in part.ancestors]
    return listed


def _handler(feed: Foreign) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = 1 << 20

        def log_message(self, *_: Any) -> None:
            pass

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = parse_qs(parts.query, keep_blank_values=True)
            headers = {name.lower(): value for name, value in self.headers.items()}
            feed.asked.append(Asked(parts.path, query, headers, time.monotonic()))
            if feed.faults and feed.faults[0](self):
                feed.faults.pop(0)
                return
            self.answer(parts.path, {name: values[0] for name, values in query.items()})

        def answer(self, path: str, query: dict[str, str]) -> None:
            if path.endswith("/events"):
                self.page_2(query)
            elif feed.version == 1:
                self.page_1(query) if "n" in query else self.send(400, b"n is missing", "text/plain")
            else:
                self.send(200, json.dumps(feed.discovery()).encode())

        def page_2(self, query: dict[str, str]) -> None:
            with feed.lock:
                if query.get("token") != str(feed.token):
                    self.send(409, b"discover again", "text/plain")
                    return
                part = next((one for one in feed.parts if str(one.id) == query["partition"]), None)
                if part is None:
                    self.send(400, b"no such partition", "text/plain")
                    return
                lines = list(feed.lines(part, query["cursor"], int(query.get("pagesizehint", feed.page))))
            self.stream(lines)

        def page_1(self, query: dict[str, str]) -> None:
            if int(query["n"]) != feed.partitions:
                self.send(400, b"other n", "text/plain")
                return
            lines = []
            with feed.lock:
                for n in range(feed.partitions):
                    if f"cursor{n}" in query:
                        size = int(query.get("pagesizehint", feed.page))
                        lines += [{"partition": n, **line} for line in feed.lines(feed.parts[n], query[f"cursor{n}"], size)]
            self.stream(lines)

        def stream(self, lines: list[dict[str, Any]]) -> None:
            body = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines).encode()
            self.raw(body[: feed.cuts.pop(0)], cut=True) if feed.cuts else self.raw(body)

        def raw(self, body: bytes, *, cut: bool = False) -> None:
            """Chunks of odd sizes; `cut` ends the connection in the middle."""
            self.send_response(200)
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for at in range(0, len(body), 997):
                part = body[at : at + 997]
                self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
            if cut:
                self.close_connection = True
            else:
                self.wfile.write(b"0\r\n\r\n")

        def send(self, status: int, body: bytes, type: str = "application/json", **more: str) -> None:
            self.send_response(status)
            self.send_header("content-type", type)
            self.send_header("content-length", str(len(body)))
            for name, value in more.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(body)

    return Handler


def on_pages(fault: Fault) -> Fault:
    """Only requests for events meet the fault."""
    return lambda handler: fault(handler) if "events?" in handler.path or "n=" in handler.path else False


def of_partition(id: str, fault: Fault) -> Fault:
    """Only requests for this partition of version 2 meet the fault."""
    return lambda handler: fault(handler) if f"partition={id}&" in handler.path else False


def answering(status: int, body: bytes = b"", **headers: str) -> Fault:
    def fault(handler: Any) -> bool:
        handler.send(status, body, **headers)
        return True

    return on_pages(fault)


def sending(body: bytes, *, cut: bool = False) -> Fault:
    """These bytes instead of a page; `cut` breaks the connection after them."""

    def fault(handler: Any) -> bool:
        handler.raw(body, cut=cut)
        return True

    return on_pages(fault)
