"""Open access and browsers: a page from elsewhere must not reach a hub that trusts everyone on this machine.

A browser sends simple POSTs to any address, and a name that is made to point to 127.0.0.1 makes any page look local. So with
open access the Host must be this machine, and the Origin, where there is one, a page of this machine. An image, a frame or a
link asks without an Origin, and some GETs change something (streams, cursor sets): there the browser says `Sec-Fetch-Site`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from tidings.access.settings_checks import is_loopback
from tidings.errors import Forbidden


def refuse_strangers(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Raise Forbidden for a request that a page from elsewhere made, or that was sent to another name. Names in lower case."""
    crossing = local = False
    for name, value in headers:
        if name == b"host" and not _is_here(value):
            raise Forbidden(
                "with open access the hub is only to be asked as localhost",
                at="host",
                found=value.decode("latin-1"),
                expected='localhost or 127.0.0.1; for other names set access.mode = "tokens"',
            )
        if name == b"origin":
            if not _is_here(value.partition(b"://")[2]):
                raise Forbidden("with open access pages from elsewhere may not ask", at="origin", found=value.decode("latin-1"))
            local = True
        if name == b"sec-fetch-site":
            crossing = value.strip().lower() == b"cross-site"
    # A page of localhost that asks 127.0.0.1 crosses sites too, and says by its Origin that it is of this machine.
    if crossing and not local:
        raise Forbidden(
            "with open access pages from elsewhere may neither ask nor link here",
            at="sec-fetch-site",
            found="cross-site",
            expected="the address typed into the browser",
        )


@lru_cache(maxsize=1000)
def _is_here(place: bytes) -> bool:
    """Whether `name`, `name:port` or `[address]:port` is this machine alone."""
    text = place.decode("latin-1").strip()
    name = text.partition("]")[0] if text.startswith("[") else text.partition(":")[0]
    return is_loopback(name.removeprefix("[").rstrip("."))
