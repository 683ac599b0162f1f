"""Where the values of a JSON text begin and end, so that parts of it can be copied byte for byte.

The text must be sound JSON: this looks only for what separates values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_MARK = re.compile(_STRING + rb"|[\[{]|[\]}]", re.DOTALL)
_NAME = re.compile(rb"[\s,]*+(" + _STRING + rb")\s*+:\s*+", re.DOTALL)
_GAP = re.compile(rb"[\s,]*+")
_SCALAR = re.compile(_STRING + rb"|[^\s,\]}]++", re.DOTALL)
_OPENING, _CLOSING = frozenset(b"[{"), frozenset(b"]}")


class ChildSpan(NamedTuple):
    """A member or an element: its name, or its index as text; where it begins, where its value begins, and where both end."""

    name: str
    begin: int
    value: int
    end: int


class Spans:
    """The values of one text. Reading it whole is linear in its length, however deep it nests."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._ends = _ends(data)
        self.root = _end_of(_GAP, data, 0)

    def end(self, at: int) -> int:
        """Where the value that begins here ends."""
        return self._ends.get(at) or _end_of(_SCALAR, self.data, at)

    def is_object(self, at: int) -> bool:
        return self.data[at] == ord("{")

    def is_array(self, at: int) -> bool:
        return self.data[at] == ord("[")

    def members(self, at: int) -> Iterator[ChildSpan]:
        """The members of the object that begins here, in order; one that is there twice comes twice."""
        at += 1
        while found := _NAME.match(self.data, at):
            at = self.end(found.end())
            yield ChildSpan(_name(found[1]), found.start(1), found.end(), at)

    def elements(self, at: int) -> Iterator[ChildSpan]:
        """The elements of the array that begins here."""
        last, index = self.end(at) - 1, 0
        at = _end_of(_GAP, self.data, at + 1)
        while at < last:
            end = self.end(at)
            yield ChildSpan(str(index), at, at, end)
            at, index = _end_of(_GAP, self.data, end), index + 1


def _ends(data: bytes) -> dict[int, int]:
    """Where each object and array ends, by where it begins."""
    ends: dict[int, int] = {}
    open_ones: list[int] = []
    for mark in _MARK.finditer(data):
        at = mark.start()
        if data[at] in _OPENING:
            open_ones.append(at)
        elif data[at] in _CLOSING:
            ends[open_ones.pop()] = at + 1
    return ends


def _end_of(pattern: re.Pattern[bytes], data: bytes, at: int) -> int:
    found = pattern.match(data, at)
    assert found is not None
    return found.end()


def _name(text: bytes) -> str:
    return str(msgspec.json.decode(text)) if b"\\" in text else text[1:-1].decode()
