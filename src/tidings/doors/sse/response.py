"""The answer that is a stream: frames as a door writes them, as fast as the client reads, within the limits it asked for.

`receipts` says when an entry is delivered. Status and headers go out with the first event or comment, so that a stream on which
nothing came can still be answered otherwise.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus

from tidings.delivery.sse.socket_protocol import StreamEntry
from tidings.doors.api_parts import ApiParts
from tidings.doors.sse.lane_stream import LaneStream, open_stream, refuse
from tidings.doors.sse.receipts import Receipts
from tidings.errors import StreamIdle
from tidings.log.position import LaneNumber, Position
from tidings.server.asgi import Receive, Scope, Send
from tidings.server.http_protocol import CYCLE, departed, ends_by_closing, handed_over, kept_open, unacknowledged, unbuffered

COMMENT = b": keep-alive\n\n"
W3C = "text/event-stream"

LONGEST_END = 10.0
"""Seconds in which a client may read the end of its stream; what it has not read then comes again."""

HANDOVER = 0.5
"""As above, where somebody else waits for the lane."""

LOOK = 0.05


@dataclass(frozen=True, slots=True)
class Style:
    """How a door writes its stream. `keep_alive`: seconds between comments, `idle`: seconds without an event until it ends.

    `at_once`: status and headers do not wait for the first event.
    """

    content_type: str
    frame: Callable[[StreamEntry], bytes]
    headers: Sequence[tuple[bytes, bytes]] = ()
    keep_alive: float = math.inf
    idle: float = math.inf
    at_once: bool = False


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """Where a client wants its stream to end: after so many events, bytes or seconds. 0: it does not."""

    number: int = 0
    bytes: int = 0
    seconds: float = 0


@dataclass(frozen=True, slots=True)
class StreamRequest:
    """Which lane's stream is asked for, from where, and how much of it."""

    lane: LaneNumber
    after: Position | None = None
    cut: StreamLimits = StreamLimits()


class ClientGone(Exception):
    """The client left in the middle."""


async def answer_stream(
    parts: ApiParts, asked: StreamRequest, style: Style, scope: Scope, receive: Receive, send: Send
) -> None:
    """Stream until somebody ends it. What is raised is raised before anything was sent: StreamIdle, NotReady, and refusals."""
    async with open_stream(parts, asked.lane, asked.after, asked.cut.number) as stream:
        answer = _Answer(stream, asked.cut, style, scope, send)
        gone = asyncio.ensure_future(_until_gone(receive))
        gone.add_done_callback(lambda _: stream.alert())
        try:
            await answer.run(gone)
        except ClientGone:
            answer.settle(ended=True)
        finally:
            gone.cancel()


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class _Answer:
    """One answer. Times are those of the event loop."""

    def __init__(self, stream: LaneStream, cut: StreamLimits, style: Style, scope: Scope, send: Send) -> None:
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
        self._receipts = Receipts()

    async def run(self, gone: asyncio.Future[None]) -> None:
        """Write until it ends. Raises ClientGone, and what `answer_stream` raises."""
        if self._style.at_once:
            await self._write(b"")
        while not gone.done():
            entries = self._stream.arrived()
            if entries:
                await self._frames(entries)
            elif self._stream.over is not None or await self._pause():
                break
            self.settle()
            if self._reached():
                break
        else:
            raise ClientGone
        if not self._started and self._stream.over is not None:
            refuse(self._stream.over)
        await self._finish()

    async def _frames(self, entries: Sequence[StreamEntry]) -> None:
        frames = []
        for entry in entries:
            frame = self._style.frame(entry)
            frames.append(frame)
            self._receipts.wrote(entry.position, len(frame), self._now())
            self._number += 1
            self._bytes += len(frame)
            if self._full():
                break
        await self._write(b"".join(frames))
        self._event_at = self._now()

    def settle(self, *, ended: bool = False) -> None:
        """Tell what the client surely has. `ended`: it reads no more, or its stream is over."""
        if self._receipts:
            self._stream.taken(self._receipts.certain(unacknowledged(self._cycle), self._now(), ended=ended))

    async def _pause(self) -> bool:
        """Wait for something to happen; whether the stream has waited long enough."""
        now = self._now()
        comment, idle = self._written_at + self._style.keep_alive, self._event_at + self._style.idle
        await self._stream.wait(min(min(comment, idle, self._ends()) - now, self._receipts.look_in(now)))
        now = self._now()
        if now >= idle:
            if not self._started:
                raise StreamIdle(f"nothing came for {self._style.idle:g} s", expected="a stream that is opened again")
            return True
        if now >= comment:
            self._receipts.commented(len(COMMENT))
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
        if not self._started:
            await self._write(b"")
        closing = ends_by_closing(self._cycle)
        if closing:
            await self._confirmed(closing)
        close = kept_open(self._cycle) if not closing else None
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})
        await self._confirmed(closing)
        await self._stream.finish()
        if close is not None:
            close()

    async def _confirmed(self, closing: bool) -> None:
        """Wait until the client surely has everything. Where somebody waits for the lane, what is acknowledged counts."""
        ends = self._now() + LONGEST_END
        while self._receipts and not self._stream.lost:
            handing_over = closing or self._stream.over is not None
            if handing_over:
                ends = min(ends, self._now() + HANDOVER)
            self.settle(ended=handing_over or departed(self._cycle))
            if self._now() >= ends or departed(self._cycle):
                return
            await self._stream.rest(min(LOOK, self._receipts.look_in(self._now())))
