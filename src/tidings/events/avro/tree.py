"""An Avro schema as a tree of nodes. Named types are one node wherever they are named, so a recursive schema is a graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import msgspec

NO_DEFAULT: Final = msgspec.UNSET

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


@dataclass(frozen=True, slots=True)
class AvroPrimitive:
    """A type without parts."""

    word: str


@dataclass(frozen=True, slots=True, eq=False)
class AvroEnum:
    """One of some symbols."""

    name: str
    symbols: tuple[str, ...]
    default: str | None
    aliases: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class AvroFixed:
    """Bytes of a fixed number."""

    name: str
    size: int
    aliases: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class AvroArray:
    """Any number of items."""

    items: AvroNode


@dataclass(frozen=True, slots=True, eq=False)
class AvroMap:
    """Values by text keys."""

    values: AvroNode


@dataclass(frozen=True, slots=True, eq=False)
class AvroUnion:
    """A value of one of the branches."""

    branches: tuple[AvroNode, ...]


@dataclass(frozen=True, slots=True, eq=False)
class AvroField:
    """A field of a record. `default` is JSON, or NO_DEFAULT."""

    name: str
    type: AvroNode
    default: Any
    aliases: tuple[str, ...]


@dataclass(slots=True, eq=False)
class AvroRecord:
    """Fields in their order. They are filled in after the record is known by its name, because they may name it."""

    name: str
    aliases: tuple[str, ...]
    fields: tuple[AvroField, ...] = field(default=())


AvroNode: TypeAlias = AvroPrimitive | AvroEnum | AvroFixed | AvroArray | AvroMap | AvroUnion | AvroRecord
NAMED = (AvroRecord, AvroEnum, AvroFixed)


@dataclass(frozen=True, slots=True)
class AvroTree:
    """A schema that was read: its root, and its named types in the order of their definition."""

    root: AvroNode
    names: Mapping[str, AvroNode]


def branch_name(node: AvroNode) -> str:
    """What tells this type apart from others in a union: its full name, or its kind."""
    match node:
        case AvroPrimitive(word):
            return word
        case AvroRecord() | AvroEnum() | AvroFixed():
            return node.name
        case AvroArray():
            return "array"
        case AvroMap():
            return "map"
        case AvroUnion():
            return "union"


def parts_of(node: AvroNode) -> tuple[AvroNode, ...]:
    """The types directly inside."""
    match node:
        case AvroRecord(fields=fields):
            return tuple(one.type for one in fields)
        case AvroArray(items):
            return (items,)
        case AvroMap(values):
            return (values,)
        case AvroUnion(branches):
            return branches
    return ()
