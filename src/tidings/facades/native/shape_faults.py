"""What is wrong with the shape of a body, in our words: what was expected, never how the hub looked at it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tidings.errors import EventFault

_EXPECTED: Mapping[str, str] = {
    "missing": "it is required",
    "string_type": "expected a text",
    "string_unicode": "expected a text of valid Unicode",
    "int_type": "expected a whole number",
    "int_parsing": "expected a whole number",
    "int_parsing_size": "expected a whole number of less than 4,300 digits",
    "int_from_float": "expected a whole number",
    "float_type": "expected a number",
    "float_parsing": "expected a number",
    "finite_number": "expected a finite number",
    "bool_type": "expected true or false",
    "bool_parsing": "expected true or false",
    "list_type": "expected a list",
    "dict_type": "expected an object",
    "model_type": "expected an object",
    "model_attributes_type": "expected an object",
    "datetime_parsing": "expected a time such as 2030-01-31T12:00:00Z",
    "datetime_from_date_parsing": "expected a time such as 2030-01-31T12:00:00Z",
    "literal_error": "expected {expected}",
    "enum": "expected {expected}",
    "union_tag_invalid": "{discriminator} is {tag}; expected one of {expected_tags}",
    "union_tag_not_found": "{discriminator} is missing, which says what this is",
    "greater_than_equal": "expected at least {ge}",
    "greater_than": "expected more than {gt}",
    "less_than_equal": "expected at most {le}",
    "less_than": "expected less than {lt}",
    "too_short": "expected at least {min_length}",
    "too_long": "expected at most {max_length}",
    "string_too_short": "expected at least {min_length} characters",
    "string_too_long": "expected at most {max_length} characters",
    "json_invalid": "the body is not JSON: {error}",
}

_CODES: Mapping[str, str] = {
    "missing": "missing",
    "json_invalid": "malformed",
    **dict.fromkeys(("literal_error", "enum", "union_tag_invalid", "union_tag_not_found"), "unknown-value"),
    **dict.fromkeys((name for name in _EXPECTED if "than" in name or "too_" in name), "out-of-bounds"),
}

_UNQUOTED = str.maketrans("", "", "'`")


def faults_of(found: Sequence[Any]) -> list[EventFault]:
    """The faults that the validation of a request found."""
    return [EventFault(0, _path(one["loc"]), _code(one["type"]), _sentence(one)) for one in found]


def _code(kind: str) -> str:
    """A word for programs. Codes of our own checks stay."""
    return _CODES.get(kind) or ("wrong-type" if kind in _EXPECTED else kind.replace("_", "-"))


def _sentence(fault: Mapping[str, Any]) -> str:
    if fault["type"] == "missing" and tuple(fault["loc"]) == ("body",):
        return "the request needs a body: a JSON object"
    told = _EXPECTED.get(fault["type"])
    if told is None:
        return str(fault["msg"]).removeprefix("Value error, ").replace("Input should be", "expected")
    values = {name: str(value).translate(_UNQUOTED) for name, value in (fault.get("ctx") or {}).items()}
    return told.format_map(values)


def _path(place: Sequence[str | int]) -> str:
    """["body", "topics", 0] as `topics[0]`; "query" and "path" stay, they say where to look."""
    words = place[1:] if place[:1] == ("body",) else place
    return "".join(f"[{word}]" if isinstance(word, int) else f".{word}" for word in words).lstrip(".")
