"""Events to columns: of heads and payloads only the paths that filters name are decoded, a list of values per path.

An event that does not decode this way is read path by path with `payload.Payload`. What no column can hold (a search through
the payload, say) is read for candidates only, through `StoredColumns`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

import msgspec

from tidings.events.avro.payloads import NO_SCHEMAS, SchemaBook
from tidings.events.model import NO_JSON
from tidings.events.stored import HEADERS, event_from
from tidings.filters.event_values import Read, avro_value, json_of, place_of, reading
from tidings.filters.paths import (
    AttributePath,
    AttributeTextPath,
    AvroTextPath,
    AvroTextsPath,
    DataPath,
    HeaderPath,
    MemberTextPath,
    OnlyScalarPath,
    Path,
    QueryTextPath,
    ScalarsPath,
)
from tidings.filters.payload import MISSING, UNREADABLE, PayloadReader, is_json, is_shallow
from tidings.filters.routing.avro_texts import avro_row_of
from tidings.filters.routing.column_values import column_made_of
from tidings.filters.routing.decoders import NOTHING, TakeRow, attribute_text, header, heads_decoder, payloads_decoder, row_of

Column: TypeAlias = list[Any]
SMALL = 500
JSON = "application/json"
_USUAL = frozenset((MISSING, None, JSON))
"""Types of payloads that every door takes for JSON."""

_IN_HEAD = (AttributePath, AttributeTextPath, HeaderPath)
_IN_AVRO = (AvroTextPath, AvroTextsPath)
_IN_PAYLOAD = (DataPath, MemberTextPath, ScalarsPath, OnlyScalarPath, QueryTextPath)


def is_column(path: object) -> bool:
    """Whether the values at this path can be a column: they are in the head, or decided by one place of the payload."""
    return (
        type(path) is DataPath
        or isinstance(path, (*_IN_HEAD, *_IN_AVRO))
        or (isinstance(path, _IN_PAYLOAD) and place_of(path) is not None)
    )


@dataclass(slots=True)
class StoredColumns:
    """Events as they are stored. What no column holds is read from here, for those few events that need it."""

    heads: Sequence[bytes]
    datas: Sequence[bytes | None]
    schemas: SchemaBook = NO_SCHEMAS
    _reads: dict[int, Read] = field(default_factory=dict)

    def reading(self, event: int) -> Read:
        """Reads any path of one event."""
        read = self._reads.get(event)
        if read is None:
            read = self._reads[event] = reading(event_from(self.heads[event], self.datas[event]), self.schemas)
        return read


@dataclass(slots=True)
class Table:
    """The columns of some events, by the number of the path. `bad` tells the events whose head cannot be read, and why."""

    columns: list[Column]
    payloads: Sequence[bytes | None]
    stored: StoredColumns
    bad: list[tuple[int, str]] = field(default_factory=list)


class EventRow(msgspec.Struct, gc=False):
    """The values of one event, by the number of the path, and its payload if that is meant as JSON."""

    values: Any
    payload: bytes | None
    head: bytes
    data: bytes | None
    schemas: SchemaBook
    _stored: StoredColumns | None = None

    @property
    def stored(self) -> StoredColumns:
        if self._stored is None:
            self._stored = StoredColumns((self.head,), (self.data,), self.schemas)
        return self._stored


class Reader:
    """Decodes events to the columns of its paths. With `exact`, numbers are int or Decimal; without, fractions are floats,
    good enough to tell which side of a cut they are on unless they are equal to it."""

    def __init__(self, paths: tuple[Path, ...], exact: bool, schemas: SchemaBook = NO_SCHEMAS) -> None:
        self.paths = paths
        self._schemas = schemas
        avro = [(n, path) for n, path in enumerate(paths) if isinstance(path, _IN_AVRO)]
        self._avro = [n for n, _ in avro]
        self._avro_row = avro_row_of([path for _, path in avro])
        inside = [(n, path) for n, path in enumerate(paths) if not isinstance(path, (*_IN_HEAD, *_IN_AVRO))]
        self._data = [(n, _steps(path)) for n, path in inside]
        self._made = [(n, column_made_of(path)) for n, path in inside if not isinstance(path, DataPath)]
        names = [HEADERS if isinstance(path, HeaderPath) else path.name for path in paths if isinstance(path, _IN_HEAD)]
        self.heads = heads_decoder(tuple(dict.fromkeys(names)))
        self.tree = payloads_decoder(tuple(steps for _, steps in self._data), exact)

    @cached_property
    def take(self) -> TakeRow:
        return row_of(self.heads, self.tree, self.paths)

    def read(self, heads: Sequence[bytes], datas: Sequence[bytes | None]) -> Table:
        """One list per path, in the order of the events."""
        bad: list[tuple[int, str]] = []
        decoded = _each(self.heads.decode, heads, self.heads.empty, bad)
        avro, payloads = self._all_opened(decoded, datas, bad)
        if self._data:
            payloads = _as_json(decoded, payloads)
        columns: list[Column] = [[]] * len(self.paths)
        for n, path in enumerate(self.paths):
            match path:
                case AttributePath(name):
                    columns[n] = self.heads.column(name, decoded)
                case AttributeTextPath(name):
                    columns[n] = list(map(attribute_text, self.heads.column(name, decoded)))
                case HeaderPath(name):
                    columns[n] = [header(headers, name) for headers in self.heads.column(HEADERS, decoded)]
        self.read_payloads(payloads, columns)
        for n, made in self._made:
            columns[n] = made(columns[n])
        for n, texts in zip(self._avro, zip(*avro, strict=True), strict=bool(avro)):
            columns[n] = list(texts)
        return Table(columns, payloads, StoredColumns(heads, datas, self._schemas), bad)

    def opened(self, head: Any, data: bytes | None) -> tuple[object, bytes | None]:
        """The value of an Avro payload, decoded once for all paths, and the same as JSON; as far as paths look at them.

        Raises ValueError where it cannot be decoded.
        """
        if not self._avro and not self._data:
            return MISSING, None
        value = avro_value(head.avro, data, self._schemas)
        return value, json_of(value) if self._data else None

    def _all_opened(
        self, heads: list[Any], datas: Sequence[bytes | None], bad: list[tuple[int, str]]
    ) -> tuple[list[Sequence[Any]], Sequence[bytes | None]]:
        """What Avro paths give, event by event, and the payloads as JSON. A decoded value is dropped at once: thousands of them
        together would keep the garbage collector busy."""
        nothing: Sequence[Any] = (MISSING,) * len(self._avro)
        rows = [nothing] * len(heads)
        if all(head.avro is MISSING for head in heads):
            return rows, datas
        payloads = list(datas)
        for event, (head, data) in enumerate(zip(heads, datas, strict=True)):
            if head.avro is not MISSING:
                try:
                    value, payloads[event] = self.opened(head, data)
                    rows[event] = self._avro_row(value)
                except ValueError as error:
                    payloads[event] = None
                    bad.append((event, str(error)))
        return rows, payloads

    def row(self, head: bytes, data: bytes | None) -> EventRow:
        """The values of one event. Raises one of `UNREADABLE` when the head or an Avro payload cannot be read."""
        decoded = self.heads.decode(head)
        avro, payload = (MISSING, payload_of(decoded, data)) if decoded.avro is MISSING else self.opened(decoded, data)
        try:
            root = self.tree.empty if payload is None else self.tree.decode(payload)
            found = self.take(decoded, root, avro)
        except (AttributeError, *UNREADABLE):  # an odd shape somewhere: the long way knows it
            found = [column[0] for column in self.read((head,), (data,)).columns]
        return EventRow(found, payload, head, data, self._schemas)

    def read_payloads(self, payloads: Sequence[bytes | None], columns: list[Column]) -> None:
        """Fill in the columns of the data paths, before anything is made of them. A payload of None has no values."""
        if not self._data:
            return
        failed: list[tuple[int, str]] = []
        texts = [NOTHING if data is None else data for data in payloads] if None in payloads else payloads
        roots = _each(self.tree.decode, texts, None, failed)  # type: ignore[arg-type]
        for (n, _), column_of in zip(self._data, self.tree.columns, strict=True):
            columns[n] = column_of(roots)
        for event, _ in failed:
            payload = PayloadReader(payloads[event])
            for n, steps in self._data:
                columns[n][event] = payload.at(steps)


def values_at(steps: tuple[str | int, ...], payloads: Sequence[bytes | None]) -> Column:
    """The exact values at one place of these payloads."""
    columns: list[Column] = [[]]
    _reader_of(steps).read_payloads(payloads, columns)
    return columns[0]


@lru_cache(maxsize=1024)
def exactly_at(steps: tuple[str | int, ...]) -> Callable[[bytes | None], Any]:
    """Gives the exact value at one place of a payload."""
    tree = payloads_decoder((steps,), exact=True)
    decode, (column_of,) = tree.decode, tree.columns

    def exactly(payload: bytes | None) -> Any:
        try:
            return column_of([decode(NOTHING if payload is None else payload)])[0]
        except UNREADABLE:
            return PayloadReader(payload).at(steps)

    return exactly


def payload_of(head: Any, data: bytes | None) -> bytes | None:
    """The payload of an event with this head, None when it is not meant as JSON or is nested too deeply."""
    if data is None or (head.type != JSON and not is_json(head.type, head.base64, head.form)):
        return None
    return data if len(data) <= SMALL or is_shallow(data) else None


@lru_cache(maxsize=1024)
def _reader_of(steps: tuple[str | int, ...]) -> Reader:
    return Reader((DataPath(steps),), exact=True)


def _steps(path: Path) -> tuple[str | int, ...]:
    steps = place_of(path)
    if steps is None:
        raise ValueError(f"{path} cannot be a column")
    return steps


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
    if not _all_json(heads):
        kinds = [head.avro is not MISSING or is_json(head.type, head.base64, head.form) for head in heads]
        datas = [data if json else None for json, data in zip(kinds, datas, strict=True)]
    if None in datas or max(map(len, datas), default=0) > SMALL:  # type: ignore[arg-type]
        datas = [data if data is None or is_shallow(data) else None for data in datas]
    return datas


def _all_json(heads: list[Any]) -> bool:
    odd = {head.type for head in heads} - _USUAL
    if {head.base64 for head in heads} != {MISSING} or not all(is_json(kind, MISSING) for kind in odd):
        return False
    return not odd or not any(head.form in NO_JSON for head in heads)
