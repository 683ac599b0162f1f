"""The headers of a publish request in one pass: what refuses it, its trace, and what goes on to subscribers (HOR-48, HOR-56).

All go on but those named in the settings and those about this one request. What was found out about a header is remembered:
clients send the same ones all the time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from http import HTTPStatus
from random import getrandbits
from typing import NamedTuple

from tidings.doors.horizon.refusals import Refusal, plain_refusal
from tidings.errors import Misconfigured
from tidings.events import content_types
from tidings.events.headers import RawHeaders

ABOUT_THIS_REQUEST = (
    "connection",
    "content-encoding",
    "content-type",
    "cookie",
    "expect",
    "forwarded",
    "if-.*",
    "keep-alive",
    "proxy-.*",
    "range",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-api-key",
)
"""Hop-by-hop headers, how the body is laid out, conditions, and what proves who sends: a delivery has its own."""

TRACE = "x-b3-traceid"
_TRACE = TRACE.encode()
KNOWN = 5000

_VISIBLE = re.compile(rb"[\x20-\x7e\t]*")
_TAKEN = ("application/json", "application/*", "*/*", "application/problem+json")
_NO_JSON = plain_refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "the content type must be application/json")
_NO_ANSWER = plain_refusal(HTTPStatus.NOT_ACCEPTABLE, "answers are JSON")


class Header(NamedTuple):
    """One header, judged. `name` empty: it is not kept."""

    name: str
    value: str
    refusal: Refusal | None = None
    is_json: bool = False


class Told(NamedTuple):
    """What the headers of one request say."""

    kept: dict[str, str]
    refusal: Refusal | None


class KeptHeaders:
    """Reads the headers of requests. Belongs to one event loop."""

    def __init__(self, dropped: Sequence[str]) -> None:
        try:
            self._dropped = re.compile("|".join(f"(?:{one})" for one in (*dropped, *ABOUT_THIS_REQUEST)), re.IGNORECASE)
        except re.error as error:
            raise Misconfigured(f"this is no regular expression: {error}", at="horizon.dropped_headers") from error
        self._known: dict[tuple[bytes, bytes], Header] = {}

    def of(self, headers: RawHeaders) -> Told:
        """The kept headers, names in lower case, a repeated one with each of its values once; and why the request is refused."""
        kept: dict[str, str] = {}
        refusal: Refusal | None = None
        is_json = False
        known = self._known
        for header in headers:
            name, value, refused, json = known.get(header) or self._judged(header)
            is_json = is_json or json
            refusal = refusal or refused
            if not name:
                continue
            if name not in kept:
                kept[name] = value
            elif value not in kept[name].split(", "):
                kept[name] = f"{kept[name]}, {value}"
        return Told(kept, refusal if is_json else _NO_JSON)

    def _judged(self, header: tuple[bytes, bytes]) -> Header:
        name, text = header[0].lower().decode("latin-1"), header[1].decode("latin-1").strip()
        visible = _VISIBLE.fullmatch(header[1]) and _VISIBLE.fullmatch(header[0])
        kept = bool(visible) and not self._dropped.fullmatch(name)
        is_json = name == "content-type" and content_types.essence_of(text) == content_types.JSON
        refusal = _NO_ANSWER if name == "accept" and not _takes_json(text) else None
        judged = Header(name if kept else "", text if kept else "", refusal, is_json)
        if len(self._known) >= KNOWN:
            self._known.clear()
        self._known[header] = judged
        return judged


def trace_of(headers: RawHeaders) -> bytes:
    """The trace that a request continues, or the id of a new one (HOR-10)."""
    told = next((value.strip() for name, value in headers if name.lower() == _TRACE), b"")
    return told if told and _VISIBLE.fullmatch(told) else b"%016x" % getrandbits(64)


def _takes_json(accept: str) -> bool:
    kinds = [part.partition(";")[0].strip().lower() for part in accept.split(",")]
    return any(kind in _TAKEN for kind in kinds)
