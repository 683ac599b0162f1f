"""The rules for single fields of an event that is published to Horizon (HOR-51 to HOR-53)."""

from __future__ import annotations

import calendar
import re

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.IGNORECASE)
_TYPE = re.compile(r"[a-zA-Z0-9.-]+")
_TIME = re.compile(
    r"(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
    r"T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-][01]\d:[0-5]\d)",
    re.ASCII,
)


def problem_of(field: str, value: object) -> str | None:
    """What is wrong with the value of this field; None when nothing is."""
    if value is None and field in ("time", "datacontenttype"):
        return None
    if not isinstance(value, str):
        return "must be a text"
    match field:
        case "id":
            return None if _ID.fullmatch(value) else "must be a UUID of version 1 to 8"
        case "type":
            return None if _TYPE.fullmatch(value) else "must not be blank; only letters, digits, dots and dashes"
        case "source" | "specversion":
            return None if value.strip() else "must not be blank"
        case "time":
            return None if _is_time(value) else "must be a time such as 2024-05-28T11:21:25.997Z"
    return None


def _is_time(value: str) -> bool:
    found = _TIME.fullmatch(value)
    if found is None:
        return False
    year, month, day = map(int, found.groups())
    return year > 0 and day <= calendar.monthrange(year, month)[1]
