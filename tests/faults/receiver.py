"""A callback that counts. It answers 204 to everything and remembers how often each event came, per path."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, defaultdict

import msgspec

from tests.faults.repeats import Repeat

NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"


class _Head(msgspec.Struct):
    id: str


_decode = msgspec.json.Decoder(_Head | list[_Head]).decode


class CountingReceiver:
    """Listens on a loopback port of its own in its own thread. `arrived[path][event id]` is how often it came;
    `repeats` are those that came again.
    """

    def __init__(self) -> None:
        self.arrived: dict[str, Counter[str]] = defaultdict(Counter)
        self.order: dict[str, list[str]] = defaultdict(list)
        self.repeats: list[Repeat] = []
        self._last: dict[tuple[str, str], float] = {}
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self.port = 0
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        self._ready.wait(10)

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def take(self, path: str, body: bytes) -> None:
        found = _decode(body)
        for head in found if isinstance(found, list) else [found]:
            before, now = self._last.get((path, head.id)), time.monotonic()
            self._last[path, head.id] = now
            if before is None:
                self.order[path].append(head.id)
            else:
                self.repeats.append(Repeat(path.removeprefix("/"), head.id, before, now))
            self.arrived[path][head.id] += 1

    def answer(self, transport: asyncio.Transport, path: str, body: bytes) -> None:
        """Take a request and answer it."""
        self.take(path, body)
        transport.write(NO_CONTENT)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(self._loop.create_server(lambda: _Connection(self), "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()


class _Connection(asyncio.Protocol):
    """Just enough HTTP/1.1 for requests with a Content-Length."""

    def __init__(self, receiver: CountingReceiver) -> None:
        self._receiver = receiver
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end].split(b"\r\n")
            length = next((int(line[15:]) for line in head if line.lower().startswith(b"content-length:")), 0)
            if len(self._buffer) < end + 4 + length:
                return
            body = self._buffer[end + 4 : end + 4 + length]
            self._buffer = self._buffer[end + 4 + length :]
            self._receiver.answer(self._transport, head[0].split(b" ")[1].decode(), body)
