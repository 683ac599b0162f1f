"""One attempt: a POST to the judged address of a callback, or a probe of it. Whatever happens is an `Outcome`; nothing is raised.

The answer's status is the verdict. Its body is read only to keep the connection usable, bounded in bytes and time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy

from tidings.clock import Clock
from tidings.delivery.push.egress.address_guard import AddressBlocked, Unresolved
from tidings.delivery.push.egress.connection import ConnectionFailed, EndpointAnswer
from tidings.delivery.push.egress.connection_pool import Request
from tidings.delivery.push.egress.endpoints import CheckedAddress, Endpoints
from tidings.delivery.push.egress.urls import RequestUrl
from tidings.delivery.push.policy.decision import Outcome
from tidings.delivery.push.request.credentials import Access
from tidings.delivery.push.request.request_bytes import Opening

UNSENDABLE = "unsendable"


class SendTarget:
    """The callback of one subscription, parsed once. Raises ValueError when the URL cannot be read."""

    __slots__ = ("access", "connect", "judged", "method", "opening", "origin", "timeout", "url")

    def __init__(
        self, url: str, timeout: float, connect: float | None = None, method: str = "POST", *, access: Access | None = None
    ) -> None:
        self.url = RequestUrl.parse(url)
        self.method = method
        self.timeout = timeout
        self.connect = connect
        self.origin = self.url.origin
        self.access = access
        self.judged: CheckedAddress | None = None
        self.opening = Opening(method, self.url.target, self.origin.host_header)

    def with_query(self, pairs: Sequence[tuple[str, str]]) -> SendTarget:
        """The same target with more in its query."""
        other = copy(self)
        other.url = self.url.with_query(pairs)
        other.opening = Opening(self.method, other.url.target, self.origin.host_header)
        return other


class Sender:
    """Sends. One event loop; connections are kept alive and shared by all subscriptions of an address."""

    def __init__(self, ways: Endpoints, clock: Clock) -> None:
        self._ways = ways
        self._monotonic = clock.monotonic

    async def send(self, target: SendTarget, headers: Mapping[str, str], body: bytes) -> Outcome:
        """Make one attempt; takes at most the time of the lookup and of the target."""
        started = self._monotonic()
        try:
            judged = target.judged
            if judged is None or started >= judged.until:
                judged = target.judged = await self._ways.to(target.origin)
            request = Request(target.method, target.opening.request(headers, body), target.timeout, connect=target.connect)
            if len(judged.ways) == 1:
                answer = await self._ways.connections.ask(judged.ways[0], request)
            else:
                answer = await self._post(target, judged, request)
        except (ConnectionFailed, AddressBlocked, Unresolved, ValueError, OSError) as error:
            return Outcome(None, cause_of(error), self._monotonic() - started)
        status = answer.status
        retry_after = "" if status < 300 else answer.header(b"retry-after")
        return Outcome(status, "", self._monotonic() - started, retry_after)

    async def close(self) -> None:
        await self._ways.close()

    async def _post(self, target: SendTarget, judged: CheckedAddress, request: Request) -> EndpointAnswer:
        """The answer. A judged address that cannot be connected to gives way to the next one."""
        first, *others = judged.ways
        try:
            return await self._ways.connections.ask(first, request)
        except ConnectionFailed as failed:
            if not failed.unsent or not others:
                raise
        answer, way = await self._ways.ask_one_of(others, request)
        self._ways.prefer(target.origin, way)
        target.judged = None
        return answer


def cause_of(error: Exception) -> str:
    """The cause of an attempt without an answer, in one word that records and figures can count."""
    match error:
        case ConnectionFailed():
            return error.cause
        case AddressBlocked():
            return "ssrf-blocked"
        case Unresolved():
            return "dns-failed"
        case TimeoutError():
            return "timeout"
        case _:
            return UNSENDABLE
