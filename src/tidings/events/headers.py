"""The headers of a request that carries an event: what belongs to the event, what travels beside it, and how values are written."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from typing import TypeAlias
from urllib.parse import quote

import msgspec

from tidings.errors import Malformed
from tidings.events.model import Attribute, text_of

RawHeaders: TypeAlias = Sequence[tuple[bytes, bytes]]
"""Headers as an ASGI server gives them."""

PREFIX = "ce-"

_QUOTED = re.compile(rb'"((?:[^"\\]|\\.)*+)"', re.DOTALL)
_ESCAPED = re.compile(rb"\\(.)", re.DOTALL)
_PERCENT = re.compile(rb"%([0-9A-Fa-f]{2})")
_VISIBLE = re.compile(rb"[\x20-\x7e\t]*+")
_PLAIN_VALUE = re.compile(r"[!#$&-~]*+")
_SAFE = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"%')


class SortedHeaders(msgspec.Struct, frozen=True, gc=False):
    """The headers of one request, sorted by what they are for. `context` are the ce- headers with names in lower case."""

    content_type: str
    context: Sequence[tuple[str, bytes]]
    context_bytes: int
    transport: dict[str, str]


def sorted_out(headers: RawHeaders, transport_names: Set[bytes]) -> SortedHeaders:
    """One pass over the headers. A repeated Content-Type is Malformed: nobody could say which one holds."""
    content_type: bytes | None = None
    context: list[tuple[str, bytes]] = []
    size = 0
    transport: dict[str, str] = {}
    for given, value in headers:
        name = given.lower()
        if name[:3] == b"ce-":
            context.append((name[3:].decode("latin-1"), value))
            size += len(name) + len(value)
        elif name == b"content-type":
            if content_type is not None and content_type != value:
                raise Malformed("the request has two different content types", at="content-type")
            content_type = value
        elif name in transport_names:
            _keep(transport, name, value)
    return SortedHeaders(content_type.decode("latin-1").strip() if content_type else "", context, size, transport)


def has_context(headers: RawHeaders) -> bool:
    """Whether any ce- header is there."""
    return b"ce-" in [name[:3].lower() for name, _ in headers]


def content_type_of(headers: RawHeaders) -> str:
    """The first Content-Type; empty when there is none."""
    for name, value in headers:
        if name.lower() == b"content-type":
            return value.decode("latin-1").strip()
    return ""


def _keep(transport: dict[str, str], name: bytes, value: bytes) -> None:
    # It stands beside the event, so a value that no header may carry onward is left behind instead of refusing the event.
    if _VISIBLE.fullmatch(value) is None or _VISIBLE.fullmatch(name) is None:
        return
    key, text = name.decode("ascii"), value.decode("ascii").strip()
    transport[key] = f"{transport[key]},{text}" if key in transport else text


def decoded_value(value: bytes) -> str:
    """The text of a ce- header (CEH-05, CEH-08). Raises UnicodeDecodeError when its bytes are not UTF-8."""
    value = value.strip(b" \t")
    if value[:1] == b'"':
        quoted = _QUOTED.fullmatch(value)
        if quoted is not None:
            value = _ESCAPED.sub(rb"\1", quoted[1])
    if b"%" in value:
        value = _PERCENT.sub(_byte_of, value)
    return value.decode()


def _byte_of(found: re.Match[bytes]) -> bytes:
    return bytes.fromhex(found[1].decode())


def encoded_value(value: Attribute) -> str:
    """The value as a header carries it: space, quote, percent and all but visible ASCII as %XX (CEH-04)."""
    text = value if isinstance(value, str) else text_of(value)
    return text if _PLAIN_VALUE.fullmatch(text) else quote(text, safe=_SAFE)
