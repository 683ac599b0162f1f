"""The endpoints of a soak, one kind per path, all in one thread. What a well-behaved kind was given is counted by event."""

from __future__ import annotations

import asyncio
import time

from tests.faults.receiver import NO_CONTENT, CountingReceiver
from tests.hub import free_port

SLOW = 0.3
FLAP = 5.0
"""Seconds: what a slow endpoint takes, and how long a flapping one stays well or ill."""

BUSY = b"HTTP/1.1 503 Busy\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n"
HEAD = b"HTTP/1.1 200 OK\r\n"

WELL = ("healthy", "strict", "keyed", "batched", "slow", "flapping")
ILL = ("dead", "hanging", "dripping", "endless", "closing", "garbage", "refusing")


class Endpoints(CountingReceiver):
    """Answers by the first word of the path."""

    def __init__(self) -> None:
        self._nobody = free_port()
        super().__init__()

    def url_of(self, kind: str) -> str:
        return f"http://127.0.0.1:{self._nobody}/dead" if kind == "dead" else self.url(f"/{kind}")

    def answer(self, transport: asyncio.Transport, path: str, body: bytes) -> None:
        match path.strip("/"):
            case "slow":
                self._loop.call_later(SLOW, super().answer, transport, path, body)
            case "flapping" if int(time.monotonic() / FLAP) % 2:
                transport.write(BUSY)
            case "hanging":
                pass
            case "dripping":
                self._drip(transport, HEAD * 100)
            case "endless":
                self._pour(transport)
            case "closing":
                transport.abort()
            case "garbage":
                transport.write(b"220 mail.example ESMTP\r\n")
            case "refusing":
                transport.write(NO_CONTENT.replace(b"204 No Content", b"500 No"))
                transport.close()
            case _:
                super().answer(transport, path, body)

    def _drip(self, transport: asyncio.Transport, left: bytes) -> None:
        if left and not transport.is_closing():
            transport.write(left[:1])
            self._loop.call_later(0.5, self._drip, transport, left[1:])

    def _pour(self, transport: asyncio.Transport, begun: bool = False) -> None:
        if not transport.is_closing():
            transport.write(b"x-more: " + b"y" * 1000 + b"\r\n" if begun else HEAD)
            self._loop.call_later(0.01, self._pour, transport, True)
