"""Reads what paths give, from one event. The payload is decoded at most once, and no path makes it cost more than its bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from tidings.events.model import Attribute, Event, text_of
from tidings.filters import backtracking_regex, values
from tidings.filters.jsonpath import FoundNodes, JsonPath, WorkExceeded
from tidings.filters.paths import (
    AttributePath,
    AttributesPath,
    AttributeTextPath,
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


def reading(event: Event, decoded: object = MISSING) -> EventValues:
    """Reads values of this event. `decoded` is the payload of a topic whose format is Avro."""
    return EventValues(event.attributes, _payload(event), event.transport, decoded)


def has_json(event: Event) -> bool:
    """Whether filters see anything of the payload: it is meant as JSON, and is JSON."""
    return _payload(event).document() is not MISSING


def _payload(event: Event) -> PayloadReader:
    json = is_json(event.attributes.get("datacontenttype"), event.base64, event.form)
    return PayloadReader(event.data if json else None)


class EventValues:
    """Gives the value at each path of one event, or MISSING; the payload is decoded at most once.

    `troubles` tells why a path that was read could not be followed to its end; such a path is missing.
    """

    __slots__ = ("_attributes", "_decoded", "_payload", "_transport", "troubles")

    def __init__(
        self,
        attributes: Mapping[str, Attribute],
        payload: PayloadReader,
        transport: Mapping[str, str],
        decoded: object = MISSING,
    ) -> None:
        self._attributes = attributes
        self._payload = payload
        self._transport = transport
        self._decoded = decoded
        self.troubles: dict[Path, str] = {}

    def __call__(self, path: Path) -> object:
        match path:
            case DataPath(steps):
                return self._payload.at(steps)
            case AttributePath(name):
                return self._attributes.get(name, MISSING)
            case AttributeTextPath(name):
                value = self._attributes.get(name)
                return MISSING if value is None else text_of(value)
            case AttributesPath(names):
                return tuple(map(self._attributes.get, names))
            case HeaderPath(name):
                return next((text for header, text in self._transport.items() if header.lower() == name), MISSING)
            case AvroTextsPath(steps):
                return MISSING if self._decoded is MISSING else values.avro_texts(self._decoded, steps)
            case ItemPath():
                return MISSING
        return self._made(path)

    def _made(self, path: Made) -> object:
        place = place_of(path)
        if place is not None:
            return made_of(path)(self._payload.at(place))
        if isinstance(path, MemberTextPath):
            return made_of(path)(values.member(self._payload.document(), path.names))
        return made_of(path)(self._followed(path))

    def _followed(self, path: QueryPath) -> object:
        document = self._payload.document()
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
