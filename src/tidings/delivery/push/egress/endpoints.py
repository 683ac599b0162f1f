"""Ways to a callback: addresses that were judged, so that what was judged is what is dialed.

A plain request goes to the address with the Host header of the name. Over TLS the name is also what the certificate is for.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tidings.clock import Clock
from tidings.delivery.push.egress.address_guard import AddressBlocked, Guard, Unresolved
from tidings.delivery.push.egress.connection import ConnectionFailed, Endpoint, EndpointAnswer
from tidings.delivery.push.egress.connection_pool import ConnectionPool, Request
from tidings.delivery.push.egress.urls import EndpointOrigin
from tidings.errors import Misconfigured

JUDGED_FOR = 30.0
"""Seconds until a name is looked up and judged again. Open connections stay with the address that was judged."""

LAST_GOOD_FOR = 600.0
"""Seconds after that in which the last good answer serves while the name cannot be looked up."""

PATIENCE = 0.25
"""Seconds that an attempt waits for a new answer where it has an old one; the others go on with the old one at once."""

AGAIN = 1.0
"""Seconds until it is asked again whether there is a new answer."""

WAYS = 3
"""Addresses of one name that are tried at the most."""

_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----\s*", re.DOTALL)


class CheckedAddress(NamedTuple):
    """The ways to an origin, best first, and until when (monotonic seconds) they hold."""

    ways: Sequence[Endpoint]
    until: float


def authorities_in(path: str) -> list[bytes]:
    """The certificates of further authorities in a PEM file; none for "". Raises Misconfigured."""
    if not path:
        return []
    try:
        found = _CERTIFICATE.findall(Path(path).read_bytes())
        trusting(found)
    except (OSError, ValueError) as error:
        raise Misconfigured(f"the certificates cannot be read: {error}", at="push.ca_file", found=path) from error
    if not found:
        raise Misconfigured("there is no certificate in the file", at="push.ca_file", found=path, expected="PEM")
    return found


def trusting(authorities: Sequence[bytes]) -> ssl.SSLContext:
    """Who is believed: the authorities of the machine, and these. Raises ssl.SSLError, which is an OSError."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    for certificate in authorities:
        context.load_verify_locations(cadata=certificate.decode("ascii"))
    return context


class Endpoints:
    """Finds and remembers the ways to origins. One event loop."""

    def __init__(self, guard: Guard, clock: Clock, connect_timeout: float, authorities: Sequence[bytes] = ()) -> None:
        self._guard = guard
        self._clock = clock
        self.connections = ConnectionPool(trusting(authorities), connect_timeout)
        self._judged: dict[EndpointOrigin, CheckedAddress] = {}
        self._asking: dict[EndpointOrigin, asyncio.Task[CheckedAddress]] = {}

    async def to(self, origin: EndpointOrigin) -> CheckedAddress:
        """The judged ways to an origin. Raises Blocked or Unresolved. Concurrent callers share one lookup.

        When a new answer does not come soon, or not at all, the last good one serves for a while.
        """
        known, now = self._judged.get(origin), self._clock.monotonic()
        if known is not None and now < known.until:
            return known
        asking = self._asking.get(origin)
        if known is None or now >= known.until + LAST_GOOD_FOR:
            return await asyncio.shield(asking or self._begun(origin))
        if asking is None:
            asking = self._begun(origin)
            await asyncio.wait([asking], timeout=PATIENCE)
        if asking.done() and not isinstance(asking.exception(), Unresolved):
            return asking.result()
        return known._replace(until=now + AGAIN)

    def _begun(self, origin: EndpointOrigin) -> asyncio.Task[CheckedAddress]:
        asking = self._asking[origin] = asyncio.create_task(self._judge(origin))
        asking.add_done_callback(lambda task: self._asking.pop(origin, None))
        # Where the last good answer serves, nobody else takes the error.
        asking.add_done_callback(lambda task: task.cancelled() or task.exception())
        return asking

    async def ask_one_of(self, ways: Sequence[Endpoint], request: Request) -> tuple[EndpointAnswer, Endpoint]:
        """Ask at the first of these that can be connected to. Raises Failed."""
        for way in ways[:-1]:
            try:
                return await self.connections.ask(way, request), way
            except ConnectionFailed as failed:
                # Another address of the same name may listen. What did connect may have been acted upon.
                if not failed.unsent:
                    raise
        return await self.connections.ask(ways[-1], request), ways[-1]

    def prefer(self, origin: EndpointOrigin, way: Endpoint) -> None:
        """This way worked where an earlier one did not; it comes first from now on."""
        known = self._judged.get(origin)
        if known is not None and way in known.ways:
            self._judged[origin] = known._replace(ways=[way, *(other for other in known.ways if other is not way)])

    async def close(self) -> None:
        await self.connections.close()

    async def _judge(self, origin: EndpointOrigin) -> CheckedAddress:
        self._forget_stale()
        try:
            addresses = await self._guard.addresses_of(origin.host, origin.port)
        except AddressBlocked:
            # What was judged before is no longer the truth.
            self._judged.pop(origin, None)
            raise
        judged = CheckedAddress([_place(origin, address) for address in addresses[:WAYS]], self._clock.monotonic() + JUDGED_FOR)
        self._judged[origin] = judged
        return judged

    def _forget_stale(self) -> None:
        now = self._clock.monotonic()
        for origin in [origin for origin, judged in self._judged.items() if judged.until + LAST_GOOD_FOR <= now]:
            del self._judged[origin]


def _place(origin: EndpointOrigin, address: str) -> Endpoint:
    return Endpoint(address, origin.port, origin.host.strip("[]") if origin.scheme == "https" else "")
