"""What a push may say: the address of the callback, extra headers, its policy.

Only syntax is judged here. Whether an address may be reached is decided at every attempt, since names change their address.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv6Address
from urllib.parse import urlsplit

from tidings.registry.credentials import is_sealed
from tidings.registry.model import Push
from tidings.registry.rules.faults import Fault
from tidings.registry.rules.policies import policy_faults

URL_CHARACTERS = 2048
HEADERS = 32
HEADER_CHARACTERS = 4096

RESERVED = frozenset(
    (
        "host",
        "connection",
        "content-length",
        "content-type",
        "expect",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    )
)
"""Headers that say how the request itself is laid out."""

RESERVED_BEGINNINGS = ("ce-", "proxy-", "tidings-", "webhook-")
"""Headers that say what an event is, which way it goes, which delivery it is, and who signed it (SUB-16)."""

_VISIBLE = re.compile(r"[\x21-\x7e]+")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\x20-\x7e\t]*")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
NAME_CHARACTERS, LABEL_CHARACTERS = 253, 63
_HOST = re.compile(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+")


def is_reserved(name: str) -> bool:
    """Whether a header is the hub's own: a subscription cannot set it."""
    return name.lower() in RESERVED or name.lower().startswith(RESERVED_BEGINNINGS)


def push_faults(push: Push) -> Iterator[Fault]:
    """Everything wrong with a push."""
    fault = url_fault(push.url)
    if fault:
        yield "delivery.url", fault
    yield from _headers(push.headers)
    yield from policy_faults(push)


def url_fault(url: str) -> str | None:
    """What is wrong with the address of a callback; None when nothing is."""
    if len(url) > URL_CHARACTERS:
        return f"an address has at most {URL_CHARACTERS} characters"
    if not _VISIBLE.fullmatch(url):
        return "an address is visible ASCII without spaces; write anything else percent-encoded"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "this is no http or https address"
    if parts.scheme not in ("http", "https") or not parts.hostname or not _HOST.fullmatch(parts.hostname):
        return "expected an address such as https://shop.example/hook"
    if not _is_host(parts.hostname):
        return f"{parts.hostname[:80]} is neither a host name nor an IP address"
    if port == 0:
        return "port 0 cannot be reached"
    if parts.username is not None or parts.password is not None:
        return "no user or password in an address; use a header"
    return "a fragment (#…) is never sent" if "#" in url else None


def _is_host(host: str) -> bool:
    """Whether something could be found there. As browsers do, a host that ends in a number is read as an IPv4 address."""
    if ":" in host:
        return _is_ipv6(host)
    labels = host.removesuffix(".").split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return _is_ipv4(labels)
    return len(host) <= NAME_CHARACTERS and all(0 < len(label) <= LABEL_CHARACTERS for label in labels)


def _is_ipv6(host: str) -> bool:
    try:
        IPv6Address(host)
    except ValueError:
        return False
    return True


def _is_ipv4(parts: Sequence[str]) -> bool:
    """One to four numbers, decimal, octal or hexadecimal; the last one stands for all bytes that are left."""
    if len(parts) > 4 or not all(_NUMBER.fullmatch(part) for part in parts):
        return False
    try:
        numbers = [_number(part) for part in parts]
    except ValueError:
        return False
    return all(number < 256 for number in numbers[:-1]) and numbers[-1] < 256 ** (5 - len(numbers))


def _number(part: str) -> int:
    if part.startswith("0x"):
        return int(part[2:] or "0", 16)
    return int(part, 8) if part.startswith("0") and len(part) > 1 else int(part)


def _headers(headers: Mapping[str, str]) -> Iterator[Fault]:
    if len(headers) > HEADERS:
        yield "delivery.headers", f"at most {HEADERS} headers"
    if len({name.lower() for name in headers}) < len(headers):
        yield "delivery.headers", "a header is given twice; upper and lower case are the same"
    for name, value in headers.items():
        path = f"delivery.headers.{name[:50]}"
        if not _TOKEN.fullmatch(name):
            yield path, "this is no header name"
        elif is_reserved(name):
            yield path, "this header is the hub's own"
        if not is_sealed(value) and (len(value) > HEADER_CHARACTERS or not _HEADER_VALUE.fullmatch(value)):
            yield path, f"a header value is one line of at most {HEADER_CHARACTERS} ASCII characters"
