"""One request beside deliveries, and its bounded answer: token requests, handshakes. Through the guard like everything else.

Protocols are generators that yield what they ask and are sent what came back; `run` drives them.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Generator, Mapping
from typing import Protocol, TypeVar

import msgspec

from tidings.delivery.push.egress.address_guard import AddressBlocked, Unresolved
from tidings.delivery.push.egress.connection import ConnectionFailed, EndpointAnswer
from tidings.delivery.push.egress.connection_pool import Request
from tidings.delivery.push.egress.endpoints import Endpoints
from tidings.delivery.push.egress.sender import cause_of
from tidings.delivery.push.egress.urls import RequestUrl
from tidings.delivery.push.request.request_bytes import Opening

REPLY_BYTES = 128 << 10

T = TypeVar("T")


class ExchangeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to be made. `timeout` bounds the whole of it, `silence` the time in which nothing comes, in seconds.

    Headers and body may hold secrets: never log one.
    """

    method: str
    url: str
    headers: Mapping[str, str] = {}
    body: bytes = b""
    timeout: float = 10.0
    silence: float = math.inf

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

    async def __call__(self, ask: ExchangeRequest) -> Reply:
        """Make one; whatever goes wrong is in the reply. Nothing is followed, nothing is tried twice."""


async def run(protocol: Generator[ExchangeRequest, Reply, T], exchange: Exchange) -> T:
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

    def __init__(self, ways: Endpoints) -> None:
        self._ways = ways

    async def __call__(self, ask: ExchangeRequest) -> Reply:
        try:
            async with asyncio.timeout(ask.timeout):
                return _reply(await self._ask(ask))
        except (ConnectionFailed, AddressBlocked, Unresolved, ValueError, OSError) as error:
            return Reply(cause=cause_of(error))

    async def _ask(self, ask: ExchangeRequest) -> EndpointAnswer:
        url = RequestUrl.parse(ask.url)
        parts = Opening(ask.method, url.target, url.origin.host_header).request(ask.headers, ask.body)
        judged = await self._ways.to(url.origin)
        answer, _ = await self._ways.ask_one_of(judged.ways, Request(ask.method, parts, ask.timeout, REPLY_BYTES, ask.silence))
        return answer


def _reply(answer: EndpointAnswer) -> Reply:
    headers: dict[str, str] = {}
    for name, value in answer.headers:
        headers.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))
    return Reply(status=answer.status, headers=headers, body=answer.body)
