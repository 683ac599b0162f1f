"""The connections that are kept: one stack per place, last used first. Idle ones end after a while, late answers are given up."""

from __future__ import annotations

import asyncio
import math
import ssl
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

from tidings.delivery.push.egress.connection import LOST, ConnectionFailed, Endpoint, EndpointAnswer, EndpointConnection

IDLE_FOR = 30.0
"""Seconds that a connection is kept although nobody uses it."""

KEPT = 1000
"""Connections, idle and in use, beyond which no idle one is kept; the one that rested longest goes first."""

TICK = 0.05
REST_TICK = 1.0
"""Seconds between two looks at the clock, with and without requests on their way. An answer may be late by one TICK."""

CONNECT_FAILED, CONNECT_TIMEOUT, TLS_FAILED = "connect-failed", "connect-timeout", "tls-failed"


class Request(NamedTuple):
    """A request as bytes, and the seconds it may take, and may be silent. `keep`: bytes of the answer's body that are wanted.

    `connect`: the seconds that connecting may take, on top of the others; None: as usual, and counted with them.
    """

    method: str
    parts: Sequence[bytes]
    timeout: float
    keep: int = 0
    silence: float = math.inf
    connect: float | None = None


class ConnectionPool:
    """Makes, keeps and ends connections. One event loop. Raises Failed where no answer came."""

    def __init__(self, tls: ssl.SSLContext, connect_timeout: float) -> None:
        self._tls = tls
        self._connect_timeout = connect_timeout
        self._idle: dict[Endpoint, list[EndpointConnection]] = {}
        self._resting: OrderedDict[EndpointConnection, None] = OrderedDict()
        self._busy: set[EndpointConnection] = set()
        self._tick: asyncio.TimerHandle | None = None
        self._soon = False
        self._closed = False

    async def ask(self, place: Endpoint, request: Request) -> EndpointAnswer:
        """Make a request at a place, over a kept connection where there is one; if that is lost, once more over a new one."""
        began = asyncio.get_running_loop().time()
        connection = self._kept(place)
        if connection is None:
            return await self._over_new(place, request, began)
        try:
            return await self._begun(connection, request, began)
        except ConnectionFailed as failed:
            # The endpoint closed a kept connection just as the request went out. That says nothing about how it is doing, and
            # it is not to cost a try. Should it have read the request all the same, this is one of the repeats that may be.
            if failed.cause != LOST or not failed.silent:
                raise
        except asyncio.CancelledError:
            connection.abort()
            raise
        return await self._over_new(place, request, began)

    async def close(self) -> None:
        """End all connections."""
        self._closed = True
        if self._tick is not None:
            self._tick.cancel()
        for connection in [*self._resting, *self._busy]:
            connection.abort()
        # Transports close one turn of the loop later.
        await asyncio.sleep(0)

    def free(self, connection: EndpointConnection) -> None:
        self._busy.discard(connection)
        if self._closed:
            connection.abort()
            return
        connection.rested = asyncio.get_running_loop().time()
        self._idle.setdefault(connection.place, []).append(connection)
        self._resting[connection] = None
        if len(self._resting) + len(self._busy) > KEPT:
            next(iter(self._resting)).abort()

    def gone(self, connection: EndpointConnection) -> None:
        self._busy.discard(connection)
        if connection in self._resting:
            del self._resting[connection]
            stack = self._idle[connection.place]
            stack.remove(connection)
            if not stack:
                del self._idle[connection.place]

    def _kept(self, place: Endpoint) -> EndpointConnection | None:
        stack = self._idle.get(place)
        if not stack:
            return None
        connection = stack.pop()
        del self._resting[connection]
        if not stack:
            del self._idle[place]
        return connection

    async def _over_new(self, place: Endpoint, request: Request, began: float) -> EndpointAnswer:
        connection = await self._connected(place, request)
        if request.connect is not None:
            began = asyncio.get_running_loop().time()
        try:
            return await self._begun(connection, request, began)
        except asyncio.CancelledError:
            connection.abort()
            raise

    def _begun(self, connection: EndpointConnection, request: Request, began: float) -> asyncio.Future[EndpointAnswer]:
        connection.until = connection.last = began + request.timeout
        if request.silence < math.inf:
            connection.hush(request.silence)
        self._busy.add(connection)
        if not self._soon:
            self._wind()
        return connection.ask(request.method, request.parts, request.keep)

    async def _connected(self, place: Endpoint, request: Request) -> EndpointConnection:
        dial = asyncio.get_running_loop().create_connection
        tls = self._tls if place.name else None
        try:
            async with asyncio.timeout(request.connect or min(self._connect_timeout, request.timeout)):
                _, connection = await dial(
                    lambda: EndpointConnection(self, place),
                    place.address,
                    place.port,
                    ssl=tls,
                    server_hostname=place.name or None,
                )
        except TimeoutError as error:
            raise ConnectionFailed(CONNECT_TIMEOUT, unsent=True) from error
        except ssl.SSLError as error:
            raise ConnectionFailed(TLS_FAILED, unsent=True) from error
        except OSError as error:
            raise ConnectionFailed(CONNECT_FAILED, unsent=True) from error
        return connection

    # ---- time

    def _wind(self) -> None:
        if self._tick is not None:
            self._tick.cancel()
        self._soon = bool(self._busy)
        self._tick = asyncio.get_running_loop().call_later(TICK if self._soon else REST_TICK, self._look)

    def _look(self) -> None:
        now = asyncio.get_running_loop().time()
        for connection in [connection for connection in self._busy if connection.until <= now]:
            connection.late()
        while self._resting and (oldest := next(iter(self._resting))).rested + IDLE_FOR <= now:
            oldest.abort()
        self._tick, self._soon = None, False
        if self._busy or self._resting:
            self._wind()
