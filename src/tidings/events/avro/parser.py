"""Reads the JSON text of an Avro schema. Bounded before anything is built: length, depth, names, nodes.

Refused with the place in the schema: unknown types, names that are not defined before or are defined twice, unions in unions
or with a type twice. Logical types are read as what they annotate, since that is what Hermes shows of them (HER-76).
"""

from __future__ import annotations

import re
from typing import Any

from tidings.errors import Malformed
from tidings.events import json_text
from tidings.events.avro.tree import (
    NO_DEFAULT,
    PRIMITIVES,
    AvroArray,
    AvroEnum,
    AvroField,
    AvroFixed,
    AvroMap,
    AvroNode,
    AvroPrimitive,
    AvroRecord,
    AvroTree,
    AvroUnion,
    branch_name,
)

MAX_BYTES = 256 << 10
MAX_DEPTH = 64
"""Levels of JSON: about half as many levels of types."""

MAX_NAMES = 1_000
MAX_NODES = 5_000
MAX_SYMBOLS = 5_000
MAX_BRANCHES = 100
MAX_FIXED = 1 << 20

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,255}", re.ASCII)
_FULL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,255}(?:\.[A-Za-z_][A-Za-z0-9_]{0,255}){0,31}", re.ASCII)


def tree_of(text: str) -> AvroTree:
    """The tree of a schema's text. Raises Malformed with the place of what is wrong."""
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        raise Malformed("the schema is not Unicode text") from None
    if len(raw) > MAX_BYTES:
        raise Malformed(f"the schema has {len(raw)} bytes", expected=f"at most {MAX_BYTES}")
    return _Parser().tree(json_text.parse(raw, MAX_DEPTH))


class _Parser:
    """Reads one schema. Names are known from the beginning of their definition on."""

    def __init__(self) -> None:
        self._names: dict[str, AvroNode] = {}
        self._nodes = 0

    def tree(self, raw: Any) -> AvroTree:
        root = self._node(raw, "", "")
        return AvroTree(root, self._names)

    def _node(self, raw: Any, space: str, at: str) -> AvroNode:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise _bad("the schema has too many types", at, expected=f"at most {MAX_NODES}")
        if isinstance(raw, str):
            return self._named(raw, space, at)
        if isinstance(raw, list):
            return self._union(raw, space, at)
        if not isinstance(raw, dict):
            raise _bad(f"a type is a name, an object or a list, not {json_text.kind_of(raw)}", at)
        kind = raw.get("type")
        match kind:
            case "record" | "error":
                return self._record(raw, space, at)
            case "enum":
                return self._enum(raw, space, at)
            case "fixed":
                return self._fixed(raw, space, at)
            case "array":
                return AvroArray(self._node(_member(raw, "items", at), space, f"{at}/items"))
            case "map":
                return AvroMap(self._node(_member(raw, "values", at), space, f"{at}/values"))
            case None:
                raise _bad("the type is missing", at, expected='a member "type"')
        return self._node(kind, space, f"{at}/type")

    def _named(self, name: str, space: str, at: str) -> AvroNode:
        if name in PRIMITIVES:
            return AvroPrimitive(name)
        known = self._names.get(name if "." in name or not space else f"{space}.{name}")
        if known is None:
            raise _bad("there is no type of this name above", at, found=name, expected="a type that is defined before")
        return known

    def _union(self, raw: list[Any], space: str, at: str) -> AvroUnion:
        if not 1 <= len(raw) <= MAX_BRANCHES:
            raise _bad(f"a union has 1 to {MAX_BRANCHES} types", at, found=len(raw))
        branches = tuple(self._node(one, space, f"{at}/{n}") for n, one in enumerate(raw))
        seen: set[str] = set()
        for n, branch in enumerate(branches):
            name = branch_name(branch)
            if isinstance(branch, AvroUnion):
                raise _bad("a union cannot hold a union directly", f"{at}/{n}")
            if name in seen:
                raise _bad("a union cannot hold the same type twice", f"{at}/{n}", found=name)
            seen.add(name)
        return AvroUnion(branches)

    def _record(self, raw: dict[str, Any], space: str, at: str) -> AvroRecord:
        name, inner, aliases = self._name(raw, space, at)
        record = AvroRecord(name, aliases)
        self._define(record, name, at)
        fields = _member(raw, "fields", at)
        if not isinstance(fields, list):
            raise _bad("the fields are not a list", f"{at}/fields")
        found: dict[str, AvroField] = {}
        for n, one in enumerate(fields):
            place = f"{at}/fields/{n}"
            if not isinstance(one, dict):
                raise _bad("a field is an object", place, expected='{"name": …, "type": …}')
            field = AvroField(
                _plain_name(one.get("name"), f"{place}/name"),
                self._node(_member(one, "type", place), inner, f"{place}/type"),
                one.get("default", NO_DEFAULT),
                tuple(_plain_name(alias, f"{place}/aliases") for alias in _aliases(one, place)),
            )
            if field.name in found:
                raise _bad("the record has two fields of this name", f"{place}/name", found=field.name)
            found[field.name] = field
        record.fields = tuple(found.values())
        return record

    def _enum(self, raw: dict[str, Any], space: str, at: str) -> AvroEnum:
        name, _, aliases = self._name(raw, space, at)
        symbols = _member(raw, "symbols", at)
        if not isinstance(symbols, list) or not 1 <= len(symbols) <= MAX_SYMBOLS:
            raise _bad(f"an enum has a list of 1 to {MAX_SYMBOLS} symbols", f"{at}/symbols")
        texts = tuple(_plain_name(symbol, f"{at}/symbols/{n}") for n, symbol in enumerate(symbols))
        if len(set(texts)) < len(texts):
            raise _bad("a symbol is listed twice", f"{at}/symbols")
        default = raw.get("default")
        if default is not None and default not in texts:
            raise _bad("the default is not one of the symbols", f"{at}/default", found=default)
        node = AvroEnum(name, texts, default, aliases)
        self._define(node, name, at)
        return node

    def _fixed(self, raw: dict[str, Any], space: str, at: str) -> AvroFixed:
        name, _, aliases = self._name(raw, space, at)
        size = _member(raw, "size", at)
        if type(size) is not int or not 0 <= size <= MAX_FIXED:
            raise _bad("the size is not a number of bytes", f"{at}/size", found=size, expected=f"0 to {MAX_FIXED}")
        node = AvroFixed(name, size, aliases)
        self._define(node, name, at)
        return node

    def _name(self, raw: dict[str, Any], space: str, at: str) -> tuple[str, str, tuple[str, ...]]:
        """The full name of a definition, the namespace inside it, and its aliases as full names."""
        name, own = raw.get("name"), raw.get("namespace", space)
        if not isinstance(name, str) or not _FULL_NAME.fullmatch(name):
            raise _bad("a name is missing or cannot be one", f"{at}/name", found=name, expected="letters, digits, _ and dots")
        if own is None or not isinstance(own, str) or (own and not _FULL_NAME.fullmatch(own)):
            raise _bad("this cannot be a namespace", f"{at}/namespace", found=own)
        full = name if "." in name or not own else f"{own}.{name}"
        inner = full.rpartition(".")[0]
        aliases = []
        for alias in _aliases(raw, at):
            if not _FULL_NAME.fullmatch(alias):
                raise _bad("this cannot be an alias", f"{at}/aliases", found=alias)
            aliases.append(alias if "." in alias or not inner else f"{inner}.{alias}")
        return full, inner, tuple(aliases)

    def _define(self, node: AvroNode, name: str, at: str) -> None:
        if name in self._names or name in PRIMITIVES:
            raise _bad("this name is taken already", f"{at}/name", found=name)
        if len(self._names) >= MAX_NAMES:
            raise _bad("the schema defines too many names", at, expected=f"at most {MAX_NAMES}")
        self._names[name] = node


def _member(raw: dict[str, Any], name: str, at: str) -> Any:
    if name not in raw:
        raise _bad(f"the member {name} is missing", at)
    return raw[name]


def _aliases(raw: dict[str, Any], at: str) -> list[str]:
    aliases = raw.get("aliases") or []
    if not isinstance(aliases, list) or not all(isinstance(one, str) for one in aliases) or len(aliases) > MAX_BRANCHES:
        raise _bad("the aliases are not a list of names", f"{at}/aliases")
    return aliases


def _plain_name(name: object, at: str) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise _bad("a name is missing or cannot be one", at, found=name, expected="letters, digits and _")
    return name


def _bad(what: str, at: str, *, found: object = None, expected: str = "") -> Malformed:
    return Malformed(what, at=at or "the top", found=found, expected=expected)
