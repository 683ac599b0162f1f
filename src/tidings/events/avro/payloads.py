"""Events whose payload is Avro: what their types are, and the schemas that they were written by."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from tidings.events import content_types
from tidings.events.avro.names import fingerprint
from tidings.events.avro.schema import AvroSchema, compiled
from tidings.events.model import Event

AVRO_BINARY = "avro/binary"
AVRO_JSON = "avro/json"

_BINARY = frozenset((AVRO_BINARY, "application/avro", "application/vnd.apache.avro+binary"))


def is_avro(content_type: str | None) -> bool:
    """Whether a payload of this type is Avro binary."""
    return content_types.essence_of(content_type or "") in _BINARY


class SchemaBook:
    """The schemas that events were written by, found by what the events say of them.

    It only grows, and a schema never changes under its fingerprint: so it can be shared while others add to it.
    """

    __slots__ = ("_texts",)

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._texts: dict[str, str] = {}
        self.add(texts)

    def add(self, texts: Iterable[str]) -> None:
        """These schemas are known from now on."""
        for text in texts:
            self._texts[fingerprint(text)] = text

    def named(self, fingerprint: str) -> AvroSchema | None:
        """The schema of this fingerprint."""
        text = self._texts.get(fingerprint)
        return None if text is None else compiled(text)

    def of(self, event: Event) -> AvroSchema | None:
        """The schema that the event's payload was written by; None: it is not Avro, or the schema is not known here."""
        return self.named(event.avro) if event.avro else None

    def __contains__(self, fingerprint: object) -> bool:
        return fingerprint in self._texts


NO_SCHEMAS = SchemaBook()
"""Where no event is Avro."""


def as_json_event(event: Event, book: SchemaBook) -> Event:
    """The event with its Avro payload as JSON; unchanged where it is not Avro or cannot be read."""
    schema = book.of(event)
    if schema is None or event.data is None:
        return event
    attributes: dict[str, Any] = {**event.attributes, "datacontenttype": content_types.JSON}
    data = schema.json(event.data, metadata=True)
    return msgspec.structs.replace(event, attributes=attributes, data=data, base64=False, avro="")
