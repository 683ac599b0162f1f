"""One attempt: a POST to the judged address of a callback, or a probe of it. Whatever happens is an `Outcome`; nothing is raised.

The answer's status is the verdict. Its body is read only to keep the connection usable, bounded in bytes and time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from copy import copy
from datetime import timedelta

from pyreqwest.exceptions import ConnectError, ConnectTimeoutError, PyreqwestError, RequestError, RequestTimeoutError
from pyreqwest.http import Url
from pyreqwest.response import Response

from tidings.clock import Clock
from tidings.delivery.push.credentials import Access
from tidings.delivery.push.decide import Outcome
from tidings.delivery.push.guard import Blocked, Unresolved
from tidings.delivery.push.ways import Judged, Way, Ways, origin_of

BODY_LIMIT = 128 << 10
BODY_PATIENCE = 1.0


class Target:
    """The callback of one subscription, parsed once. Raises ValueError when the URL cannot be read."""

    __slots__ = ("access", "ahead", "judged", "method", "origin", "timeout", "url")

    def __init__(self, url: str, timeout: float, method: str = "POST", *, access: Access | None = None) -> None:
        self.url = Url(url)
        self.method = method
        self.timeout = timedelta(seconds=timeout)
        self.origin = origin_of(self.url)
        self.access = access
        self.judged: Judged | None = None
        self.ahead: Mapping[str, Url] = {}
        if self.origin.scheme not in ("http", "https") or not self.origin.host:
            raise ValueError("a callback is an http or https address")

    def adopt(self, judged: Judged) -> None:
        """Take over newly judged ways; the URLs that go to an address are made once, here."""
        self.judged = judged
        self.ahead = {way.address: self.url.with_ip_host(way.address) for way in judged.ways if way.address}

    def with_query(self, pairs: Sequence[tuple[str, str]]) -> Target:
        """The same target with more in its query."""
        other = copy(self)
        other.url = self.url.extend_query(pairs)
        if self.judged is not None:
            other.adopt(self.judged)
        return other

    def url_of(self, way: Way) -> Url:
        return self.ahead[way.address] if way.address else self.url


class Sender:
    """Sends. One event loop; connections are kept alive and shared by all subscriptions of an origin."""

    def __init__(self, ways: Ways, clock: Clock) -> None:
        self._ways = ways
        self._monotonic = clock.monotonic

    async def send(self, target: Target, headers: dict[str, str], body: bytes) -> Outcome:
        """Make one attempt; takes at most the lookup's time and the target's timeout."""
        started = self._monotonic()
        try:
            judged = target.judged
            if judged is None or started >= judged.until:
                judged = await self._judge(target)
            status, retry_after = await self._post(target, judged, headers, body)
            return Outcome(status, "", self._monotonic() - started, retry_after)
        except (PyreqwestError, Blocked, Unresolved, ValueError, OSError) as error:
            return Outcome(None, cause_of(error), self._monotonic() - started)

    async def close(self) -> None:
        await self._ways.close()

    async def _judge(self, target: Target) -> Judged:
        judged = await self._ways.to(target.origin)
        if judged is not target.judged:
            target.adopt(judged)
        return judged

    async def _post(self, target: Target, judged: Judged, headers: dict[str, str], body: bytes) -> tuple[int, str]:
        """The answer's status and Retry-After. A judged address that cannot be connected to gives way to the next one."""
        last = judged.ways[-1]
        for way in judged.ways:
            try:
                answer = await _ask(way, target, headers, body)
            except (ConnectError, ConnectTimeoutError) as error:
                if way is last or not _never_connected(error):
                    raise
                continue
            if way is not judged.ways[0]:
                self._ways.prefer(target.origin, way)
                target.judged = None
            return answer
        raise AssertionError("an origin has at least one way")


async def _ask(way: Way, target: Target, headers: dict[str, str], body: bytes) -> tuple[int, str]:
    if way.host_header is not None:
        headers = {**headers, "host": way.host_header}
    url = target.url_of(way)
    if target.method == "POST":
        request = way.client.post(url).headers(headers).body_bytes(body).timeout(target.timeout)
    else:
        request = way.client.request(target.method, url).headers(headers).timeout(target.timeout)
    # Without the limit of 0 the answer would be handed over only after the first 64 KiB of its body.
    async with request.streamed_read_buffer_limit(0).build_streamed() as response:
        status = response.status
        retry_after = "" if status < 300 else response.get_header("retry-after") or ""
        if status != 204 and target.method != "HEAD" and response.get_header("content-length") != "0":
            await _drain(response)
        return status, retry_after


async def _drain(response: Response) -> None:
    """Read what is left of the answer, so that the connection can be used again; a long or slow rest is dropped with it."""
    left = BODY_LIMIT
    try:
        async with asyncio.timeout(BODY_PATIENCE):
            while left > 0 and (chunk := await response.body_reader.read(left)) is not None:
                left -= len(chunk)
    except (PyreqwestError, TimeoutError):
        return


def cause_of(error: Exception) -> str:
    """The cause of an attempt without an answer, in one word that records and figures can count."""
    match error:
        case Blocked():
            return "ssrf-blocked"
        case Unresolved():
            return "dns-failed"
        case ConnectTimeoutError() if _never_connected(error):
            return "connect-timeout"
        case RequestTimeoutError() | TimeoutError():
            return "timeout"
        case ConnectError() if _never_connected(error):
            return "tls-failed" if _mentions(error, "certificate", "tls", "handshake") else "connect-failed"
        case PyreqwestError():
            return "connection-lost"
        case _:
            return "unsendable"


def _never_connected(error: RequestError) -> bool:
    """Whether nothing was sent: the client's connect errors also cover requests that went out and were not answered."""
    return _mentions(error, "(connect)")


def _mentions(error: RequestError, *words: str) -> bool:
    text = str(error.details).lower()
    return any(word in text for word in words)
