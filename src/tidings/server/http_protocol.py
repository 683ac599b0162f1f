"""HTTP/1.1 with limits: head bytes, head time and body time are bounded while bytes arrive (431, 408, 400).

So is the time in which a client lets its answers stand unread. uvicorn's httptools protocol alone buffers any head (50 MB were
taken) and waits for ever. One sweep per server looks at all connections now and then, so a request costs no timer.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import socket
import struct
import sys
import termios
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus
from typing import Any, ClassVar

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from tidings.problems import (
    BAD_HTTP,
    BODY_TOO_SLOW,
    HEAD_TOO_LARGE,
    HEAD_TOO_SLOW,
    NO_HOST,
    TOO_MANY_CONNECTIONS,
    TOO_MANY_OF_ONE_CLIENT,
    Problem,
)
from tidings.server.client_connections import ClientConnections
from tidings.server.unread_answers import Unread

LINGER = 2.0
"""Seconds in which a refused client may finish sending, so that it reads the answer instead of a reset connection."""

CYCLE = "tidings.cycle"
"""Where a request's scope holds what `answer_at_once` needs."""

_AT_ONCE = struct.pack("ii", 1, 0)
"""The linger option that lets the kernel forget what was not read."""

_ENDLESS = 1 << 62
"""More bytes than any answer has."""

logger = logging.getLogger("tidings.ingest")


@dataclass(frozen=True, slots=True)
class WireLimits:
    """What one connection may take, and how many there may be (`client_connections`: of one client; 0: any). Times in seconds."""

    head_bytes: int
    head_time: float
    body_time: float
    answer_time: float
    keep_alive: float
    connections: int
    client_connections: int = 0


class Phase(Enum):
    """What a connection is doing."""

    IDLE = "idle"
    HEAD = "head"
    BODY = "body"
    REFUSED = "refused"


class LimitedProtocol(HttpToolsProtocol):
    """uvicorn's protocol with limits. Use `limited(...)`: the limits are an attribute of the class."""

    limits: ClassVar[WireLimits]
    clients: ClassVar[ClientConnections]
    sweep: ClassVar[ConnectionSweep | None] = None

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.phase = Phase.HEAD
        self.since = self.loop.time()
        self._unread = Unread.at(self.since)
        self._left: int | None = None
        # Bytes that came since the head began, or since the last piece of body: what a parser may be holding back.
        self._held = 0
        self._chunk = 0
        self._unparsed = 0
        self._address = ""
        # Requests that are not answered yet: the one that is being answered, and those that were sent behind it.
        self._open: list[RequestResponseCycle] = []

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watched()
        self._address = self.client[0] if self.client else ""
        if not self.clients.opened(self._address):
            self.refuse(TOO_MANY_OF_ONE_CLIENT)
        elif len(self.connections) > self.limits.connections:
            self.refuse(TOO_MANY_CONNECTIONS)

    def connection_lost(self, exc: Exception | None) -> None:
        self.clients.closed(self._address)
        # A client that closes having read everything says so before; one that dies with something unread does not.
        self._left = _ENDLESS if self._left is None else self._left
        super().connection_lost(exc)
        self._abandon()

    def _abandon(self) -> None:
        """Nobody reads answers here any more. uvicorn tells only the newest of several pipelined requests."""
        self.pipeline.clear()
        for cycle in self._open:
            if not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
        self._open = []

    def data_received(self, data: bytes) -> None:
        if self.phase is Phase.REFUSED:
            return
        if self._unparsed:
            data = self._take_unparsed(data)
        if not data:
            return
        self._chunk = len(data)
        self._held += self._chunk
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._after_upgrade(data[upgrade.args[0] :])
        except httptools.HttpParserError as error:
            logger.info("refused what is no HTTP: %s", error)
            self.refuse(BAD_HTTP)
        if self._held > self.limits.head_bytes and self.phase is not Phase.IDLE:
            self.refuse(HEAD_TOO_LARGE)

    def on_message_begin(self) -> None:
        self.phase = Phase.HEAD
        self.since = self.loop.time()
        self._held = self._chunk
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        if self._held > self.limits.head_bytes and self._head_size() > self.limits.head_bytes:
            self.refuse(HEAD_TOO_LARGE)
        elif self.parser.get_http_version() == "1.1" and sum(name == b"host" for name, _ in self.headers) != 1:
            self.refuse(NO_HOST)
        if self.phase is Phase.REFUSED:
            return
        self._held = 0
        self.phase = Phase.BODY
        if self.parser.should_upgrade() and not self._should_upgrade():
            # Java's client offers HTTP/2 with its first request, and httptools then takes the body for something else.
            self._unparsed = self._declared_length()
        super().on_headers_complete()
        self.scope[CYCLE] = self.cycle  # type: ignore[literal-required]
        # The transport forgets its protocol when the connection is lost.
        self.cycle.connection = self  # type: ignore[attr-defined]
        self._open.append(self.cycle)
        if self.cycle is not None and not self.cycle.keep_alive:
            self.cycle.transport = _Lingering(self)  # type: ignore[assignment]
        if self.cycle is not None and self.scope["http_version"] == "1.0":
            self.cycle.send = _Unchunked(self.cycle)  # type: ignore[method-assign]

    def on_body(self, body: bytes) -> None:
        if self.phase is Phase.REFUSED:
            return
        self._held = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self.phase is Phase.REFUSED or self._unparsed:
            return
        self._held = 0
        self.phase = Phase.IDLE
        self.since = self.loop.time()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """As uvicorn's, without a keep-alive timer for each request: the sweep closes idle connections."""
        self.server_state.total_requests += 1
        self._open = [cycle for cycle in self._open if not cycle.response_complete]
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.phase is Phase.IDLE:
            self.since = self.loop.time()
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            self._start_asgi_task(cycle, app)

    def refuse(self, problem: Problem) -> None:
        """Answer (unless an answer is under way), take no more in, and close once the client had time to read it."""
        if self.phase is Phase.REFUSED or self.transport.is_closing():
            return
        self.phase = Phase.REFUSED
        self.since = self.loop.time()
        under_way = any(cycle.response_started for cycle in self._open if not cycle.response_complete)
        self._abandon()
        if under_way:
            self.transport.close()
            return
        self.transport.write(raw_answer(problem))
        self._linger()

    def end(self) -> None:
        """Close, after an answer. Whoever is still sending reads it only if what comes is taken for a while."""
        if self.phase is Phase.BODY and not self.transport.is_closing():
            self.phase = Phase.REFUSED
            self.since = self.loop.time()
            self._linger()
        else:
            self.transport.close()

    def _linger(self) -> None:
        """Say that nothing more follows, and pass over what comes; the sweep closes."""
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()

    def eof_received(self) -> None:
        self._left = self.unacknowledged()
        super().eof_received()

    def unacknowledged(self) -> int:
        """How many of the written bytes the client's machine has not acknowledged; all of them, if the connection broke."""
        if self._left is not None:
            return self._left
        waiting = self.transport.get_write_buffer_size()
        with suppress(OSError):
            queued = fcntl.ioctl(self.transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, bytes(4))
            waiting += int.from_bytes(queued, sys.byteorder)
        return waiting

    def resume_writing(self) -> None:
        self._unread = Unread.at(self.loop.time())
        super().resume_writing()

    def expire(self, now: float) -> None:
        """Called by the sweep: end what has taken too long."""
        self._unread = self._unread.looked(self.transport.get_write_buffer_size(), now)
        if now - self._unread.since > self.limits.answer_time:
            self._drop()
            return
        waited = now - self.since
        match self.phase:
            case Phase.HEAD if waited > self.limits.head_time:
                self.refuse(HEAD_TOO_SLOW)
            case Phase.BODY if self.flow.read_paused:
                self.since = now  # The hub itself does not read just now: not the client's time.
            case Phase.BODY if waited > self.limits.body_time:
                self.refuse(BODY_TOO_SLOW)
            case Phase.REFUSED if waited > LINGER:
                self.transport.close()
            case Phase.IDLE if waited > self.limits.keep_alive and not self._busy():
                self.transport.close()

    def _drop(self) -> None:
        """End the connection at once. Closing would wait, here and then in the kernel, until everything is read.

        Whoever writes the answer is told that the client left.
        """
        with suppress(OSError):
            self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        self.transport.abort()

    def _busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _watched(self) -> None:
        kind = type(self)
        if kind.sweep is None:
            kind.sweep = ConnectionSweep(self.loop, self.server_state, self.limits)
        kind.sweep.watch()

    def _head_size(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _declared_length(self) -> int:
        length = next((value for name, value in self.headers if name == b"content-length"), b"0")
        return int(length) if length.isdigit() else 0

    def _after_upgrade(self, rest: bytes) -> None:
        """Hand a WebSocket over; for any other offer go on with HTTP/1.1, whose body the parser has skipped."""
        if self._should_upgrade():
            self.handle_websocket_upgrade()
        elif rest:
            self.data_received(rest)

    def _take_unparsed(self, data: bytes) -> bytes:
        """Hand on the body that the parser skipped; what comes after it."""
        body, rest = data[: self._unparsed], data[self._unparsed :]
        self._unparsed -= len(body)
        self.on_body(body)
        if not self._unparsed:
            self.on_message_complete()
        return rest


class _Lingering:
    """The transport of a connection that ends with its answer."""

    def __init__(self, protocol: LimitedProtocol) -> None:
        self._protocol = protocol

    def close(self) -> None:
        self._protocol.end()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._protocol.transport, name)


class _Unchunked:
    """`send` for HTTP/1.0, which knows no chunks: an answer without a length ends with the connection."""

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle = cycle
        self._send = cycle.send
        self._endless = False

    async def __call__(self, message: Any) -> None:
        cycle = self._cycle
        if message["type"] == "http.response.start":
            self._endless = all(name.lower() != b"content-length" for name, _ in message.get("headers", ()))
            if self._endless:
                cycle.keep_alive = cycle.chunked_encoding = False
                cycle.expected_content_length = _ENDLESS
        elif self._endless and not message.get("more_body", False):
            cycle.expected_content_length = len(message.get("body", b""))
        await self._send(message)


class ConnectionSweep:
    """Looks at every connection of one server now and then, as long as there are any."""

    def __init__(self, loop: asyncio.AbstractEventLoop, state: ServerState, limits: WireLimits) -> None:
        self._loop = loop
        self._state = state
        self._pause = min(1.0, limits.head_time / 4, limits.body_time / 4, limits.answer_time / 4, limits.keep_alive / 4)
        self._timer: asyncio.TimerHandle | None = None

    def watch(self) -> None:
        if self._timer is None:
            self._timer = self._loop.call_later(self._pause, self._look)

    def _look(self) -> None:
        self._timer = None
        now = self._loop.time()
        for connection in list(self._state.connections):
            if isinstance(connection, LimitedProtocol):
                connection.expire(now)
        if self._state.connections:
            self.watch()


def limited(limits: WireLimits) -> type[LimitedProtocol]:
    """The protocol class for a server with these limits."""
    return type(
        "LimitedProtocol", (LimitedProtocol,), {"limits": limits, "clients": ClientConnections(limits.client_connections)}
    )


def answer_at_once(cycle: RequestResponseCycle, head: bytes, body: bytes) -> bool:
    """Answer a request with one write; False when the client reads too slowly for that. `head`: the status line and headers.

    uvicorn itself writes head and body apart, which is two packets and two system calls, and checks every header again.
    """
    if cycle.flow.write_paused:
        return False
    if cycle.disconnected:
        return True
    lines = [head, b"content-length: %d\r\n" % len(body)]
    lines += [b"%b: %b\r\n" % header for header in cycle.default_headers]
    lines.append(b"\r\n" if cycle.keep_alive else b"connection: close\r\n\r\n")
    cycle.response_started = cycle.response_complete = True
    cycle.waiting_for_100_continue = False
    cycle.transport.write(b"".join(lines) + body)
    cycle.message_event.set()
    if not cycle.keep_alive:
        cycle.transport.close()
    cycle.on_response()
    return True


def unbuffered(cycle: RequestResponseCycle | None) -> None:
    """From now on `handed_over` waits for every byte, not only until few enough are left."""
    if cycle is not None:
        cycle.transport.set_write_buffer_limits(high=0)


async def handed_over(cycle: RequestResponseCycle | None) -> bool:
    """Wait until the kernel has taken what was written, after `unbuffered`; False: the client left before."""
    if cycle is None:
        return True
    if cycle.flow.write_paused and not cycle.disconnected:
        await cycle.flow.drain()
    return not cycle.disconnected


def unacknowledged(cycle: RequestResponseCycle | None) -> int:
    """How many bytes of the connection the client's machine has not acknowledged; very many, if it broke."""
    connection = getattr(cycle, "connection", None)
    return connection.unacknowledged() if isinstance(connection, LimitedProtocol) else 0


def departed(cycle: RequestResponseCycle | None) -> bool:
    """Whether the connection is closed, or closing."""
    return cycle is not None and cycle.transport.is_closing()


def ends_by_closing(cycle: RequestResponseCycle | None) -> bool:
    """Whether the end of the answer is the end of the connection (HTTP/1.0)."""
    return cycle is not None and not cycle.chunked_encoding


def kept_open(cycle: RequestResponseCycle | None) -> Callable[[], None]:
    """Keep the connection for a while after the answer, though its client wants none after it; what closes it then."""
    if cycle is None or cycle.keep_alive:
        return lambda: None
    cycle.keep_alive = True
    return cycle.transport.close


def raw_answer(problem: Problem) -> bytes:
    """A whole HTTP/1.1 answer as bytes, after which the connection is closed."""
    body = problem.body()
    headers = [*problem.headers(), (b"content-length", b"%d" % len(body)), (b"connection", b"close")]
    lines = [b"HTTP/1.1 %d %s" % (problem.status, HTTPStatus(problem.status).phrase.encode())]
    lines += [name + b": " + value for name, value in headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def end_at_once(cycle: RequestResponseCycle, text: bytes) -> bool:
    """Send the rest of an answer that is under way in chunks, and end it, with one write; False when that is not possible now."""
    if cycle.disconnected:
        return True
    if cycle.flow.write_paused or not cycle.chunked_encoding or cycle.response_complete:
        return False
    cycle.response_complete = True
    cycle.transport.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(text), text))
    cycle.message_event.set()
    if not cycle.keep_alive:
        cycle.transport.close()
    cycle.on_response()
    return True


def cut(cycle: RequestResponseCycle | None) -> None:
    """End the connection in the middle of an answer: what was sent arrives, and the missing end tells that there is more."""
    if cycle is not None and not cycle.response_complete:
        cycle.disconnected = True
        cycle.transport.close()
