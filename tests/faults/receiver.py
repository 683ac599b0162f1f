"""A callback that counts. It answers 204 to everything and keeps the receipts of every path."""

from __future__ import annotations

import asyncio
import threading

import msgspec

from tests.faults.receipts import Receipts

NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"


class _Head(msgspec.Struct):
    id: str


_decode = msgspec.json.Decoder(_Head | list[_Head]).decode


def ids_in(body: bytes) -> list[str]:
    """The ids of the events of one request."""
    found = _decode(body)
    return [head.id for head in found] if isinstance(found, list) else [found.id]


class CountingReceiver:
    """Listens on a loopback port of its own in its own thread."""

    def __init__(self) -> None:
        self.receipts: dict[str, Receipts] = {}
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

    def of(self, path: str) -> Receipts:
        """The receipts of a path."""
        name = path.strip("/")
        return self.receipts.setdefault(name, Receipts(name))

    def answer(self, transport: asyncio.Transport, path: str, body: bytes) -> None:
        """Take a request and answer it."""
        receipts, events = self.of(path), ids_in(body)
        receipts.sent(events)
        receipts.took(events)
        transport.write(NO_CONTENT)

    def probe(self, transport: asyncio.Transport, path: str) -> None:
        """Answer a request without events: somebody asks whether the endpoint is well."""
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
            method, path, _ = head[0].decode().split(" ", 2)
            if method == "POST":
                self._receiver.answer(self._transport, path, body)
            else:
                self._receiver.probe(self._transport, path)
