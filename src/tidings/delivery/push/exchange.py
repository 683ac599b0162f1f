"""One request beside deliveries, and its bounded answer: token requests, handshakes. Through the guard like everything else.

Protocols are generators that yield what they ask and are sent what came back; `run` drives them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Mapping
from datetime import timedelta
from typing import Protocol, TypeVar

import msgspec
from pyreqwest.exceptions import ConnectError, ConnectTimeoutError, PyreqwestError
from pyreqwest.http import Url

from tidings.delivery.push.guard import Blocked, Unresolved
from tidings.delivery.push.sender import cause_of
from tidings.delivery.push.ways import Way, Ways, origin_of

REPLY_BYTES = 128 << 10

T = TypeVar("T")


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """A request to be made. `timeout` bounds the whole of it, in seconds. Headers and body may hold secrets: never log one."""

    method: str
    url: str
    headers: Mapping[str, str] = {}
    body: bytes = b""
    timeout: float = 10.0

    def __repr__(self) -> str:
        return f"Ask({self.method})"


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What came back; names of headers in lower case. `status` None: no answer came, and `cause` says why."""

    status: int | None = None
    headers: Mapping[str, str] = {}
    body: bytes = b""
    cause: str = ""

    @property
    def reason(self) -> str:
        """What came of it in a word."""
        return self.cause or f"status-{self.status}"


class Exchange(Protocol):
    """Makes requests."""

    async def __call__(self, ask: Ask) -> Reply:
        """Make one; whatever goes wrong is in the reply. Nothing is followed, nothing is tried twice."""


async def run(protocol: Generator[Ask, Reply, T], exchange: Exchange) -> T:
    """Drive a protocol to its result."""
    try:
        ask = next(protocol)
        while True:
            ask = protocol.send(await exchange(ask))
    except StopIteration as ended:
        result: T = ended.value
        return result


class GuardedExchange:
    """The Exchange over judged ways. One event loop."""

    def __init__(self, ways: Ways) -> None:
        self._ways = ways

    async def __call__(self, ask: Ask) -> Reply:
        try:
            async with asyncio.timeout(ask.timeout):
                return await self._ask(ask)
        except (PyreqwestError, Blocked, Unresolved, ValueError, OSError) as error:
            return Reply(cause=cause_of(error))

    async def _ask(self, ask: Ask) -> Reply:
        url = Url(ask.url)
        judged = await self._ways.to(origin_of(url))
        for way in judged.ways[:-1]:
            try:
                return await _over(way, url, ask)
            except (ConnectError, ConnectTimeoutError) as error:
                # Another address of the same name may listen. What did connect may have been acted upon.
                if not cause_of(error).startswith("connect-"):
                    raise
        return await _over(judged.ways[-1], url, ask)


async def _over(way: Way, url: Url, ask: Ask) -> Reply:
    headers = dict(ask.headers) if way.host_header is None else {**ask.headers, "host": way.host_header}
    to = url.with_ip_host(way.address) if way.address else url
    request = way.client.request(ask.method, to).headers(headers).timeout(timedelta(seconds=ask.timeout))
    if ask.body:
        request = request.body_bytes(ask.body)
    async with request.streamed_read_buffer_limit(0).build_streamed() as response:
        body = b""
        while len(body) < REPLY_BYTES and (chunk := await response.body_reader.read(REPLY_BYTES - len(body))) is not None:
            body += bytes(chunk)
        return Reply(
            status=response.status,
            headers={name.lower(): value for name, value in response.headers.items()},
            body=body,
        )
