"""The rules for context attributes (CE-01 to CE-04): what is refused, with the attribute, a code and a sentence.

Nothing is added or re-formatted (CE-08): a value passes as it came or the event is refused. Every publish runs through here, so
each rule tries the usual shape of a value first.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from tidings.errors import EventFault, InvalidEvent, shortened
from tidings.events.model import Event
from tidings.events.uris import is_uri, is_uri_reference

Problem: TypeAlias = tuple[str, str]
"""A code for programs and a sentence for people."""

NAME_LENGTH = 128
SPECVERSION = "1.0"
REQUIRED = ("id", "source", "specversion", "type")

_SHORT = 128
"""Characters of a value that may be remembered: what is kept between requests stays small."""

_INT32 = range(-(2**31), 2**31)
_NAME = re.compile(r"[a-z0-9]+")
_NONCHARACTERS = "".join(f"{chr(plane << 16 | 0xFFFE)}{chr(plane << 16 | 0xFFFF)}" for plane in range(17))
_FORBIDDEN = re.compile(f"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef{_NONCHARACTERS}]")
_TIME = re.compile(
    r"(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
    r"[Tt](?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)",
    re.ASCII,
)
_TOKEN = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]++"
_QUOTED = r'"(?:[^"\\]|\\.)*+"'
_MEDIA_TYPE = re.compile(rf"{_TOKEN}/{_TOKEN}(?:[ \t]*+;[ \t]*+(?:{_TOKEN}=(?:{_TOKEN}|{_QUOTED}))?)*+")
_USUAL_MEDIA_TYPES = frozenset({"application/json", "application/json; charset=utf-8", "text/plain", "application/xml"})


def checked(
    attributes: Mapping[str, Any],
    data: bytes | None = None,
    *,
    base64: bool = False,
    transport: Mapping[str, str] | None = None,
    index: int = 0,
) -> Event:
    """The event of these parts, or InvalidEvent with every fault found. `index` is its place in the request."""
    if problem_free(attributes):
        return Event(attributes, data, base64, transport or {})
    raise InvalidEvent(list(faults_of(attributes, index)))


def problem_free(attributes: Mapping[str, Any]) -> bool:
    """Whether the attributes obey every rule; the short way for events that do."""
    for name, value in attributes.items():
        rule = _RULES.get(name)
        if rule is None:
            if _extension_problem(name, value) is not None:
                return False
        elif rule(value) is not None:
            return False
    return "id" in attributes and "source" in attributes and "specversion" in attributes and "type" in attributes


def faults_of(attributes: Mapping[str, Any], index: int = 0) -> Iterator[EventFault]:
    """What is wrong with the attributes, in their order; what is missing comes last."""
    for name, value in attributes.items():
        rule = _RULES.get(name)
        problem = _extension_problem(name, value) if rule is None else rule(value)
        if problem is not None:
            yield EventFault(index, shortened_name(name), *problem)
    for name in REQUIRED:
        if name not in attributes:
            yield EventFault(index, name, "missing", f"the attribute {name} is required")


def name_problem(name: str) -> Problem | None:
    """Why `name` cannot be the name of an attribute (CE-02)."""
    if _NAME.fullmatch(name) is None:
        return "bad-name", f"{shortened(name)} is no attribute name: only a-z and 0-9 are allowed"
    if name == "data":
        return "bad-name", "no attribute may be called data"
    if len(name) > NAME_LENGTH:
        return "bad-name", f"an attribute name of {len(name)} characters is too long: at most {NAME_LENGTH}"
    return None


def rule_of(name: str) -> Callable[[object], Problem | None]:
    """What says why an attribute that CloudEvents define cannot have a value."""
    return _RULES[name]


def shortened_name(name: str) -> str:
    """A name as it may stand in a fault, however long it is."""
    return name if len(name) <= NAME_LENGTH else f"{name[:NAME_LENGTH]}…"


def _extension_problem(name: str, value: object) -> Problem | None:
    return name_problem(name) or _value_problem(value)


def _value_problem(value: object) -> Problem | None:
    """An attribute is a Boolean, an int32 or a String (CE-04)."""
    if isinstance(value, str):
        return None if value.isascii() and value.isprintable() else _character_problem(value)
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return None if value in _INT32 else ("out-of-range", f"{shortened(value)} does not fit a 32-bit integer")
    return "bad-type", f"{_kind_of(value)} cannot be an attribute: only text, whole numbers and booleans"


def _character_problem(value: str) -> Problem | None:
    found = _FORBIDDEN.search(value)
    if found is None:
        return None
    return "bad-character", f"the character U+{ord(found[0]):04X} at place {found.start()} is not allowed in an attribute"


def _kind_of(value: object) -> str:
    match value:
        case float():
            return "a number with a fraction or exponent"
        case dict():
            return "an object"
        case list() | tuple():
            return "a list"
        case None:
            return "null"
        case _:
            return f"a value of type {type(value).__name__}"


def text_problem(value: object) -> Problem | None:
    """Why a value is not a text of at least one character that an attribute may have."""
    if not isinstance(value, str):
        return "bad-type", f"expected text, found {_article(value)}"
    if value.isascii() and value.isprintable() and value:
        return None
    return _character_problem(value) if value else ("empty", "the value may not be empty")


def _article(value: object) -> str:
    match value:
        case bool():
            return "a boolean"
        case int():
            return "a whole number"
        case _:
            return _kind_of(value)


def _specversion(value: object) -> Problem | None:
    if value == SPECVERSION:
        return None
    return text_problem(value) or ("bad-version", f"specversion {shortened(value)} is not supported; expected {SPECVERSION!r}")


def _source(value: object) -> Problem | None:
    if isinstance(value, str) and len(value) <= _SHORT and _is_fit_source(value):
        return None
    return text_problem(value) or _unless(is_uri_reference, value, "a URI-reference (RFC 3986)")


def _dataschema(value: object) -> Problem | None:
    return text_problem(value) or _unless(is_uri, value, "an absolute URI (RFC 3986)")


@lru_cache(maxsize=1_024)
def _is_fit_source(value: str) -> bool:
    """A publisher says the same few sources again and again."""
    return text_problem(value) is None and is_uri_reference(value)


def _datacontenttype(value: object) -> Problem | None:
    if isinstance(value, str) and value in _USUAL_MEDIA_TYPES:
        return None
    return text_problem(value) or _unless(_is_media_type, value, "a media type such as application/json (RFC 2046)")


def _time(value: object) -> Problem | None:
    return text_problem(value) or _unless(_is_time, value, "a time such as 2018-04-05T03:56:24Z (RFC 3339)")


def _unless(test: Callable[[str], bool], value: Any, expected: str) -> Problem | None:
    return None if test(value) else ("bad-format", f"{shortened(value)} is not {expected}")


def _is_media_type(value: str) -> bool:
    return _MEDIA_TYPE.fullmatch(value) is not None


def _is_time(value: str) -> bool:
    found = _TIME.fullmatch(value)
    if found is None:
        return False
    day = int(found[3])
    return day <= 28 or day <= calendar.monthrange(int(found[1]) or 4, int(found[2]))[1]


_RULES: Mapping[str, Callable[[object], Problem | None]] = {
    "specversion": _specversion,
    "id": text_problem,
    "source": _source,
    "type": text_problem,
    "time": _time,
    "subject": text_problem,
    "datacontenttype": _datacontenttype,
    "dataschema": _dataschema,
}
