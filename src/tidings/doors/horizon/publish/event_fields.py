"""The rules for the fields of an event that is published to Horizon (HOR-51 to HOR-54, HOR-58)."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator, Mapping
from typing import Any

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII)
_TYPE = re.compile(r"[a-zA-Z0-9.-]+")
_TIME = re.compile(
    r"(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
    r"T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-][01]\d:[0-5]\d)",
    re.ASCII,
)
_NULL, _BLANK, _TEXT = "must not be null", "must not be blank", "must be a text"


def violations(members: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Every rule that the event breaks, each as field and reason, sorted by field. A missing field breaks two rules."""
    found: list[tuple[str, str]] = []
    for field in ("id", "source", "specversion", "type", "time", "datacontenttype"):
        found += [(field, reason) for reason in _reasons(field, members.get(field))]
    if members.get("data") is None and _is_blank(members.get("dataref")):
        found.append(("data", "or dataref must be given"))
    if not isinstance(members.get("dataref"), (str, type(None))):
        found.append(("dataref", _TEXT))
    return sorted(found, key=lambda one: one[0])


def problem_of(field: str, value: object) -> str | None:
    """The first thing that is wrong with the value of this field; None when nothing is."""
    return next(_reasons(field, value), None)


def is_sound(members: Mapping[str, Any]) -> bool:
    """Whether nothing is wrong: the quick look, for the hot path. Agrees with `violations`."""
    id, source, version, type = members.get("id"), members.get("source"), members.get("specversion"), members.get("type")
    if not (isinstance(id, str) and isinstance(source, str) and isinstance(version, str) and isinstance(type, str)):
        return False
    if not (_ID.fullmatch(id) and _TYPE.fullmatch(type) and source.strip() and version.strip()):
        return False
    time, kind, dataref = members.get("time"), members.get("datacontenttype"), members.get("dataref")
    if time is not None and not (isinstance(time, str) and is_time(time)):
        return False
    if kind is not None and not isinstance(kind, str):
        return False
    if dataref is not None and not isinstance(dataref, str):
        return False
    return members.get("data") is not None or not _is_blank(dataref)


def _reasons(field: str, value: object) -> Iterator[str]:
    if value is None:
        if field not in ("time", "datacontenttype"):
            yield _NULL
            yield _BLANK
        return
    if not isinstance(value, str):
        yield _TEXT
        return
    if field in ("id", "type", "source", "specversion") and not value.strip():
        yield _BLANK
        if field == "specversion" and not value:
            yield "must not be empty"
    match field:
        case "id" if not _ID.fullmatch(value):
            yield "must be a UUID of version 1 to 8"
        case "type" if not _TYPE.fullmatch(value):
            yield "must have only letters, digits, dots and dashes"
        case "time" if not is_time(value):
            yield "must be a time such as 2024-05-28T11:21:25.997Z"


def is_time(value: str) -> bool:
    """Whether this is a time of a real day, with seconds and an offset (HOR-53)."""
    found = _TIME.fullmatch(value)
    if found is None:
        return False
    year, month, day = map(int, found.groups())
    return year > 0 and day <= calendar.monthrange(year, month)[1]


def _is_blank(value: object) -> bool:
    return not isinstance(value, str) or not value.strip()
