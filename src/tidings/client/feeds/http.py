"""The one thing a reader asks of HTTP: GET, with the answer as a stream of bytes. `Http` is where your own client fits in.

| adapter | for |
|---|---|
| `PlainHttp` | the usual one: asyncio alone, and the fastest |
| `HttpxHttp` | proxies (taken by itself where the environment names one), compression, your own `httpx.AsyncClient` |
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

from tidings.client.feeds.connection import HttpConnection, HttpOrigin, ResponseHead, origin_of

REDIRECTS = 5
_KEPT = 8
"""Idle connections per server."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The beginning of an answer. Headers have lower-case names; iterating `chunks` raises OSError when the connection breaks."""

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]


class Http(Protocol):
    """An HTTP client. Raises OSError for whatever lies between it and the server, also when the answer is cut off."""

    def get(self, url: str, headers: Mapping[str, str], silence: float) -> AbstractAsyncContextManager[Answer]:
        """Ask; leaving the context lets go of the connection. `silence` is how long the server may send nothing, in seconds."""

    async def close(self) -> None:
        """Let go of every connection. Called once, at the end."""


class PlainHttp:
    """Http over asyncio and nothing else: kept connections, TLS, redirects. No proxies and no compression."""

    def __init__(self) -> None:
        self._idle: dict[HttpOrigin, list[HttpConnection]] = {}

    @asynccontextmanager
    async def get(self, url: str, headers: Mapping[str, str], silence: float) -> AsyncIterator[Answer]:
        sent = dict(headers)
        for _ in range(REDIRECTS):
            connection, head = await self._asked(url, sent, silence)
            target = head.redirect
            if target is None:
                break
            connection.close()
            url, before = urljoin(url, target), url
            if origin_of(url) != origin_of(before):
                # A token is for the server it was given for.
                sent = {name: value for name, value in sent.items() if name.lower() != "authorization"}
        else:
            raise OSError("it redirects without end")
        try:
            yield Answer(head.status, head.headers, connection.chunks(head, silence))
        finally:
            self._give_back(origin_of(url), connection)

    async def close(self) -> None:
        idle, self._idle = self._idle, {}
        for connections in idle.values():
            for connection in connections:
                connection.close()

    async def _asked(self, url: str, headers: Mapping[str, str], silence: float) -> tuple[HttpConnection, ResponseHead]:
        origin, target = origin_of(url), _target(url)
        idle = self._idle.get(origin, [])
        while idle:
            connection = idle.pop()
            try:
                return connection, await connection.ask(target, headers, silence)
            except OSError:
                # The server closed it meanwhile, which only asking shows.
                connection.close()
            except BaseException:
                connection.close()
                raise
        connection = await HttpConnection.to(origin)
        try:
            return connection, await connection.ask(target, headers, silence)
        except BaseException:
            connection.close()
            raise

    def _give_back(self, origin: HttpOrigin, connection: HttpConnection) -> None:
        idle = self._idle.setdefault(origin, [])
        if connection.is_reusable and len(idle) < _KEPT:
            idle.append(connection)
        else:
            connection.close()


def usual_http(url: str) -> Http:
    """The client for an address where nobody chose one: through the proxy that the environment names for it, else directly."""
    if not is_proxied(url):
        return PlainHttp()
    from tidings.client.feeds.httpx import HttpxHttp

    return HttpxHttp()


def is_proxied(url: str) -> bool:
    """Whether HTTP_PROXY, HTTPS_PROXY or ALL_PROXY is for this address, and NO_PROXY is not. Never for this machine itself."""
    parts, proxies = urlsplit(url), getproxies()
    host = parts.hostname or ""
    if host in ("localhost", "::1") or host.startswith("127."):
        return False
    return bool(proxies.get(parts.scheme) or proxies.get("all")) and not proxy_bypass(host)


def _target(url: str) -> str:
    parts = urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
