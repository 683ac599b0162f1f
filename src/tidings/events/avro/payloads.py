"""Events whose payload is Avro: what their types are, and the schemas that they were written by."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from tidings.events import content_types
from tidings.events.avro.names import fingerprint
from tidings.events.model import Event
from tidings.events.stored import AVRO, event_from, head_of

if TYPE_CHECKING:
    from tidings.events.avro.schema import AvroSchema

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
        if text is None:
            return None
        # Imported late: whoever only knows schemas needs no decoder.
        from tidings.events.avro.schema import compiled

        return compiled(text)

    def of(self, event: Event) -> AvroSchema | None:
        """The schema that the event's payload was written by; None: it is not Avro, or the schema is not known here."""
        return self.named(event.avro) if event.avro else None

    def __len__(self) -> int:
        return len(self._texts)


NO_SCHEMAS = SchemaBook()
"""Where no event is Avro."""


_MARK = b'"%b"' % AVRO.encode()


def json_stored(head: bytes, data: bytes | None, book: SchemaBook) -> tuple[bytes, bytes | None]:
    """A stored event as readers of JSON get it: head and payload."""
    # Quotes inside of JSON strings are escaped, so the mark can be looked for as bytes.
    if _MARK not in head:
        return head, data
    event = as_json_event(event_from(head, data), book)
    return head_of(event), event.data


def as_json_event(event: Event, book: SchemaBook) -> Event:
    """The event with its Avro payload as JSON; unchanged where it is not Avro or cannot be read."""
    schema = book.of(event)
    if schema is None or event.data is None:
        return event
    attributes: dict[str, Any] = {**event.attributes, "datacontenttype": content_types.JSON}
    data = schema.json(event.data, metadata=True)
    return msgspec.structs.replace(event, attributes=attributes, data=data, base64=False, avro="")
