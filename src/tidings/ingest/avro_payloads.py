"""What becomes of payloads on a topic with Avro schemas. Pure.

| datacontenttype | becomes |
|---|---|
| `avro/binary` (or `application/avro`) | stored byte for byte, once it is checked |
| a JSON type, or none | converted: unions bare, what is no field dropped, defaults filled in |
| `avro/json` | converted: unions name their branch |
| anything else, or no payload | refused |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from tidings.errors import EventFault, InvalidEvent, Malformed
from tidings.events import content_types
from tidings.events.avro.payloads import AVRO_BINARY, AVRO_JSON, SchemaBook, as_json_event, is_avro
from tidings.events.avro.schema import AvroSchema, compiled, fault_of_event
from tidings.events.limits import MOST_FAULTS
from tidings.events.model import NO_JSON, Event
from tidings.registry.avro import AvroPayload

VERSION_HEADER = b"schema-version"


@dataclass(frozen=True, slots=True)
class AdmittedAvro:
    """The schemas that payloads of one topic may be written by."""

    payload: AvroPayload

    def version(self, number: int | None) -> AvroSchema:
        """The schema of this version; None: the newest. Raises Malformed for one that the topic does not have."""
        if number is None:
            return compiled(self.payload.newest.schema)
        found = self.payload.version(number)
        if found is None:
            newest = self.payload.newest.number
            raise Malformed("the topic has no such schema version", found=number, expected=f"1 to {newest}")
        return compiled(found.schema)

    def admitted(self, events: Sequence[Event], number: int | None) -> list[Event]:
        """The events as they are stored: Avro, and naming their schema. Raises InvalidEvent with the place in each payload.

        An event that names its schema already was made by its door from what it got.
        """
        schema = self.version(number)
        found: list[Event] = []
        faults: list[EventFault] = []
        for index, event in enumerate(events):
            try:
                found.append(self._admitted(event, schema))
            except Malformed as fault:
                faults.append(fault_of_event(fault, index))
                if len(faults) >= MOST_FAULTS:
                    break
        if faults:
            raise InvalidEvent(faults)
        return found

    def shown(self, events: Sequence[Event]) -> list[Event]:
        """The admitted events as readers of feeds get them, with JSON payloads."""
        book = SchemaBook(one.schema for one in self.payload.versions)
        return [as_json_event(event, book) for event in events]

    def _admitted(self, event: Event, schema: AvroSchema) -> Event:
        if event.avro:
            schema = self._named(event.avro)
        data, kind = event.data, event.datacontenttype
        if data is None:
            raise Malformed("the topic's Avro schema expects data and there is none")
        if event.avro or is_avro(kind):
            schema.check(data)
            return event if event.avro else msgspec.structs.replace(event, avro=schema.fingerprint, base64=False)
        if content_types.essence_of(kind or "") == AVRO_JSON:
            data = schema.from_avro_json(data)
        elif content_types.is_json(kind) and not event.base64 and event.form not in NO_JSON:
            data = schema.from_json(data)
        else:
            raise Malformed("the topic takes Avro or JSON", found=kind, expected=f"{AVRO_BINARY}, {AVRO_JSON} or a JSON type")
        attributes = {**event.attributes, "datacontenttype": AVRO_BINARY}
        return msgspec.structs.replace(event, attributes=attributes, data=data, form="", avro=schema.fingerprint)

    def _named(self, fingerprint: str) -> AvroSchema:
        number = self.payload.number_of(fingerprint)
        if number is None:
            raise Malformed("the schema that the event names is not one of the topic's", found=fingerprint)
        return self.version(number)


def version_in(headers: Sequence[tuple[bytes, bytes]]) -> int | None:
    """The schema version that a request names in its header. Raises Malformed for what is not a number."""
    raw = next((value for name, value in headers if name == VERSION_HEADER), None)
    if raw is None:
        return None
    text = raw.decode("latin-1").strip()
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise Malformed("this is not a schema version", at="Schema-Version", found=text, expected="a number from 1")
    return int(text)
