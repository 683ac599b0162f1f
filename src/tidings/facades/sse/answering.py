"""The answer that is a stream: frames as a door writes them, as fast as the client reads, within the limits it asked for.

An entry is delivered when the kernel has taken its whole frame for the client. Status and headers go out with the first event or
comment, so that a stream on which nothing came can still be answered otherwise.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus

from tidings.delivery.sse.wire import Entry
from tidings.errors import StreamIdle
from tidings.facades.parts import Parts
from tidings.facades.sse.streaming import LaneStream, open_stream, refuse
from tidings.ingest.protocol import CYCLE, handed_over, unbuffered
from tidings.log.position import LaneNumber, Offset
from tidings.server.asgi import Receive, Scope, Send

COMMENT = b": keep-alive\n\n"
W3C = "text/event-stream"


@dataclass(frozen=True, slots=True)
class Style:
    """How a door writes its stream. `keep_alive`: seconds between comments, `idle`: seconds without an event until it ends.

    `at_once`: status and headers do not wait for the first event.
    """

    content_type: str
    frame: Callable[[Entry], bytes]
    headers: Sequence[tuple[bytes, bytes]] = ()
    keep_alive: float = math.inf
    idle: float = math.inf
    at_once: bool = False


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a client wants its stream to end: after so many events, bytes or seconds. 0: it does not."""

    number: int = 0
    bytes: int = 0
    seconds: float = 0


@dataclass(frozen=True, slots=True)
class Asked:
    """Which lane's stream is asked for, from where, and how much of it."""

    lane: LaneNumber
    after: Offset | None = None
    cut: Cut = Cut()


class ClientGone(Exception):
    """The client left in the middle."""


async def answer_stream(parts: Parts, asked: Asked, style: Style, scope: Scope, receive: Receive, send: Send) -> None:
    """Stream until somebody ends it. What is raised is raised before anything was sent: StreamIdle, NotReady, and refusals."""
    async with open_stream(parts, asked.lane, asked.after, asked.cut.number) as stream:
        answer = _Answer(stream, asked.cut, style, scope, send)
        gone = asyncio.ensure_future(_until_gone(receive))
        gone.add_done_callback(lambda _: stream.alert())
        try:
            with suppress(ClientGone):
                await answer.run(gone)
        finally:
            gone.cancel()


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class _Answer:
    """One answer. Times are those of the event loop."""

    def __init__(self, stream: LaneStream, cut: Cut, style: Style, scope: Scope, send: Send) -> None:
        self._stream = stream
        self._cut = cut
        self._style = style
        self._send = send
        self._cycle = scope.get(CYCLE)
        self._now = asyncio.get_running_loop().time
        self._begun = self._event_at = self._written_at = self._now()
        self._started = False
        self._number = 0
        self._bytes = 0

    async def run(self, gone: asyncio.Future[None]) -> None:
        if self._style.at_once:
            await self._write(b"")
        while not gone.done():
            entries = self._stream.arrived()
            if entries:
                await self._frames(entries)
            elif self._stream.over is not None or await self._pause():
                break
            if self._reached():
                break
        else:
            return
        if not self._started and self._stream.over is not None:
            refuse(self._stream.over)
        await self._finish()

    async def _frames(self, entries: Sequence[Entry]) -> None:
        frames = []
        for entry in entries:
            frame = self._style.frame(entry)
            frames.append(frame)
            self._number += 1
            self._bytes += len(frame)
            if self._full():
                break
        await self._write(b"".join(frames))
        self._stream.taken(len(frames))
        self._event_at = self._now()

    async def _pause(self) -> bool:
        """Wait for something to happen; whether the stream has waited long enough."""
        now = self._now()
        comment, idle = self._written_at + self._style.keep_alive, self._event_at + self._style.idle
        await self._stream.wait(min(comment, idle, self._ends()) - now)
        now = self._now()
        if now >= idle:
            if not self._started:
                raise StreamIdle(f"nothing came for {self._style.idle:g} s", expected="a stream that is opened again")
            return True
        if now >= comment:
            await self._write(COMMENT)
        return False

    def _full(self) -> bool:
        cut = self._cut
        return bool((cut.number and self._number >= cut.number) or (cut.bytes and self._bytes >= cut.bytes))

    def _reached(self) -> bool:
        return self._full() or self._now() >= self._ends()

    def _ends(self) -> float:
        return self._begun + self._cut.seconds if self._cut.seconds else math.inf

    async def _write(self, body: bytes) -> None:
        """Hand it to the client. Raises ClientGone."""
        if not self._started:
            self._started = True
            unbuffered(self._cycle)
            headers = [(b"content-type", self._style.content_type.encode()), (b"cache-control", b"no-cache")]
            headers += [(b"x-accel-buffering", b"no"), *self._style.headers]
            await self._send({"type": "http.response.start", "status": HTTPStatus.OK, "headers": headers})
        await self._send({"type": "http.response.body", "body": body, "more_body": True})
        if not await handed_over(self._cycle):
            raise ClientGone
        self._written_at = self._now()

    async def _finish(self) -> None:
        # Whoever reads the end and comes again is not given what was read already.
        await self._stream.finish()
        if not self._started:
            await self._write(b"")
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})
