"""Events to columns: of heads and payloads only the paths that filters name are decoded, a list of values per path.

The struct for the payload is made from the union of the paths. It takes any value where an object is expected, so that one
`"order": null` costs nothing. An event that does not decode this way is read path by path with `payload.Payload`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec

from tidings.events.model import text_of
from tidings.events.stored import BASE64
from tidings.filters.paths import AttributePath, AttributesPath, AttributeTextPath, DataPath, Path
from tidings.filters.payload import MISSING, UNREADABLE, Payload, can_be_field, dig, is_json, is_shallow

Column: TypeAlias = list[Any]
_SMALL = 500
_NOTHING = b"null"


@dataclass(slots=True)
class Table:
    """The columns of some events, by the number of the path. `bad` tells the events whose head cannot be read, and why."""

    columns: list[Column]
    payloads: Sequence[bytes | None]
    bad: list[tuple[int, str]] = field(default_factory=list)


class Reader:
    """Decodes events to the columns of its paths. With `exact`, numbers are int or Decimal; without, fractions are floats,
    good enough to tell which side of a cut they are on unless they are equal to it."""

    def __init__(self, paths: tuple[Path, ...], exact: bool) -> None:
        self.paths = paths
        self._data = [(n, path.steps) for n, path in enumerate(paths) if isinstance(path, DataPath)]
        self._heads = _heads(tuple(dict.fromkeys(name for path in paths for name in _attributes(path))))
        self._tree = _payloads(tuple(steps for _, steps in self._data), exact)

    def read(self, heads: Sequence[bytes], datas: Sequence[bytes | None]) -> Table:
        """One list per path, in the order of the events."""
        bad: list[tuple[int, str]] = []
        decoded = _each(self._heads.decode, heads, self._heads.empty, bad)
        payloads = _as_json(decoded, datas) if self._data else datas
        columns: list[Column] = [[]] * len(self.paths)
        for n, path in enumerate(self.paths):
            if isinstance(path, AttributePath):
                columns[n] = self._heads.column(path.name, decoded)
            elif isinstance(path, AttributeTextPath):
                columns[n] = [
                    v if type(v) is str or v is MISSING else text_of(v) for v in self._heads.column(path.name, decoded)
                ]
            elif isinstance(path, AttributesPath):
                columns[n] = self._heads.together(path.names, decoded)
        self.read_payloads(payloads, columns)
        return Table(columns, payloads, bad)

    def read_payloads(self, payloads: Sequence[bytes | None], columns: list[Column]) -> None:
        """Fill in the columns of the data paths. A payload of None has no values."""
        if not self._data:
            return
        failed: list[tuple[int, str]] = []
        texts = [_NOTHING if data is None else data for data in payloads] if None in payloads else payloads
        roots = _each(self._tree.decode, texts, None, failed)  # type: ignore[arg-type]
        for (n, _), column_of in zip(self._data, self._tree.columns, strict=True):
            columns[n] = column_of(roots)
        for event, _ in failed:
            payload = Payload(payloads[event])
            for n, steps in self._data:
                columns[n][event] = payload.at(steps)


def _each(decode: Callable[[bytes], Any], texts: Sequence[bytes], instead: object, failed: list[tuple[int, str]]) -> list[Any]:
    """All of them decoded; what fails is replaced and told."""
    try:
        return list(map(decode, texts))
    except UNREADABLE:
        pass
    decoded = []
    for n, text in enumerate(texts):
        try:
            decoded.append(decode(text))
        except UNREADABLE as error:
            decoded.append(instead)
            failed.append((n, str(error)))
    return decoded


def _as_json(heads: list[Any], datas: Sequence[bytes | None]) -> Sequence[bytes | None]:
    """The payloads, None for those that are not meant as JSON or are nested too deeply."""
    if {head.base64 for head in heads} != {MISSING} or not all(
        is_json(kind, MISSING) for kind in {head.type for head in heads}
    ):
        datas = [data if is_json(head.type, head.base64) else None for head, data in zip(heads, datas, strict=True)]
    if None in datas or max(map(len, datas), default=0) > _SMALL:  # type: ignore[arg-type]
        datas = [data if data is None or is_shallow(data) else None for data in datas]
    return datas


def values_at(steps: tuple[str | int, ...], payloads: Sequence[bytes | None]) -> Column:
    """The exact values at one place of these payloads."""
    columns: list[Column] = [[]]
    Reader((DataPath(steps),), exact=True).read_payloads(payloads, columns)
    return columns[0]


@dataclass(frozen=True, slots=True)
class _Heads:
    decode: Callable[[bytes], Any]
    empty: object
    fields: dict[str, str]

    def column(self, name: str, decoded: list[Any]) -> Column:
        field = self.fields[name]
        return [getattr(head, field) for head in decoded]

    def together(self, names: tuple[str, ...], decoded: list[Any]) -> Column:
        """A tuple of these attributes for every event, None for what is missing."""
        if not names:
            return [()] * len(decoded)
        columns = ([None if v is MISSING else v for v in self.column(name, decoded)] for name in names)
        return list(zip(*columns, strict=True))


def _attributes(path: Path) -> tuple[str, ...]:
    """The attributes that a path looks at."""
    match path:
        case AttributePath(name) | AttributeTextPath(name):
            return (name,)
        case AttributesPath(names):
            return names
    return ()


@lru_cache(maxsize=256)
def _heads(names: tuple[str, ...]) -> _Heads:
    """A struct for these attributes, and what says whether the payload is JSON."""
    fields = {"datacontenttype": "type", BASE64: "base64"} | {
        name: f"a{n}" for n, name in enumerate(names) if name != "datacontenttype"
    }
    kind = msgspec.defstruct(
        "Head", [_member(field, name, Any, MISSING) for name, field in fields.items()], gc=False, frozen=True
    )
    return _Heads(msgspec.json.Decoder(kind).decode, kind(), fields)


@dataclass(frozen=True, slots=True)
class _Tree:
    decode: Callable[[bytes], Any]
    columns: tuple[Callable[[list[Any]], Column], ...]


@lru_cache(maxsize=256)
def _payloads(paths: tuple[tuple[str | int, ...], ...], exact: bool) -> _Tree:
    """A decoder for the union of the paths, and a function per path that takes its column from what was decoded."""
    root = _Node()
    for steps in paths:
        root.add(steps)
    kind = root.type()
    decode = msgspec.json.Decoder(kind, float_hook=Decimal if exact else None).decode
    return _Tree(decode, tuple(_column(*root.way(steps)) for steps in paths))


class _Node:
    """A place in the payload: an object of which some members are named, or, where filters want more, any value whole."""

    def __init__(self) -> None:
        self.members: dict[str, _Node] = {}
        self.whole = False
        self.nothing: object = None

    def add(self, steps: tuple[str | int, ...]) -> None:
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

    def way(self, steps: tuple[str | int, ...]) -> tuple[tuple[str, ...], tuple[str | int, ...]]:
        """The fields to follow to the value, and the steps that are left to dig inside it."""
        if self.whole or not steps:
            return (), steps
        number = list(self.members).index(str(steps[0]))
        fields, left = self.members[str(steps[0])].way(steps[1:])
        return (f"f{number}", *fields), left


def _member(field: str, name: str, kind: Any, default: object) -> tuple[str, Any, Any]:
    return field, kind, msgspec.field(name=name, default=default)


def _column(fields: tuple[str, ...], left: tuple[str | int, ...]) -> Callable[[list[Any]], Column]:
    # Generated, because a list comprehension over fixed fields is several times as fast as any loop over their names.
    space: dict[str, Any] = {}
    exec(f"def fast(roots): return [{'.'.join(('root', *fields))} for root in roots]", space)
    fast: Callable[[list[Any]], Column] = space["fast"]

    def column(roots: list[Any]) -> Column:
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
