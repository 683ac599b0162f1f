"""One HTTP/1.1 connection to an endpoint: a request goes out in one write, the answer is parsed as it comes.

Written for this one use: whatever the endpoint sends is bounded in bytes and time, and a delivery costs a third of what it
costs with a general client (docs/decisions/008). Every answer ends the attempt, so nothing is followed and nothing unpacked.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol, cast

import httptools

HEAD_LIMIT = 64 << 10
"""Bytes of an answer before its body begins, interim answers included."""

BODY_LIMIT = 128 << 10
BODY_PATIENCE = 1.0
"""Bytes and seconds that the rest of an answer may take once its status is known; then the connection is given up instead."""

INTERIM = range(100, 200)
UPGRADE = 101

LOST = "connection-lost"
TIMEOUT = "timeout"
BAD_ANSWER = "bad-answer"


class ConnectionFailed(Exception):
    """No answer came; `cause` says why in a word. `unsent`: the endpoint has not seen the request.

    `silent`: not one byte of an answer came.
    """

    def __init__(self, cause: str, *, unsent: bool = False, silent: bool = False) -> None:
        super().__init__(cause)
        self.cause = cause
        self.unsent = unsent
        self.silent = silent


class Endpoint(NamedTuple):
    """What a connection leads to: a judged address, and the name that the certificate there must be for ("": no TLS)."""

    address: str
    port: int
    name: str = ""


class EndpointAnswer(NamedTuple):
    """What came back. The body is kept only where it was asked for."""

    status: int
    headers: Sequence[tuple[bytes, bytes]]
    body: bytes = b""

    def header(self, name: bytes) -> str:
        """The first value of a header, named in lower case; "" when there is none."""
        return next((value.decode("latin-1") for key, value in self.headers if key.lower() == name), "")


class Owner(Protocol):
    """Who keeps connections."""

    def free(self, connection: EndpointConnection) -> None:
        """The answer is complete; the connection may be used again."""

    def gone(self, connection: EndpointConnection) -> None:
        """The connection is closed, or about to be."""


class EndpointConnection(asyncio.Protocol):
    """Carries one exchange at a time. `until` is the loop time at which the owner calls `late`; `rested` since when it is idle.

    `last` is the latest `until` there may be; before that it ends when nothing came for some time, where that is bounded.
    """

    __slots__ = (
        *(
            "_asked",
            "_body",
            "_complete",
            "_got",
            "_headers",
            "_keep",
            "_owner",
            "_parser",
            "_reusable",
            "_status",
            "_transport",
        ),
        *("_silence", "_waiter", "alive", "last", "place", "rested", "until"),
    )

    def __init__(self, owner: Owner, place: Endpoint) -> None:
        self._owner = owner
        self.place = place
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[EndpointAnswer] | None = None
        self._headers: list[tuple[bytes, bytes]] = []
        self._body: list[bytes] = []
        self._status = self._got = self._keep = 0
        self._asked = ""
        self._complete = self._reusable = False
        self.alive = False
        self._silence = math.inf
        self.until = self.rested = self.last = 0.0

    def ask(self, method: str, request: Sequence[bytes], keep: int = 0) -> asyncio.Future[EndpointAnswer]:
        """Send a request; its answer, or Failed. `keep`: bytes of the body to keep at the most; 0: none, nor is it waited for."""
        assert self._transport is not None and self._waiter is None
        self._waiter = waiter = asyncio.get_running_loop().create_future()
        self._asked, self._keep = method, keep
        self._status = self._got = 0
        self._complete = False
        self._headers = []
        self._body = []
        self._transport.writelines(request)
        return waiter

    def hush(self, silence: float) -> None:
        """From now on the exchange ends when nothing comes for so many seconds."""
        self._silence = silence
        self.until = min(self.last, asyncio.get_running_loop().time() + silence)

    def late(self) -> None:
        """The time is over. An answer whose status is known is one; the rest of it is not waited for."""
        if self._status and not self._keep:
            self._end(reuse=False)
        else:
            self._fail(TIMEOUT)

    def abort(self) -> None:
        """Close at once; nobody waits for an answer any more."""
        self._waiter = None
        self._close()

    # ---- called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.alive = True

    def data_received(self, data: bytes) -> None:
        if self._waiter is None:
            # Nobody asked: what comes now would be taken for the answer to the next request.
            self._close()
            return
        self._got += len(data)
        if self._silence < math.inf:
            self.hush(self._silence)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._end(reuse=False)
        except httptools.HttpParserError:
            # What follows a complete answer on the same connection is not part of it.
            self._end(reuse=False) if self._status else self._fail(BAD_ANSWER)
        else:
            self._look()

    def eof_received(self) -> None:
        """The endpoint says no more; the transport closes by itself then, but not before others may have taken it for their own."""
        if self._waiter is None:
            self._close()

    def connection_lost(self, error: Exception | None) -> None:
        self.alive = False
        self._owner.gone(self)
        if self._waiter is None:
            return
        if self._status and (not self._keep or self._ends_with_connection()):
            self._end(reuse=False)
        else:
            self._fail(LOST)

    # ---- called by the parser

    def on_message_begin(self) -> None:
        if self._complete:
            self._reusable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        if self._complete:
            return
        status = self._parser.get_status_code()
        if status in INTERIM and status != UPGRADE:
            self._headers = []
            return
        self._status = status
        if self._asked == "HEAD":
            # Its headers speak of a body that does not come; the parser cannot know.
            self._complete, self._reusable = True, False

    def on_body(self, data: bytes) -> None:
        if self._keep:
            self._body.append(data)

    def on_message_complete(self) -> None:
        if self._status and not self._complete:
            self._complete = True
            self._reusable = self._parser.should_keep_alive()

    # ---- ends

    def _look(self) -> None:
        """What is there of the answer so far."""
        if self._complete:
            self._end(self._reusable)
        elif not self._status:
            if self._got > HEAD_LIMIT:
                self._fail(BAD_ANSWER)
        elif self._got > (self._keep or BODY_LIMIT) + HEAD_LIMIT:
            self._end(reuse=False)
        elif not self._keep:
            self.until = min(self.until, asyncio.get_running_loop().time() + BODY_PATIENCE)

    def _ends_with_connection(self) -> bool:
        names = {name.lower() for name, _ in self._headers}
        return b"content-length" not in names and b"transfer-encoding" not in names

    def _end(self, reuse: bool) -> None:
        waiter, self._waiter = self._waiter, None
        self._silence = math.inf
        # What the endpoint has not read of this request would stand in the way of the next.
        if reuse and self.alive and self._transport is not None and not self._transport.get_write_buffer_size():
            self._owner.free(self)
        else:
            self._close()
        if waiter is not None and not waiter.done():
            body = b"".join(self._body)[: self._keep] if self._keep else b""
            waiter.set_result(EndpointAnswer(self._status, self._headers, body))

    def _fail(self, cause: str) -> None:
        waiter, self._waiter = self._waiter, None
        self._close()
        if waiter is not None and not waiter.done():
            waiter.set_exception(ConnectionFailed(cause, silent=not self._got))

    def _close(self) -> None:
        if self.alive:
            self.alive = False
            self._owner.gone(self)
        if self._transport is not None:
            self._transport.abort()
