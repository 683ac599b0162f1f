"""URLs of requests, read as browsers read them (WHATWG): number forms, IDNA and percent-encoding are settled here (SSRF-06).

What this module says is the host is what the guard judges, what is dialed and what the Host header names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ada_url import URL, URLSearchParams

USUAL_PORTS = {"http": 80, "https": 443}


class EndpointOrigin(NamedTuple):
    """Where a request goes, before any lookup. An IPv6 address is in brackets."""

    scheme: str
    host: str
    port: int

    @property
    def host_header(self) -> str:
        return self.host if USUAL_PORTS.get(self.scheme) == self.port else f"{self.host}:{self.port}"


class RequestUrl(NamedTuple):
    """An http or https URL: user, password and fragment are left out."""

    origin: EndpointOrigin
    path: str
    query: str

    @classmethod
    def parse(cls, text: str) -> RequestUrl:
        """Raises ValueError."""
        url = URL(text)
        scheme, host, port = url.protocol.removesuffix(":"), url.hostname, url.port
        if scheme not in USUAL_PORTS or not host:
            raise ValueError("expected an http or https address")
        # The parser leaves out the usual port. Port 0 is "0", which is a port like any other here.
        origin = EndpointOrigin(scheme, host, int(port) if port else USUAL_PORTS[scheme])
        return cls(origin, url.pathname, url.search.removeprefix("?"))

    @property
    def target(self) -> str:
        """What the first line of a request names."""
        return f"{self.path}?{self.query}" if self.query else self.path

    def with_query(self, pairs: Sequence[tuple[str, str]]) -> RequestUrl:
        """The same URL with more in its query."""
        more = URLSearchParams("")
        for name, value in pairs:
            more.append(name, value)
        return self._replace(query="&".join(part for part in (self.query, str(more)) if part))
