"""How many connections each client address has open. Counts only; whoever asks decides what to do about it."""

from __future__ import annotations

import ipaddress
from collections import Counter
from functools import lru_cache


class ClientConnections:
    """Open connections by client. `limit` 0: there is none. Belongs to one event loop."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._open: Counter[str] = Counter()

    def opened(self, address: str) -> bool:
        """Count one more; whether the client may have so many."""
        client = client_of(address)
        self._open[client] += 1
        return not self._limit or self._open[client] <= self._limit

    def closed(self, address: str) -> None:
        """Count one less."""
        client = client_of(address)
        self._open[client] -= 1
        if self._open[client] <= 0:
            del self._open[client]


@lru_cache(maxsize=10_000)
def client_of(address: str) -> str:
    """Whom an address belongs to. An IPv6 client has a whole /64 network to itself, and would else have no limit."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, 64), strict=False))
