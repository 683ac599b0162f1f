"""Decoders made to measure: structs for just the attributes and members that filters name, and functions that take values out.

The struct for the payload is made from the union of the paths. It takes any value where an object is expected, so that one
`"order": null` costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import msgspec

from tidings.events.model import text_of
from tidings.events.stored import AVRO, BASE64, FORM, HEADERS
from tidings.filters.event_values import made_of
from tidings.filters.paths import AttributePath, AttributeTextPath, AvroTextPath, AvroTextsPath, DataPath, HeaderPath, Path
from tidings.filters.payload import MISSING, can_be_field, dig
from tidings.filters.routing.avro_texts import avro_text_of

NOTHING = b"null"
_KEPT = 1024

Steps: TypeAlias = tuple[str | int, ...]
TakeRow: TypeAlias = Callable[[Any, Any, Any], Sequence[Any]]
"""Takes all values of one event from its decoded head, its JSON payload and its Avro payload."""


@dataclass(frozen=True, slots=True)
class Heads:
    """Decodes heads to a struct: `type`, `base64`, `form` and `avro` say what the payload is, `fields` names the others."""

    decode: Callable[[bytes], Any]
    empty: object
    fields: dict[str, str]

    def column(self, name: str, decoded: list[Any]) -> list[Any]:
        field = self.fields[name]
        return [getattr(head, field) for head in decoded]


@lru_cache(maxsize=_KEPT)
def heads_decoder(names: tuple[str, ...]) -> Heads:
    """A struct for these attributes, and what says whether the payload is JSON."""
    fields = {"datacontenttype": "type", BASE64: "base64", FORM: "form", AVRO: "avro"} | {
        name: f"a{n}" for n, name in enumerate(names) if name != "datacontenttype"
    }
    kind = msgspec.defstruct(
        "Head", [_member(field, name, Any, MISSING) for name, field in fields.items()], gc=False, frozen=True
    )
    return Heads(msgspec.json.Decoder(kind).decode, kind(), fields)


@dataclass(frozen=True, slots=True)
class Tree:
    """Decodes payloads to nested structs. Each path has its way through them, and a function that takes its column.

    `empty` is what an event without a payload has."""

    decode: Callable[[bytes], Any]
    empty: object
    ways: tuple[tuple[tuple[str, ...], Steps], ...]
    columns: tuple[Callable[[list[Any]], list[Any]], ...]


@lru_cache(maxsize=_KEPT)
def payloads_decoder(paths: tuple[Steps, ...], exact: bool) -> Tree:
    """A decoder for the union of the paths."""
    root = _Node()
    for steps in paths:
        root.add(steps)
    kind = root.type()
    decode = msgspec.json.Decoder(kind, float_hook=Decimal if exact else None).decode
    ways = tuple(root.way(steps) for steps in paths)
    return Tree(decode, MISSING if root.whole else root.nothing, ways, tuple(_column(*way) for way in ways))


class _Node:
    """A place in the payload: an object of which some members are named, or, where filters want more, any value whole."""

    def __init__(self) -> None:
        self.members: dict[str, _Node] = {}
        self.whole = False
        self.nothing: object = None

    def add(self, steps: Steps) -> None:
        if not steps or isinstance(steps[0], int) or not can_be_field(steps[0]):
            self.whole = True
        else:
            self.members.setdefault(steps[0], _Node()).add(steps[1:])

    def type(self) -> Any:
        if self.whole:
            return Any
        fields = []
        for n, (name, node) in enumerate(self.members.items()):
            fields.append(_member(f"f{n}", name, node.type(), MISSING if node.whole else node.nothing))
        struct = msgspec.defstruct("Object", fields, gc=False, frozen=True)
        self.nothing = struct()
        return struct | bool | int | float | str | list | None

    def way(self, steps: Steps) -> tuple[tuple[str, ...], Steps]:
        """The fields to follow to the value, and the steps that are left to dig inside it."""
        if self.whole or not steps:
            return (), steps
        number = list(self.members).index(str(steps[0]))
        fields, left = self.members[str(steps[0])].way(steps[1:])
        return (f"f{number}", *fields), left


def _member(field: str, name: str, kind: Any, default: object) -> tuple[str, Any, Any]:
    return field, kind, msgspec.field(name=name, default=default)


def _column(fields: tuple[str, ...], left: Steps) -> Callable[[list[Any]], list[Any]]:
    # Generated, because a list comprehension over fixed fields is several times as fast as any loop over their names.
    space: dict[str, Any] = {}
    exec(f"def fast(roots): return [{'.'.join(('root', *fields))} for root in roots]", space)
    fast: Callable[[list[Any]], list[Any]] = space["fast"]

    def column(roots: list[Any]) -> list[Any]:
        try:
            found = fast(roots)
        except AttributeError:
            found = [_followed(root, fields) for root in roots]
        return [dig(value, left) for value in found] if left else found

    return column


def _followed(value: Any, fields: tuple[str, ...]) -> Any:
    for name in fields:
        value = getattr(value, name, MISSING)
    return value


def row_of(heads: Heads, tree: Tree, paths: tuple[Path, ...]) -> TakeRow:
    """Takes all values of one event at once: a tuple of fixed expressions, generated for the same reason as columns are."""
    taken = expressions(heads, tree, paths)
    space = dict(taken.space)
    exec(f"def row(head, root, avro): return ({''.join(f'{part}, ' for part in taken.parts)})", space)
    row: TakeRow = space["row"]
    return row


class ExpressionDecoders(NamedTuple):
    """The value at each path, as code over `head`, `root` and `avro`, and what that code refers to."""

    parts: tuple[str, ...]
    space: dict[str, Any]


def expressions(heads: Heads, tree: Tree, paths: tuple[Path, ...]) -> ExpressionDecoders:
    """How to take the values at these paths from what was decoded. It holds no text of users but names of headers, quoted."""
    space: dict[str, Any] = {"dig": dig, "text": attribute_text, "header": header}
    ways = iter(tree.ways)
    return ExpressionDecoders(tuple(_expression(path, n, heads, ways, space) for n, path in enumerate(paths)), space)


def _expression(path: Path, n: int, heads: Heads, ways: Iterator[tuple[tuple[str, ...], Steps]], space: dict[str, Any]) -> str:
    match path:
        case AttributePath(name):
            return f"head.{heads.fields[name]}"
        case AttributeTextPath(name):
            return f"text(head.{heads.fields[name]})"
        case HeaderPath(name):
            return f"header(head.{heads.fields[HEADERS]}, {name!r})"
        case AvroTextPath() | AvroTextsPath():
            space[f"made{n}"] = avro_text_of(path)
            return f"made{n}(avro)"
    fields, left = next(ways)
    found = ".".join(("root", *fields))
    found = f"dig({found}, {left!r})" if left else found
    if isinstance(path, DataPath):
        return found
    space[f"made{n}"] = made_of(path)
    return f"made{n}({found})"


def attribute_text(value: Any) -> Any:
    """The canonical text of an attribute; what is missing stays missing."""
    return value if type(value) is str or value is MISSING else text_of(value)


def header(headers: Any, name: str) -> Any:
    """The transport header of this name, in any letter case."""
    if headers is MISSING:
        return MISSING
    return next((text for found, text in headers.items() if found.lower() == name), MISSING)
