"""Reads what paths give, from one event. The payload is decoded at most once, and no path makes it cost more than its bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import msgspec

from tidings.errors import Malformed
from tidings.events.avro.payloads import NO_SCHEMAS, SchemaBook
from tidings.events.model import Event, text_of
from tidings.filters import backtracking_regex, values
from tidings.filters.jsonpath import FoundNodes, JsonPath, WorkExceeded
from tidings.filters.paths import (
    AttributePath,
    AttributesPath,
    AttributeTextPath,
    AvroTextPath,
    AvroTextsPath,
    DataPath,
    HeaderPath,
    ItemPath,
    MemberTextPath,
    OnlyScalarPath,
    Path,
    QueryPath,
    QueryTextPath,
    QueryTextsPath,
    ScalarsPath,
    query_of,
)
from tidings.filters.payload import MISSING, PayloadReader, is_json

Read: TypeAlias = Callable[[Path], object]
"""Gives the value at a path of one event, or MISSING."""

Made: TypeAlias = MemberTextPath | ScalarsPath | OnlyScalarPath | QueryTextPath | QueryTextsPath
"""Paths that make something of what they find in the payload."""


def reading(event: Event, book: SchemaBook = NO_SCHEMAS) -> EventValues:
    """Reads values of this event. `book` knows the schemas by which Avro payloads were written."""
    return EventValues(event, book)


def has_json(event: Event, book: SchemaBook = NO_SCHEMAS) -> bool:
    """Whether filters see anything of the payload: it is meant as JSON, and is JSON, or it is Avro that can be decoded."""
    return reading(event, book).document() is not MISSING


class PayloadValues(NamedTuple):
    """A payload as JSON and, where it is Avro, what it decodes to. `trouble`: why it cannot be decoded."""

    json: PayloadReader
    avro: object = MISSING
    trouble: str = ""


def payload_values(event: Event, book: SchemaBook) -> PayloadValues:
    """The payload of an event. Of Avro, the JSON is what was decoded."""
    if event.avro:
        try:
            value = avro_value(event.avro, event.data, book)
        except ValueError as error:
            return PayloadValues(PayloadReader(None), trouble=str(error))
        return PayloadValues(PayloadReader(json_of(value)), value)
    json = is_json(event.attributes.get("datacontenttype"), event.base64, event.form)
    return PayloadValues(PayloadReader(event.data if json else None))


class EventValues:
    """Gives the value at each path of one event, or MISSING; the payload is decoded at most once.

    `troubles` tells why a path that was read could not be followed to its end; such a path is missing.
    """

    __slots__ = ("_attributes", "_book", "_event", "_found", "troubles")

    def __init__(self, event: Event, book: SchemaBook) -> None:
        self._event = event
        self._attributes = event.attributes
        self._book = book
        self._found: PayloadValues | None = None
        self.troubles: dict[Path, str] = {}

    def document(self) -> object:
        """The whole payload, or MISSING when it cannot be read as a whole."""
        return self._payload.json.document()

    def __call__(self, path: Path) -> object:
        match path:
            case AttributePath(name):
                return self._attributes.get(name, MISSING)
            case AttributeTextPath(name):
                value = self._attributes.get(name)
                return MISSING if value is None else text_of(value)
            case AttributesPath(names):
                return tuple(map(self._attributes.get, names))
            case HeaderPath(name):
                transport = self._event.transport
                return next((text for header, text in transport.items() if header.lower() == name), MISSING)
            case ItemPath():
                return MISSING
        if self._payload.trouble:
            self.troubles[path] = self._payload.trouble
        match path:
            case DataPath(steps):
                return self._payload.json.at(steps)
            case AvroTextPath() | AvroTextsPath():
                return avro_made_of(path)(self._payload.avro)
        return self._made(path)

    @property
    def _payload(self) -> PayloadValues:
        if self._found is None:
            self._found = payload_values(self._event, self._book)
        return self._found

    def _made(self, path: Made) -> object:
        place = place_of(path)
        if place is not None:
            return made_of(path)(self._payload.json.at(place))
        if isinstance(path, MemberTextPath):
            return made_of(path)(values.member(self.document(), path.names))
        return made_of(path)(self._followed(path))

    def _followed(self, path: QueryPath) -> object:
        document = self.document()
        if document is MISSING:
            return MISSING
        query = query_of(path)
        try:
            found = _found(query, document, path.limit)
        except WorkExceeded as error:
            self.troubles[path] = str(error)
            return MISSING
        if found.missing:
            return MISSING
        return found.values[0] if query.definite else list(found.values)


def _found(query: JsonPath, document: object, limit: float) -> FoundNodes:
    if not limit:
        return query.find(document)
    with backtracking_regex.within(limit):
        return query.find(document)


def place_of(path: Path) -> tuple[str | int, ...] | None:
    """The one place in the payload that decides what the path gives; None when it looks at more than that."""
    match path:
        case DataPath(steps):
            return steps
        case MemberTextPath(names):
            return None if any(map(values.is_index, names)) else names
        case ScalarsPath() | OnlyScalarPath() | QueryTextPath():
            return query_of(path).singular
    return None


def avro_value(fingerprint: object, data: bytes | None, book: SchemaBook) -> object:
    """The decoded payload of an event that says it was written by this schema; MISSING for one that says nothing.

    Raises ValueError where it cannot be decoded.
    """
    if not fingerprint or fingerprint is MISSING:
        return MISSING
    schema = book.named(str(fingerprint))
    if schema is None or data is None:
        raise ValueError(f"the Avro schema {fingerprint} that it was written by is not known")
    try:
        return schema.value(data)
    except Malformed as error:
        raise ValueError(str(error)) from error


json_of = msgspec.json.Encoder().encode
"""A decoded Avro payload as JSON."""


def avro_made_of(path: AvroTextPath | AvroTextsPath) -> Callable[[object], object]:
    """What the path gives, from the decoded payload."""
    made: Any = values.avro_text if isinstance(path, AvroTextPath) else values.avro_texts
    steps = path.steps
    return lambda found: MISSING if found is MISSING else made(found, steps)


def made_of(path: Path) -> Callable[[object], object]:
    """What the path gives, from the value found at its place."""
    match path:
        case MemberTextPath():
            return values.member_text
        case ScalarsPath():
            return values.scalars
        case OnlyScalarPath():
            return values.only
        case QueryTextPath():
            return values.one_text
        case QueryTextsPath():
            return values.all_texts
    return lambda found: found
