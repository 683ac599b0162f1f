"""JSON values to Avro binary, as Hermes converts (HER-68), or from Avro's own JSON, which names the branch of each union.

| JSON | becomes |
|---|---|
| a union's value | the first branch that it fits; Avro's own JSON: the branch it names, `{"string": "x"}` |
| a field that is left out | its default; without one it is a fault |
| a member that is no field | nothing |
| a text for bytes or fixed | a byte for each character (ISO-8859-1), as Avro's JSON has it |
| a number for int or long | that number; one with a fraction or beyond the range is a fault |
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from tidings.errors import Malformed
from tidings.events.avro.binary import AvroMismatch
from tidings.events.avro.tree import (
    NO_DEFAULT,
    AvroArray,
    AvroEnum,
    AvroField,
    AvroFixed,
    AvroMap,
    AvroNode,
    AvroPrimitive,
    AvroRecord,
    AvroUnion,
    branch_name,
)
from tidings.events.json_text import kind_of

_WORK = 1_000_000
_INT = (-(1 << 31), (1 << 31) - 1)
_LONG = (-(1 << 63), (1 << 63) - 1)
_NAMES = 5
_FLOATS: Mapping[str, float] = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}

_pack_double = struct.Struct("<d").pack
_pack_float = struct.Struct("<f").pack


class Written(bytearray):
    """Avro binary that grows. `left`: the work that may still be done, so that unions in unions are not tried for ever."""

    left: int = _WORK

    def spend(self, work: int) -> None:
        self.left -= work
        if self.left < 0:
            raise Malformed("the payload fits the unions of the schema in too many ways to try them all")


Write: TypeAlias = Callable[[Any, Written], None]
"""Appends a JSON value. Raises AvroMismatch where it does not fit."""


class Writes:
    """The conversions to the types of one schema, made when first asked for. `bare`: the ones that defaults are read by."""

    def __init__(self, bare: Writes | None = None) -> None:
        self._wrapped = bare is not None
        self._defaults: Defaults = Defaults(self) if bare is None else bare._defaults
        self._made: dict[AvroNode, Write] = {}

    def of(self, node: AvroNode) -> Write:
        """The conversion to this type."""
        found = self._made.get(node)
        if found is None:
            if isinstance(node, AvroRecord):
                # A record may hold itself: it is known before its fields are.
                fields: list[tuple[str, Write, AvroField]] = []
                found = self._made[node] = _record(fields, self._defaults)
                fields += [(field.name, self.of(field.type), field) for field in node.fields]
            else:
                found = self._made[node] = self._make(node)
        return found

    def check_defaults(self, names: Iterable[AvroNode]) -> None:
        """Raise Malformed for a default that is not a value of its field."""
        for node in names:
            if isinstance(node, AvroRecord):
                for field in node.fields:
                    try:
                        self._defaults.of(field)
                    except AvroMismatch as mismatch:
                        reason = f"the default does not fit: {mismatch}"
                        raise Malformed(reason, at=f"field {field.name} of {node.name}") from None

    def _make(self, node: AvroNode) -> Write:
        match node:
            case AvroPrimitive(word):
                return _PRIMITIVE[word]
            case AvroEnum():
                return _enum(node)
            case AvroFixed(size=size):
                return _fixed(size)
            case AvroArray(items):
                return _array(self.of(items))
            case AvroMap(values):
                return _map(self.of(values))
            case AvroUnion(branches):
                writes = [self.of(branch) for branch in branches]
                names = [branch_name(branch) for branch in branches]
                return _named_branch(writes, names) if self._wrapped else _first_fitting(branches, writes, names)
        raise AssertionError(node)


class Defaults:
    """Defaults of fields as binary. In a union it is a value of any branch, the first that fits (Avro 1.12)."""

    def __init__(self, writes: Writes) -> None:
        self._writes = writes
        self._known: dict[AvroField, bytes | None] = {}
        self._busy: set[AvroField] = set()

    def of(self, field: AvroField) -> bytes | None:
        """The default; None for a field without one. Raises AvroMismatch where it does not fit."""
        if field not in self._known:
            self._known[field] = None if field.default is NO_DEFAULT else self._made(field)
        return self._known[field]

    def _made(self, field: AvroField) -> bytes:
        if field in self._busy:
            raise AvroMismatch("the default would hold itself without end")
        self._busy.add(field)
        try:
            out = Written()
            self._writes.of(field.type)(field.default, out)
            return bytes(out)
        finally:
            self._busy.discard(field)


def write_long(number: int, out: bytearray) -> None:
    """Append a whole number of at most 64 bits."""
    number = (number << 1) ^ (number >> 63)
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)


def _expected(what: str, value: Any) -> AvroMismatch:
    return AvroMismatch(f"expected {what}, found {kind_of(value)}")


def _null(value: Any, out: Written) -> None:
    if value is not None:
        raise _expected("null", value)


def _boolean(value: Any, out: Written) -> None:
    if value.__class__ is not bool:
        raise _expected("true or false", value)
    out.append(value)


def _whole(what: str, low: int, high: int) -> Write:
    def write(value: Any, out: Written) -> None:
        if value.__class__ is not int:
            if value.__class__ is not float or not value.is_integer():
                raise AvroMismatch("expected a whole number") if value.__class__ is float else _expected("a number", value)
            value = int(value)
        if not low <= value <= high:
            raise AvroMismatch(f"the number is beyond {what}")
        write_long(value, out)

    return write


def _real(pack: Callable[[float], bytes]) -> Write:
    def write(value: Any, out: Written) -> None:
        if value.__class__ is str:
            value = _FLOATS.get(value, value)
        if value.__class__ is not float and value.__class__ is not int:
            raise _expected("a number", value)
        try:
            out += pack(value)
        except OverflowError:
            raise AvroMismatch("the number is too large") from None

    return write


def _bytes(value: Any, out: Written) -> None:
    data = _latin(value)
    write_long(len(data), out)
    out += data


def _latin(value: Any) -> bytes:
    if value.__class__ is not str:
        raise _expected("a text", value)
    try:
        encoded: bytes = value.encode("latin-1")
    except UnicodeEncodeError:
        raise AvroMismatch("bytes are written as a text with a character up to U+00FF for each byte") from None
    return encoded


def _string(value: Any, out: Written) -> None:
    if value.__class__ is not str:
        raise _expected("a text", value)
    data = value.encode()
    write_long(len(data), out)
    out += data


_PRIMITIVE: Mapping[str, Write] = {
    "null": _null,
    "boolean": _boolean,
    "int": _whole("an int", *_INT),
    "long": _whole("a long", *_LONG),
    "float": _real(_pack_float),
    "double": _real(_pack_double),
    "bytes": _bytes,
    "string": _string,
}


def _enum(node: AvroEnum) -> Write:
    numbers = {symbol: number for number, symbol in enumerate(node.symbols)}
    listed = ", ".join(node.symbols[:_NAMES]) + (" …" if len(node.symbols) > _NAMES else "")

    def write(value: Any, out: Written) -> None:
        number = numbers.get(value) if value.__class__ is str else None
        if number is None:
            raise AvroMismatch(f"expected one of {listed}")
        write_long(number, out)

    return write


def _fixed(size: int) -> Write:
    def write(value: Any, out: Written) -> None:
        data = _latin(value)
        if len(data) != size:
            raise AvroMismatch(f"expected {size} bytes, found {len(data)}")
        out += data

    return write


def _array(item: Write) -> Write:
    def write(value: Any, out: Written) -> None:
        if value.__class__ is not list:
            raise _expected("a list", value)
        if value:
            write_long(len(value), out)
            number = 0
            try:
                for number, one in enumerate(value):  # noqa: B007 - told when it fails
                    item(one, out)
            except AvroMismatch as mismatch:
                mismatch.steps.append(number)
                raise
        out.append(0)

    return write


def _map(inner: Write) -> Write:
    def write(value: Any, out: Written) -> None:
        if value.__class__ is not dict:
            raise _expected("an object", value)
        if value:
            write_long(len(value), out)
            key = ""
            try:
                for key, one in value.items():
                    _string(key, out)
                    inner(one, out)
            except AvroMismatch as mismatch:
                mismatch.steps.append(key)
                raise
        out.append(0)

    return write


def _record(fields: list[tuple[str, Write, AvroField]], defaults: Defaults) -> Write:
    def write(value: Any, out: Written) -> None:
        if value.__class__ is not dict:
            raise _expected("an object", value)
        out.spend(1 + len(fields))
        name = ""
        try:
            for name, inner, field in fields:
                if name in value:
                    inner(value[name], out)
                elif (default := defaults.of(field)) is not None:
                    out.spend(len(default) >> 4)
                    out += default
                else:
                    raise AvroMismatch("the field is missing and has no default")
        except AvroMismatch as mismatch:
            mismatch.steps.append(name)
            raise

    return write


def _first_fitting(branches: tuple[AvroNode, ...], writes: list[Write], names: list[str]) -> Write:
    """Only branches that the kind of the value can fit are tried, in their order."""
    numbered = list(enumerate(writes))
    by_kind = {
        kind: [(n, write) for (n, write), branch in zip(numbered, branches, strict=True) if kind in _kinds(branch)]
        for kind in (type(None), bool, int, float, str, list, dict)
    }

    def write(value: Any, out: Written) -> None:
        found = by_kind[value.__class__]
        begin = len(out)
        first: AvroMismatch | None = None
        for number, inner in found:
            out.spend(1)
            write_long(number, out)
            try:
                inner(value, out)
            except AvroMismatch as mismatch:
                # The deepest fault is the one that the writer meant.
                if first is None or len(mismatch.steps) > len(first.steps):
                    first = mismatch
                del out[begin:]
            else:
                return
        if first is not None and (len(found) == 1 or first.steps):
            raise first
        raise AvroMismatch(f"expected one of {', '.join(names[:_NAMES])}, found {kind_of(value)}")

    return write


def _kinds(node: AvroNode) -> tuple[type, ...]:
    """The kinds of JSON values that may fit the type."""
    match node:
        case AvroPrimitive("null"):
            return (type(None),)
        case AvroPrimitive("boolean"):
            return (bool,)
        case AvroPrimitive("int" | "long"):
            return (int, float)
        case AvroPrimitive("float" | "double"):
            return (int, float, str)
        case AvroPrimitive() | AvroEnum() | AvroFixed():
            return (str,)
        case AvroArray():
            return (list,)
    return (dict,)


def _named_branch(writes: list[Write], names: list[str]) -> Write:
    by_name = {name: (number, write) for number, (name, write) in enumerate(zip(names, writes, strict=True))}
    listed = ", ".join(name for name in names[:_NAMES])

    def write(value: Any, out: Written) -> None:
        if value is None:
            name, inner = "null", None
        elif value.__class__ is dict and len(value) == 1:
            ((name, inner),) = value.items()
        else:
            raise AvroMismatch(f'expected an object that names one of {listed}, such as {{"{names[-1]}": …}}')
        if name not in by_name:
            raise AvroMismatch(f"the union has no branch of this name; expected one of {listed}")
        number, write_inner = by_name[name]
        write_long(number, out)
        try:
            write_inner(inner, out)
        except AvroMismatch as mismatch:
            if name != "null":
                mismatch.steps.append(name)
            raise

    return write
