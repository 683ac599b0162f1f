"""Walks through Avro binary strictly: every length within the payload, every index within its list, texts that are UTF-8.

A walk makes no values. It bounds what a decoder would make of the payload, and says the place of what is wrong: the path of
the value and the byte.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tidings.events.avro.measures import MAX_NESTING
from tidings.events.avro.tree import (
    AvroArray,
    AvroEnum,
    AvroFixed,
    AvroMap,
    AvroNode,
    AvroPrimitive,
    AvroRecord,
    AvroUnion,
    branch_name,
)

_PER_BYTE = 32
_MOST_VALUES = 2_000_000
_LONG_BYTES = 10
_INT = 1 << 31
_LONG = 1 << 63


class AvroMismatch(Exception):
    """A value does not fit its type. `steps` is its path, from the inside out."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.steps: list[str | int] = []

    @property
    def pointer(self) -> str:
        """The path as a JSON pointer."""
        return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in reversed(self.steps))


class Walk:
    """The payload that is walked through, and what may still be found in it."""

    __slots__ = ("data", "end", "left", "nesting")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.end = len(data)
        self.left = min(_MOST_VALUES, 1_000 + _PER_BYTE * len(data))
        self.nesting = 0

    def count(self, values: int, at: int) -> None:
        self.left -= values
        if self.left < 0:
            raise AvroMismatch(f"the payload describes too many values (byte {at})")

    def deeper(self, at: int) -> None:
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            raise AvroMismatch(f"the payload nests more than {MAX_NESTING} levels deep (byte {at})")


Skip: TypeAlias = Callable[[Walk, int], int]
"""Walks over one value that begins at this byte; gives the byte after it. Raises AvroMismatch."""


def long_at(walk: Walk, at: int) -> tuple[int, int]:
    """The whole number there and the byte after it."""
    data, end = walk.data, walk.end
    shift = number = 0
    begin = at
    while at < end and shift < 7 * _LONG_BYTES:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            if number >= _LONG << 1:
                break
            return (number >> 1) ^ -(number & 1), at
        shift += 7
    if at >= end and shift < 7 * _LONG_BYTES:
        raise AvroMismatch(f"the payload ends inside a number (byte {begin})")
    raise AvroMismatch(f"the number has more than 64 bits (byte {begin})")


def _length_at(walk: Walk, at: int, what: str) -> tuple[int, int]:
    length, after = long_at(walk, at)
    if length < 0:
        raise AvroMismatch(f"the length of the {what} is negative (byte {at})")
    if length > walk.end - after:
        raise AvroMismatch(f"the {what} has {length} bytes and the payload ends before (byte {at})")
    return length, after


def _null(walk: Walk, at: int) -> int:
    return at


def _boolean(walk: Walk, at: int) -> int:
    if at >= walk.end:
        raise AvroMismatch(f"the payload ends before a boolean (byte {at})")
    if walk.data[at] > 1:
        raise AvroMismatch(f"a boolean is the byte 0 or 1, not {walk.data[at]} (byte {at})")
    return at + 1


def _int(walk: Walk, at: int) -> int:
    number, after = long_at(walk, at)
    if not -_INT <= number < _INT:
        raise AvroMismatch(f"an int has 32 bits and {number} has more (byte {at})")
    return after


def _long(walk: Walk, at: int) -> int:
    return long_at(walk, at)[1]


def _sized(size: int, what: str) -> Skip:
    def skip(walk: Walk, at: int) -> int:
        if size > walk.end - at:
            raise AvroMismatch(f"the payload ends inside a {what} (byte {at})")
        return at + size

    return skip


def _bytes(walk: Walk, at: int) -> int:
    length, after = _length_at(walk, at, "bytes")
    return after + length


def _string(walk: Walk, at: int) -> int:
    length, after = _length_at(walk, at, "string")
    try:
        walk.data[after : after + length].decode()
    except UnicodeDecodeError as error:
        raise AvroMismatch(f"the string is not UTF-8 (byte {after + error.start})") from None
    return after + length


_PRIMITIVE: dict[str, Skip] = {
    "null": _null,
    "boolean": _boolean,
    "int": _int,
    "long": _long,
    "float": _sized(4, "float"),
    "double": _sized(8, "double"),
    "bytes": _bytes,
    "string": _string,
}


class Skips:
    """The walks over the types of one schema, made when first asked for."""

    def __init__(self) -> None:
        self._made: dict[AvroNode, Skip] = {}

    def of(self, node: AvroNode) -> Skip:
        """The walk over values of this type."""
        found = self._made.get(node)
        if found is None:
            if isinstance(node, AvroRecord):
                # A record may hold itself: it is known before its fields are.
                steps: list[tuple[str, Skip]] = []
                found = self._made[node] = _record(steps)
                steps += [(field.name, self.of(field.type)) for field in node.fields]
            else:
                found = self._made[node] = self._make(node)
        return found

    def _make(self, node: AvroNode) -> Skip:
        match node:
            case AvroPrimitive(word):
                return _PRIMITIVE[word]
            case AvroFixed(size=size):
                return _sized(size, "fixed")
            case AvroEnum():
                return _enum(len(node.symbols))
            case AvroArray(items):
                return _blocks(self.of(items), keys=False)
            case AvroMap(values):
                return _blocks(self.of(values), keys=True)
            case AvroUnion(branches):
                return _union([self.of(branch) for branch in branches], [branch_name(branch) for branch in branches])
        raise AssertionError(node)


def _record(steps: list[tuple[str, Skip]]) -> Skip:
    def skip(walk: Walk, at: int) -> int:
        walk.deeper(at)
        walk.count(len(steps), at)
        name = ""
        try:
            for name, step in steps:  # noqa: B007 - told when it fails
                at = step(walk, at)
        except AvroMismatch as mismatch:
            mismatch.steps.append(name)
            raise
        walk.nesting -= 1
        return at

    return skip


def _enum(symbols: int) -> Skip:
    def skip(walk: Walk, at: int) -> int:
        number, after = long_at(walk, at)
        if not 0 <= number < symbols:
            raise AvroMismatch(f"the enum has no symbol {number} (byte {at})")
        return after

    return skip


def _union(branches: list[Skip], names: list[str]) -> Skip:
    def skip(walk: Walk, at: int) -> int:
        number, after = long_at(walk, at)
        if not 0 <= number < len(branches):
            raise AvroMismatch(f"the union of {', '.join(names[:5])} has no branch {number} (byte {at})")
        return branches[number](walk, after)

    return skip


def _blocks(item: Skip, *, keys: bool) -> Skip:
    """An array or a map: blocks of a count and their items; a negative count is followed by the bytes of the block."""

    def skip(walk: Walk, at: int) -> int:
        walk.deeper(at)
        index, key = 0, ""
        while True:
            begin = at
            count, at = long_at(walk, at)
            if not count:
                break
            ends = None
            if count < 0:
                size, at = _length_at(walk, at, "block")
                count, ends = -count, at + size
            walk.count(count, begin)
            try:
                for _ in range(count):
                    if keys:
                        key_at, at = at, _string(walk, at)
                        key = _key(walk, key_at)
                    at = item(walk, at)
                    index += 1
            except AvroMismatch as mismatch:
                mismatch.steps.append(key if keys else index)
                raise
            if ends is not None and at != ends:
                raise AvroMismatch(f"the block has another size than it says (byte {begin})")
        walk.nesting -= 1
        return at

    return skip


def _key(walk: Walk, at: int) -> str:
    length, after = long_at(walk, at)
    return walk.data[after : after + min(length, 100)].decode("utf-8", "replace")
