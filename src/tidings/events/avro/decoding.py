"""Avro binary to values, by fastavro, and what Hermes shows of them as JSON.

fastavro decodes fast and without bounds. It sees only payloads that were walked through, or of schemas that cannot describe
more than a few values for each byte.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Any, TypeAlias

import fastavro

from tidings.events.avro.tree import (
    AvroArray,
    AvroEnum,
    AvroFixed,
    AvroMap,
    AvroNode,
    AvroPrimitive,
    AvroRecord,
    AvroTree,
    AvroUnion,
)

_FLOAT_DIGITS = range(6, 10)
_float = struct.Struct("<f")

Shape: TypeAlias = Callable[[Any], Any]
"""Makes of a decoded value what JSON can hold: bytes as text, numbers that are none as text, floats with their own digits."""


class AvroDecoder:
    """Decodes payloads of one schema. The bytes must have been checked, or the schema be tame."""

    def __init__(self, tree: AvroTree) -> None:
        # Written anew: without logical types, which would become dates, and without aliases and defaults, which nobody needs here.
        self._schema = fastavro.parse_schema(_written(tree.root, {}))
        self._shape = _Shapes().of(tree.root)

    def value(self, data: bytes) -> Any:
        """The value of a payload, as JSON has it. Raises any kind of error for bytes that are none."""
        source = BytesIO(data)
        value = fastavro.schemaless_reader(source, self._schema, None)
        if source.tell() != len(data):
            raise ValueError("bytes are left")
        return value if self._shape is None else self._shape(value)


def _written(node: AvroNode, names: dict[AvroNode, str]) -> Any:
    match node:
        case AvroPrimitive(word):
            return word
        case AvroRecord() | AvroEnum() | AvroFixed():
            if node in names:
                return names[node]
            # Names of our own: nobody sees them, and no namespace can be taken for another.
            names[node] = f"T{len(names)}"
            return _definition(node, names)
        case AvroArray(items):
            return {"type": "array", "items": _written(items, names)}
        case AvroMap(values):
            return {"type": "map", "values": _written(values, names)}
        case AvroUnion(branches):
            return [_written(branch, names) for branch in branches]


def _definition(node: AvroRecord | AvroEnum | AvroFixed, names: dict[AvroNode, str]) -> Mapping[str, Any]:
    match node:
        case AvroEnum():
            return {"type": "enum", "name": names[node], "symbols": list(node.symbols)}
        case AvroFixed():
            return {"type": "fixed", "name": names[node], "size": node.size}
    fields = [{"name": field.name, "type": _written(field.type, names)} for field in node.fields]
    return {"type": "record", "name": names[node], "fields": fields}


class _Shapes:
    """The functions that shape values of types; None where JSON can hold every value as it is decoded."""

    def __init__(self) -> None:
        self._made: dict[AvroNode, Shape | None] = {}

    def of(self, node: AvroNode) -> Shape | None:
        if node in self._made:
            return self._made[node]
        if isinstance(node, AvroRecord):
            # A record may hold itself: whether it has anything to shape is not known yet, so it is taken as having some.
            fields: list[tuple[str, Shape]] = []
            self._made[node] = _record(fields)
            recursive = _holds_itself(node)
            fields += [(field.name, shape) for field in node.fields if (shape := self.of(field.type)) is not None]
            if not fields and not recursive:
                self._made[node] = None
            return self._made[node]
        made = self._made[node] = self._make(node)
        return made

    def _make(self, node: AvroNode) -> Shape | None:
        match node:
            case AvroPrimitive("bytes") | AvroFixed():
                return _text
            case AvroPrimitive("double"):
                return _real
            case AvroPrimitive("float"):
                return _short
            case AvroArray(inner) | AvroMap(inner):
                shape = self.of(inner)
                return None if shape is None else _all(shape, isinstance(node, AvroMap))
            case AvroUnion(branches):
                return self._union(branches)
        return None

    def _union(self, branches: tuple[AvroNode, ...]) -> Shape | None:
        """Told apart by what was decoded. Where that does not tell the branch, everything in the value is looked at."""
        shapes = [(branch, shape) for branch in branches if (shape := self.of(branch)) is not None]
        if not shapes:
            return None
        by_kind: dict[type, Shape] = {}
        for kind in (bytes, float, list, dict):
            fitting = [(branch, shape) for branch, shape in shapes if kind in _decoded_as(branch)]
            others = [branch for branch in branches if kind in _decoded_as(branch)]
            if len(others) > 1 and fitting:
                by_kind[kind] = _anything
            elif fitting:
                by_kind[kind] = fitting[0][1]

        def shaped(value: Any) -> Any:
            found = by_kind.get(value.__class__)
            return value if found is None else found(value)

        return shaped


def _holds_itself(record: AvroRecord) -> bool:
    seen: set[int] = set()
    waiting: list[AvroNode] = [field.type for field in record.fields]
    while waiting:
        node = waiting.pop()
        if node is record:
            return True
        if id(node) in seen:
            continue
        seen.add(id(node))
        match node:
            case AvroRecord(fields=fields):
                waiting += [field.type for field in fields]
            case AvroArray(inner) | AvroMap(inner):
                waiting.append(inner)
            case AvroUnion(branches):
                waiting += branches
    return False


def _decoded_as(node: AvroNode) -> tuple[type, ...]:
    match node:
        case AvroPrimitive("bytes") | AvroFixed():
            return (bytes,)
        case AvroPrimitive("float" | "double"):
            return (float,)
        case AvroArray():
            return (list,)
        case AvroMap() | AvroRecord():
            return (dict,)
    return ()


def _record(fields: list[tuple[str, Shape]]) -> Shape:
    def shape(value: Any) -> Any:
        for name, inner in fields:
            value[name] = inner(value[name])
        return value

    return shape


def _all(inner: Shape, keyed: bool) -> Shape:
    if keyed:
        return lambda value: {key: inner(one) for key, one in value.items()}
    return lambda value: [inner(one) for one in value]


def _text(value: bytes) -> str:
    return value.decode("latin-1")


def _real(value: float) -> Any:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _short(value: float) -> Any:
    """A 32-bit float with the fewest digits that tell it apart, as Java writes it: 0.1, not 0.10000000149011612."""
    if not math.isfinite(value):
        return _real(value)
    bits = _float.pack(value)
    return next((short for n in _FLOAT_DIGITS if _float.pack(short := float(f"{value:.{n}g}")) == bits), value)


def _anything(value: Any) -> Any:
    """Shapes whatever it finds, where a union does not tell which type it was."""
    match value:
        case bytes():
            return _text(value)
        case float():
            return _real(value)
        case list():
            return [_anything(one) for one in value]
        case dict():
            return {key: _anything(one) for key, one in value.items()}
    return value
