"""Feeds: events a second to one reader beside a raw read of the log, the price of finer divisions, waking, and who pays.

The server runs in a process of its own; readers and publishers are plain sockets in this one.
"""

from __future__ import annotations

import os
import re
import select
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.figures import Figure, percentile, table
from bench.processes import cpu_of, share_of
from bench.publish import EVENT, TOPIC
from tests.api_process import ApiProcess
from tests.hub import free_port
from tidings.log.port import Limit
from tidings.log.position import Marks
from tidings.log.sqlite.reader import SqliteLogReader
from tidings.registry.model import Name
from tidings.registry.store import open_reader

EVENTS = 200_000
END = b"0\r\n\r\n"
_CURSORS = re.compile(rb'\{(?:"partition":(\d+),)?"cursor":"(\d+)"\}')


@dataclass(frozen=True, slots=True)
class Server:
    """An api process with its topic."""

    port: int
    pid: int
    data: Path

    @property
    def api(self) -> ApiProcess:
        return ApiProcess(self.port, self.data)


@contextmanager
def a_server() -> Iterator[Server]:
    """An api process of its own with a topic of four partitions."""
    with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
        port = free_port()
        command = [sys.executable, "-m", "tidings.cli", "api", "--data", folder, "--port", str(port)]
        quiet = {**os.environ, "TIDINGS_OBSERVE_LOG_LEVEL": "warning"}
        child = subprocess.Popen(command, env=quiet, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            server = Server(port, child.pid, Path(folder))
            _until(lambda: server.api.call("GET", "/health/live").status == 200)
            server.api.call("PUT", f"/api/topics/{TOPIC}", {"feed": {"partitions": 4}})
            yield server
        finally:
            child.terminate()
            child.wait(20)


def _until(holds: Callable[[], bool]) -> None:
    for _ in range(600):
        try:
            if holds():
                return
        except OSError:
            pass
        time.sleep(0.05)
    raise TimeoutError("the server did not start")


def fill(server: Server, events: int) -> None:
    """Publish so many events in batches."""
    for first in range(0, events, 1000):
        body = b"[" + b",".join(EVENT % (n, n % 5000, n) for n in range(first, first + 1000)) + b"]"
        assert server.api.publish(TOPIC, body, "application/cloudevents-batch+json").status == 202


class Reader:
    """One connection that reads pages, as fast as they come."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def fileno(self) -> int:
        return self._socket.fileno()

    def ask(self, path: str) -> None:
        self._socket.sendall(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())

    def answer(self) -> bytes:
        """The rest of an answer, as it came over the wire."""
        pieces = []
        while True:
            piece = self._socket.recv(1 << 18)
            if not piece:
                raise ConnectionError(b"".join(pieces)[-200:])
            pieces.append(piece)
            if piece.endswith(END) or (len(piece) < len(END) and b"".join(pieces[-2:]).endswith(END)):
                return b"".join(pieces)

    def close(self) -> None:
        self._socket.close()


def read_all(server: Server, path: str, first: str = "_first", size: int = 1000) -> int:
    """Read one partition to its end; how many events it had. `path` takes the cursor."""
    reader, cursor, events = Reader(server.port), first, 0
    while True:
        reader.ask(f"{path}{cursor}&pagesizehint={size}")
        page = reader.answer()
        found = page.count(b'"data":{"specversion"')
        events += found
        last = _CURSORS.findall(page[-2000:])[-1][1].decode()
        if not found and last == cursor:
            reader.close()
            return events
        cursor = last


def raw_read(data: Path) -> float:
    """Events a second of the log's own reader."""
    with open_reader(data) as registry:
        number = registry.snapshot().topics[Name("default", TOPIC)].number
    reader, count = SqliteLogReader(data), 0
    marks: Marks = {}
    began = time.perf_counter()
    while entries := (page := reader.read(number, marks, Limit(entries=1000, bytes=32 << 20))).entries:
        count, marks = count + len(entries), page.reached
    took = time.perf_counter() - began
    reader.close()
    return count / took


def figures() -> list[Figure]:
    """Every figure of the feed server."""
    with a_server() as server:
        fill(server, EVENTS)
        return [*_one_reader(server), *_divisions(server), *_waking(server), *_publishing(server), _memory(server)]


def _one_reader(server: Server) -> Iterator[Figure]:
    raw = served = 0.0
    # Divided by one, so that one reader has every event; v1 and v2 differ in the frame of a line only.
    for _ in range(3):
        raw = max(raw, raw_read(server.data))
        began = time.perf_counter()
        assert read_all(server, f"/feeds/{TOPIC}?n=1&cursor0=") == EVENTS
        served = max(served, EVENTS / (time.perf_counter() - began))
    yield Figure("raw read of the log, pages of 1,000", raw, "events/s")
    yield Figure("one v1 reader of everything, pages of 1,000", served, "events/s", "raw read", served / raw, "≥ 0.3")
    token = server.api.call("GET", f"/feeds/{TOPIC}").json["token"]
    # Each partition's page has to look at the events of all four.
    began, count = time.perf_counter(), 0
    for partition in range(1, 5):
        count += read_all(server, f"/feeds/{TOPIC}/events?token={token}&partition={partition}&cursor=")
    rate = count / (time.perf_counter() - began)
    yield Figure("one v2 reader, four partitions in turn", rate, "events/s", "raw read", rate / raw, "≥ 0.3")


def _divisions(server: Server) -> Iterator[Figure]:
    work = {4: 1e9, 8: 1e9}
    for _ in range(3):
        for n in work:
            began = cpu_of(server.pid)
            assert sum(read_all(server, f"/feeds/{TOPIC}?n={n}&cursor{p}=") for p in range(n)) == EVENTS
            work[n] = min(work[n], cpu_of(server.pid) - began)
    yield Figure("CPU to read all of n = 4, one partition after the other", work[4], "s")
    yield Figure("the same with n = 8", work[8], "s", "n = 4", work[8] / work[4], "≤ 2.2")


def _waking(server: Server) -> Iterator[Figure]:
    times = {1: wake_up(server, 1, 100), 1000: wake_up(server, 1000, 20)}
    one = percentile(times[1], 0.99)
    yield Figure("wake-up of one waiting reader, p99", 1000 * one, "ms")
    many = percentile(times[1000], 0.99)
    yield Figure("wake-up of 1,000 waiting readers, p99", 1000 * many, "ms", "one reader", many / one, "≤ 10")


def wake_up(server: Server, readers: int, rounds: int) -> list[float]:
    """Seconds from the request that publishes to the arrival of each answer."""
    waiting = [Reader(server.port) for _ in range(readers)]
    publisher, times = Reader(server.port), []
    body = EVENT % (1, 1, 1)
    request = (
        f"POST /api/topics/{TOPIC}/events HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/cloudevents+json\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    ).encode() + body
    for _ in range(rounds):
        for reader in waiting:
            reader.ask(f"/feeds/{TOPIC}?n=1&cursor0=_last&wait=60")
        for reader in waiting:
            assert reader._socket.recv(4096).startswith(b"HTTP/1.1 200")
        time.sleep(0.05)
        poll = select.poll()
        known = {reader.fileno(): reader for reader in waiting}
        for number in known:
            poll.register(number, select.POLLIN)
        began = time.perf_counter()
        publisher._socket.sendall(request)
        while known:
            for number, _ in poll.poll():
                assert known.pop(number).answer().endswith(END)
                poll.unregister(number)
                times.append(time.perf_counter() - began)
        publisher._socket.recv(4096)
    for reader in (*waiting, publisher):
        reader.close()
    return times


def _publishing(server: Server) -> Iterator[Figure]:
    alone = min(_publish_p99(server) for _ in range(2))
    with _reading(server):
        busy = min(_publish_p99(server) for _ in range(2))
    yield Figure("publish p99, nobody reads", 1000 * alone, "ms")
    yield Figure("publish p99, ten readers at full speed", 1000 * busy, "ms", "nobody reads", busy / alone, "≤ 3")


def _publish_p99(server: Server, requests: int = 600) -> float:
    publisher, times = Reader(server.port), []
    for n in range(requests):
        body = EVENT % (n, n, n)
        head = f"POST /api/topics/{TOPIC}/events HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/cloudevents+json\r\n"
        began = time.perf_counter()
        publisher._socket.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        publisher._socket.recv(4096)
        times.append(time.perf_counter() - began)
        time.sleep(0.002)
    publisher.close()
    return percentile(times, 0.99)


@contextmanager
def _reading(server: Server) -> Iterator[None]:
    """A process that reads the whole feed again and again, over ten connections."""
    command = [sys.executable, "-m", "bench.feeds", "read", str(server.port), str(server.data)]
    child = subprocess.Popen(command)
    try:
        yield
    finally:
        child.kill()
        child.wait()


def _read_for_ever(port: int, connections: int) -> None:
    """Each connection has its own place in the feed; the next page is asked for when the last one has come."""
    poll, readers, cursors = select.poll(), {}, {}
    path = f"/feeds/{TOPIC}?n=1&pagesizehint=1000&cursor0="
    for n in range(connections):
        reader = Reader(port)
        readers[reader.fileno()], cursors[reader.fileno()] = reader, str(n * 1000)
        poll.register(reader.fileno(), select.POLLIN)
        reader.ask(f"{path}{cursors[reader.fileno()]}")
    while True:
        for number, _ in poll.poll():
            # One piece at a time, so that all connections are read at the same pace.
            piece = readers[number]._socket.recv(1 << 18)
            if piece.endswith(END):
                last = _CURSORS.findall(piece[-200:])[-1][1].decode()
                cursors[number] = "0" if last == cursors[number] else last
                readers[number].ask(f"{path}{cursors[number]}")


def _memory(server: Server) -> Figure:
    read_all(server, f"/feeds/{TOPIC}?n=1&cursor0=", size=10_000)
    before = share_of(server.pid)
    for _ in range(10):
        read_all(server, f"/feeds/{TOPIC}?n=1&cursor0=", size=10_000)
    grown = (share_of(server.pid) - before) / (1 << 20)
    return Figure("memory gained while 2 million events are read", grown, "MiB", aim="flat")


def main() -> None:
    if sys.argv[1:2] == ["read"]:
        _read_for_ever(int(sys.argv[2]), 10)
    print(table(figures()))


if __name__ == "__main__":
    main()
