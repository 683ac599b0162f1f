"""Reads single values from payload bytes, exactly: numbers are int or Decimal, never rounded through a float.

Each path is read on its own: what is broken elsewhere in a payload does not matter, so that no other filter can change what
this one sees. A payload nested deeper than 500 levels counts as no JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from itertools import accumulate
from typing import Any, Final

import msgspec

from tidings.events import content_types
from tidings.events.model import NO_JSON

MISSING: Final = msgspec.UNSET
"""What a path gives that leads nowhere."""

UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError, ArithmeticError)
"""What decoding a payload may raise."""

_MAX_DEPTH = 500
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_NUMBER = re.compile(rb"\s*(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*")
_HALF_CHARACTER = re.compile(rb"\\u[dD][89a-fA-F]")
_INT_DIGITS = 4000
_BRACKETS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


def is_json(content_type: object, base64: object, form: object = "") -> bool:
    """Whether the payload is meant as JSON. Bytes that came without a type are not, nor what its door does not take for it."""
    if form in NO_JSON:
        return False
    if content_type is MISSING or content_type is None:
        return not base64 or base64 is MISSING
    return content_types.is_json(str(content_type))


def exact(text: str) -> Decimal:
    """A JSON number at its exact value. Beyond ten to the power of 10^18 it is infinite, or zero."""
    try:
        return Decimal(text)
    except InvalidOperation:
        mantissa, _, exponent = text.lower().partition("e")
        if exponent.startswith("-") or not mantissa.strip("-0."):
            return Decimal(0)
        return Decimal("-Infinity" if text.startswith("-") else "Infinity")


def is_shallow(data: bytes) -> bool:
    """Whether the text is nested at most 500 levels deep. Cheap for all but texts full of brackets."""
    if len(data) <= _MAX_DEPTH or data.count(b"[") + data.count(b"{") <= _MAX_DEPTH:
        return True
    levels = accumulate(_BRACKETS.get(sign, 0) for sign in _STRING.sub(b"", data))
    return max(levels, default=0) <= _MAX_DEPTH


_whole = msgspec.json.Decoder(float_hook=exact).decode


def decoded(data: bytes) -> object:
    """The whole value, exactly. Raises one of `UNREADABLE` for what is no JSON."""
    try:
        return _whole(data)
    except UNREADABLE:
        if _HALF_CHARACTER.search(data):
            raise
        # Mostly a number beyond what msgspec holds; anything else fails here too.
        return json.loads(data.decode(), parse_int=_integer, parse_float=exact, parse_constant=_no_constant)


def _integer(text: str) -> int | Decimal:
    return int(text) if len(text) <= _INT_DIGITS else Decimal(text)


def _no_constant(text: str) -> object:
    raise ValueError(f"{text} is no JSON")


class PayloadReader:
    """One payload, decoded once and only when a path is asked for. None is a payload that is not meant as JSON."""

    __slots__ = ("_data", "_read")

    def __init__(self, data: bytes | None) -> None:
        self._data = data if data is not None and is_shallow(data) else None
        self._read: Callable[[tuple[str | int, ...]], object] | None = None

    def at(self, steps: tuple[str | int, ...]) -> object:
        """The value there, or MISSING."""
        if self._read is None:
            self._read = self._reader()
        return self._read(steps)

    def document(self) -> object:
        """The whole payload, or MISSING when it cannot be read as a whole."""
        return self.at(())

    def _reader(self) -> Callable[[tuple[str | int, ...]], object]:
        data = self._data
        if data is None:
            return lambda steps: MISSING
        try:
            value = decoded(data)
        except UNREADABLE:
            return lambda steps: _apart(data, steps)
        return lambda steps: dig(value, steps)


def dig(value: object, steps: tuple[str | int, ...]) -> object:
    """What is found when the steps are taken from a decoded value."""
    for step in steps:
        if isinstance(step, str):
            value = value.get(step, MISSING) if isinstance(value, dict) else MISSING
        else:
            value = value[step] if isinstance(value, list) and step < len(value) else MISSING
    return value


def _apart(data: bytes, steps: tuple[str | int, ...]) -> object:
    """Read one path from a payload that cannot be decoded as a whole: step by step, decoding nothing beside it."""
    raw = data
    for step in steps:
        try:
            inner = _decoder(step)(raw)
        except UNREADABLE:
            return MISSING
        found = inner.f if isinstance(inner, msgspec.Struct) else dig(inner, (step,))  # type: ignore[attr-defined]
        if found is MISSING:
            return MISSING
        raw = bytes(found)  # type: ignore[arg-type]
    return _value(raw)


def can_be_field(name: str) -> bool:
    """Whether msgspec takes this as the name of a struct's field."""
    return not any(sign in '"\\' or sign < " " for sign in name)


def _value(raw: bytes) -> object:
    number = _NUMBER.fullmatch(raw)
    try:
        return exact(number[1].decode()) if number else _whole(raw)
    except UNREADABLE:
        return MISSING


@lru_cache(maxsize=512)
def _decoder(step: str | int) -> Callable[[bytes], Any]:
    """Gives the raw text one step further in; a value of another kind decodes to something without it."""
    if isinstance(step, int):
        return msgspec.json.Decoder(list[msgspec.Raw]).decode
    if not can_be_field(step):
        return msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
    member = ("f", msgspec.Raw | msgspec.UnsetType, msgspec.field(name=step, default=MISSING))
    return msgspec.json.Decoder(msgspec.defstruct("Step", [member])).decode
