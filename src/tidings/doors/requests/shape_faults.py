"""What is wrong with the shape of a request, in our words: what was expected, never how the hub looked at it.

Two readers find it: FastAPI (`faults_of`), and msgspec where a door reads bodies itself (`decoded`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from tidings.errors import EventFault, InvalidDocument
from tidings.events import json_text

T = TypeVar("T")

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

_KINDS = {
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_FOUND = re.compile(r"Expected `([^`]*)`(?:, got `([^`]*)`)?")
_MISSING = re.compile(r"Object missing required field `([^`]*)`")
_ENUM = re.compile(r"Invalid enum value (.*)", re.DOTALL)
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


def decoded(body: bytes, kind: type[T]) -> T:
    """The JSON body as this kind of value. Raises Malformed or InvalidDocument."""
    json_text.parse(body)
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise InvalidDocument([_shape_fault(str(error), kind)]) from error


def _shape_fault(told: str, kind: Any) -> EventFault:
    reason, _, place = told.partition(" - at `$")
    path = place.rstrip("`").lstrip(".")
    if missing := _MISSING.fullmatch(reason):
        return EventFault(0, ".".join(filter(None, (path, missing[1]))), "missing", "is missing")
    if enum := _ENUM.fullmatch(reason):
        return EventFault(0, path, "invalid", f"must be {_listed(_choices(kind, path))}, found {enum[1]}")
    if expected := _FOUND.fullmatch(reason):
        found = f", found {_KINDS.get(expected[2], expected[2])}" if expected[2] else ""
        return EventFault(0, path, "invalid", f"must be {_kinds(expected[1])}{found}")
    return EventFault(0, path, "invalid", reason)


def _kinds(written: str) -> str:
    words = [_KINDS.get(one, one) for one in written.split(" | ") if one != "null"]
    return f"{' or '.join(words)}{', or left out' if 'null' in written.split(' | ') else ''}"


def _listed(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else "".join(words) or "one of the words that are known"


def _choices(kind: Any, path: str) -> list[str]:
    """The words that may stand at this path."""
    found: Any = inspect.type_info(kind)
    for step in re.findall(r"[^.\[\]]+|\[[^\]]*\]", path):
        found = _inside(found, step)
    match found:
        case inspect.LiteralType():
            return [str(one) for one in found.values]
        case inspect.EnumType():
            return [str(one.value) for one in found.cls]
    return []


def _inside(found: Any, step: str) -> Any:
    match found:
        case inspect.StructType():
            return next((field.type for field in found.fields if field.encode_name == step), None)
        case inspect.ListType():
            return found.item_type
        case inspect.DictType():
            return found.value_type
    return None
