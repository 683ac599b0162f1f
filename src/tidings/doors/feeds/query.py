"""The parameters of a feed request, read in the order in which they are judged.

Unknown ones are ignored (FEED-21), unless they look like a known one with a slip of the pen.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl

from tidings.delivery.feeds.lines import Types
from tidings.delivery.feeds.pages import PageRequest
from tidings.doors.feeds.refusals import refused
from tidings.doors.requests.query_parameters import meant_by

PAGE, LARGEST_PAGE = 100, 10_000
LONGEST_WAIT = 60
LARGEST = (1 << 63) - 1
MOST_DIGITS = 1000
"""What is longer is not taken for a number: reading it would take longer and longer."""

KNOWN = (
    *("n", "cursor", "token", "partition", "pagesizehint", "wait", "event-types", "skip-event-types", "headers"),
    *("cursorset", "store_cursor", "resume", "payload"),
)

_CURSOR_N = re.compile(r"cursor(0|[1-9]\d{0,5})", re.ASCII)
_LIKE_CURSOR_N = re.compile(r"cursor\d+", re.ASCII)
_NUMBERED = re.compile(r"cursor[^a-zA-Z]+")
_NUMBER = re.compile(r"0|[1-9]\d*", re.ASCII)
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)


class Query:
    """What stands behind the `?`. A raw `;` is part of its value. Raises Refused for what is a known one misspelled."""

    def __init__(self, raw: bytes) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in parse_qsl(raw.decode("utf-8", "replace"), keep_blank_values=True, separator="&"):
            self._values.setdefault(name, []).append(value)
        for name in self._values:
            if name not in KNOWN and not _NUMBERED.fullmatch(name) and (meant := meant_by(name, KNOWN)):
                raise refused("parameter-unknown", f"there is no parameter {name[:100]}; did you mean {meant}?")

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def one(self, name: str) -> str | None:
        """The value, None when there is none. Raises Refused when there are two."""
        values = self._values.get(name)
        if values is None:
            return None
        if len(values) > 1:
            raise refused("parameter-repeated", f"{name} is given {len(values)} times; once is enough")
        return values[0]

    def cursors(self) -> dict[int, str]:
        """Every `cursorN` by N, those without a value left out. `cursor00` is none: it is ignored like any unknown word."""
        found = {int(match[1]): self.one(name) for name in self._values if (match := _CURSOR_N.fullmatch(name))}
        return {number: value for number, value in found.items() if value}

    @property
    def means_v1(self) -> bool:
        """Whether there is anything that only a reader of v1 says."""
        return "resume" in self._values or any(map(_LIKE_CURSOR_N.fullmatch, self._values))


def integer(text: str) -> int | None:
    """A whole number, however large."""
    return int(text) if len(text) <= MOST_DIGITS and _INTEGER.fullmatch(text) else None


def offset_in(cursor: str) -> int:
    """The position a cursor stands for: decimal, without leading zeros. Raises Refused."""
    if len(cursor) <= 19 and _NUMBER.fullmatch(cursor) and int(cursor) <= LARGEST:
        return int(cursor)
    shown = cursor if len(cursor) <= 40 else f"{cursor[:40]}…"
    raise refused("cursor-malformed", f"{shown!r} is no cursor; use one that the feed gave, _first or _last")


def page_size(query: Query) -> int:
    """`pagesizehint`; 0 and none at all mean the default (FEED-17). Raises Refused."""
    text = query.one("pagesizehint")
    if text is None:
        return PAGE
    size = integer(text)
    if size is None or size < 0:
        raise refused("pagesize-invalid", f"{text[:40]!r} is no page size; expected a whole number, 0 for the default")
    return min(size or PAGE, LARGEST_PAGE)


def seconds_to_wait(query: Query) -> int:
    """`wait` in seconds, larger ones cut (FEED-40). Raises Refused."""
    text = query.one("wait")
    if text is None:
        return 0
    seconds = integer(text)
    if seconds is None or seconds < 0:
        raise refused("wait-invalid", f"{text[:40]!r} is no time to wait; expected whole seconds")
    return min(seconds, LONGEST_WAIT)


def types_of(query: Query) -> Types | None:
    """`event-types` or `skip-event-types`, split on `;` (FAPI-13). Raises Refused."""
    wanted, unwanted = query.one("event-types"), query.one("skip-event-types")
    if wanted is not None and unwanted is not None:
        raise refused("types-conflict", "event-types and skip-event-types exclude each other")
    listed = unwanted if wanted is None else wanted
    if listed is None:
        return None
    names = frozenset(name.strip().casefold() for name in listed.split(";") if name.strip())
    return Types(names, wanted is not None)


def headers_of(query: Query) -> frozenset[str]:
    """`headers`: names in lower case, split on commas (ZEH-10)."""
    return frozenset(name.strip().lower() for name in (query.one("headers") or "").split(",") if name.strip())


def wants_bytes(query: Query) -> bool:
    """`payload`: whether Avro payloads come as the bytes that are stored, not as JSON. Raises Refused."""
    form = query.one("payload") or "json"
    if form not in ("json", "bytes"):
        raise refused("payload-invalid", f"{form[:40]!r} is no form of payloads; expected json or bytes")
    return form == "bytes"


@dataclass(frozen=True, slots=True)
class Keeping:
    """What is to be kept of the cursors: under which name, and whether to read at all (`only`)."""

    name: str
    only: bool


def keeping_of(query: Query) -> Keeping | None:
    """`cursorset` and `store_cursor` (FEED-30, FEED-36, FEED-37). Raises Refused."""
    name, store = query.one("cursorset"), query.one("store_cursor")
    if store is not None and store not in ("0", "1"):
        raise refused("cursorset-invalid", f"store_cursor is 0 or 1, not {store[:40]!r}")
    if name is None:
        if store is not None:
            raise refused("cursorset-invalid", "store_cursor needs cursorset, the name to store under")
        return None
    if not 1 <= len(name) <= 50 or not (name.isascii() and name.isprintable()):
        raise refused("cursorset-invalid", "the name of a cursor set has 1 to 50 printable ASCII characters")
    return Keeping(name, store == "1" and _asks_for_none(query))


def _asks_for_none(query: Query) -> bool:
    text = query.one("pagesizehint")
    return text is not None and integer(text) == 0


def resumed(query: Query, given: Mapping[int, str] | str | None) -> Sequence[str] | None:
    """The partitions that `resume` lists, as written; None when nothing is to be resumed (FEED-33). Raises Refused."""
    text = query.one("resume")
    if text is None:
        return None
    if "cursorset" not in query:
        raise refused("resume-invalid", "resume needs cursorset, the name that cursors were stored under")
    if given:
        raise refused("resume-invalid", "resume takes the stored cursors; leave other cursors out")
    return text.split(",")


def wish_of(query: Query) -> PageRequest:
    """How much to read, and of which types. Raises Refused."""
    return PageRequest(page_size(query), types_of(query))
