"""Ways to a callback: a client and an address that are tied to each other, so that what was judged is what is dialed.

A plain request goes to the address itself with the Host header of the name. A TLS request needs the name for SNI and the
certificate, so its host gets a client of its own in which the name has just that address.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from pyreqwest.client import Client, ClientBuilder
from pyreqwest.exceptions import PyreqwestError
from pyreqwest.http import Url

from tidings.clock import Clock
from tidings.delivery.push.guard import Guard
from tidings.errors import Misconfigured

JUDGED_FOR = 30.0
"""Seconds until a name is looked up and judged again. Open connections stay with the address that was judged."""

WAYS = 3
"""Addresses of one name that are tried at the most."""

_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----\s*", re.DOTALL)

NAMED_CLIENTS = 256
"""Clients with a name of their own at the most (each holds about 140 KiB)."""


class Origin(NamedTuple):
    """Where a request goes, before any lookup."""

    scheme: str
    host: str
    port: int


def origin_of(url: Url) -> Origin:
    """The origin of a callback as the client itself reads the URL: number forms and IDNA are settled here (SSRF-06)."""
    return Origin(url.scheme, url.host_str or "", url.port_or_known_default or 0)


def place_of(url: str) -> tuple[str, int]:
    """Host and port of an address as the client reads it. Raises ValueError."""
    origin = origin_of(Url(url))
    return origin.host, origin.port


class Way(NamedTuple):
    """One judged way to an origin. `address` None: the URL's host is the address already."""

    client: Client
    address: str | None
    host_header: str | None


class Judged(NamedTuple):
    """The ways to an origin, best first, and until when (monotonic seconds) they hold."""

    ways: Sequence[Way]
    until: float


def authorities_in(path: str) -> list[bytes]:
    """The certificates of further authorities in a PEM file; none for "". Raises Misconfigured."""
    if not path:
        return []
    try:
        found = _CERTIFICATE.findall(Path(path).read_bytes())
        for certificate in found:
            ClientBuilder().add_root_certificate_pem(certificate).build()
    except (OSError, ValueError, PyreqwestError) as error:
        raise Misconfigured(f"the certificates cannot be read: {error}", at="push.ca_file", found=path) from error
    if not found:
        raise Misconfigured("there is no certificate in the file", at="push.ca_file", found=path, expected="PEM")
    return found


class Ways:
    """Finds and remembers the ways to origins. One event loop."""

    def __init__(self, guard: Guard, clock: Clock, connect_timeout: float, authorities: Sequence[bytes] = ()) -> None:
        self._guard = guard
        self._clock = clock
        self._connect_timeout = connect_timeout
        self._authorities = authorities
        self._shared = self._builder().build()
        self._named: OrderedDict[tuple[str, str, int], Client] = OrderedDict()
        self._judged: dict[Origin, Judged] = {}
        self._asking: dict[Origin, asyncio.Task[Judged]] = {}

    async def to(self, origin: Origin) -> Judged:
        """The judged ways to an origin. Raises Blocked or Unresolved. Concurrent callers share one lookup."""
        known = self._judged.get(origin)
        if known is not None and self._clock.monotonic() < known.until:
            return known
        asking = self._asking.get(origin)
        if asking is None:
            asking = self._asking[origin] = asyncio.create_task(self._judge(origin))
            asking.add_done_callback(lambda _: self._asking.pop(origin, None))
        return await asyncio.shield(asking)

    def prefer(self, origin: Origin, way: Way) -> None:
        """This way worked where an earlier one did not; it comes first from now on."""
        known = self._judged.get(origin)
        if known is not None and way in known.ways:
            self._judged[origin] = known._replace(ways=[way, *(other for other in known.ways if other is not way)])

    async def close(self) -> None:
        await self._shared.close()
        for client in self._named.values():
            await client.close()

    async def _judge(self, origin: Origin) -> Judged:
        self._forget_stale()
        addresses = await self._guard.addresses_of(origin.host, origin.port)
        judged = Judged([self._way(origin, address) for address in addresses[:WAYS]], self._clock.monotonic() + JUDGED_FOR)
        self._judged[origin] = judged
        return judged

    def _way(self, origin: Origin, address: str) -> Way:
        if origin.host.strip("[]") == address:
            return Way(self._shared, None, None)
        if origin.scheme == "http":
            default = origin.port == 80
            return Way(self._shared, address, origin.host if default else f"{origin.host}:{origin.port}")
        return Way(self._client_of(origin, address), None, None)

    def _client_of(self, origin: Origin, address: str) -> Client:
        key = (origin.host, address, origin.port)
        client = self._named.get(key)
        if client is None:
            client = self._builder().resolve(origin.host, address, origin.port).build()
            self._named[key] = client
            while len(self._named) > NAMED_CLIENTS:
                # Requests on their way keep their client alive; the pool goes with the last of them.
                self._named.popitem(last=False)
        self._named.move_to_end(key)
        return client

    def _forget_stale(self) -> None:
        now = self._clock.monotonic()
        for origin in [origin for origin, judged in self._judged.items() if judged.until <= now]:
            del self._judged[origin]

    def _builder(self) -> ClientBuilder:
        """No redirects, no proxies, no decompression: what the endpoint answers is bounded by what it sends."""
        builder = ClientBuilder()
        for certificate in self._authorities:
            builder = builder.add_root_certificate_pem(certificate)
        return (
            builder.no_proxy()
            .follow_redirects(False)
            .referer(False)
            .gzip(False)
            .brotli(False)
            .zstd(False)
            .deflate(False)
            .user_agent("tidings")
            .http1_lower_case_headers()
            .connect_timeout(timedelta(seconds=self._connect_timeout))
            .pool_idle_timeout(timedelta(seconds=30))
            .pool_max_idle_per_host(100)
        )
