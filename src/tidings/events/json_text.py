"""JSON text that may enter the hub: valid, UTF-8, no repeated member names, not too deep (CEJ-07).

The check for repeated names rests on counting: decoding drops a repeated member, so writing the value again gives fewer double
quotes than the text had. Nothing else changes their number, except the escape for a quote itself, which is looked for.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from tidings.errors import Malformed, shortened

MAX_DEPTH = 128
"""How deep objects and lists may nest in a payload."""

# `float` gives infinity for 1e400 where msgspec's own reading refuses it; the text is kept anyway.
_decode = msgspec.json.Decoder(float_hook=float).decode
_decode_usual = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
_BYTE = re.compile(r"(.*) \(byte (\d+)\)", re.DOTALL)
_NEWLINE = b"\n"


def parse(text: bytes, depth: int = MAX_DEPTH) -> Any:
    """The value of the text; Malformed says what is wrong with it and where."""
    try:
        value = _decode(text)
        repeated = _may_repeat_names(text, value)
    except RecursionError:
        raise _too_deep(depth) from None
    except UnicodeDecodeError:
        raise Malformed("the JSON text is not valid UTF-8", at=_place_of_bad_utf8(text)) from None
    except msgspec.DecodeError as error:
        raise _unreadable(text, error) from None
    if may_be_too_deep(text, depth) and depth_of(value, depth + 1) > depth:
        raise _too_deep(depth)
    if repeated:
        _refuse_repeated_names(text)
    return value


def at_once(text: bytes) -> Any:
    """The value of a text that is plainly sound but perhaps too deep; None when it needs the closer look of `parse`."""
    try:
        value = _decode_usual(text)
        return None if _may_repeat_names(text, value) else value
    except (RecursionError, UnicodeDecodeError, msgspec.DecodeError):
        return None


def is_sound(text: bytes) -> bool:
    """Whether the text may stand as a JSON value in a structured event."""
    try:
        parse(text)
    except Malformed:
        return False
    return True


def _unreadable(text: bytes, error: Exception) -> Malformed:
    if not text.strip():
        return Malformed("the JSON text is empty", expected="one JSON value")
    if text.startswith(b"\xef\xbb\xbf"):
        return Malformed("the JSON text begins with a byte order mark", expected="UTF-8 without one")
    return unreadable(text, error)


def unreadable(text: bytes, error: Exception) -> Malformed:
    """What the reader of JSON says, in words and with its place."""
    told = str(error).removeprefix("JSON is malformed: ")
    if "out of range" in told:
        return Malformed("the JSON text holds a number that is too large", expected="fewer digits, or a text")
    if told.startswith("Input data was truncated"):
        return Malformed("the JSON text ends too early", at=_line_of(text, len(text)))
    found = _BYTE.fullmatch(told)
    if found is None:
        return Malformed(f"this cannot be read as JSON: {told}")
    return Malformed(f"this cannot be read as JSON: {found[1]}", at=_line_of(text, int(found[2])))


def kind_of(value: object) -> str:
    """What a JSON value is, in a word for people."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
    return "an object"


def _line_of(text: bytes, at: int) -> str:
    before = text[:at]
    line = before.rpartition(b"\n")[2]
    return f"line {before.count(_NEWLINE) + 1}, column {len(line.decode('utf-8', 'replace')) + 1}"


def _place_of_bad_utf8(text: bytes) -> str:
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return f"byte {error.start}"
    return ""


def _too_deep(depth: int) -> Malformed:
    return Malformed("the JSON text nests too deeply", expected=f"at most {depth} levels")


def _may_repeat_names(text: bytes, value: Any) -> bool:
    return text.count(b'"') != _encode(value).count(b'"') or (b"\\" in text and b"\\u0022" in text)


def may_be_too_deep(text: bytes, depth: int = MAX_DEPTH) -> bool:
    """Whether there are brackets enough for nesting deeper."""
    return len(text) > 2 * depth and text.count(b"{") + text.count(b"[") > depth


def depth_of(value: Any, most: int = MAX_DEPTH) -> int:
    """How deep objects and lists nest in the value (a number is 0 deep); counts no further than `most`."""
    level: list[Any] = [[value]]
    for depth in range(most):
        level = [child for parent in level for child in _children(parent) if isinstance(child, (dict, list))]
        if not level:
            return depth
    return most


def _children(parent: Any) -> Any:
    return parent.values() if isinstance(parent, dict) else parent


def _refuse_repeated_names(text: bytes) -> None:
    json.loads(text, object_pairs_hook=_without_repeats)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    seen: set[str] = set()
    name = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
    raise Malformed(f"the member {shortened(name)} appears twice in one object", expected="each name once")
