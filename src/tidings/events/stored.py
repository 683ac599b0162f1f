"""The stored form of an event: its head as one flat, compact JSON object, and its payload bytes apart.

The head holds the attributes in their order and with their own JSON types. `$headers` (the transport headers), `$base64`,
`$form`, `$notes` and `$avro` stand beside them only when there is something to say: `$` cannot begin the name of an attribute.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tidings.errors import Malformed
from tidings.events.model import Event

HEADERS = "$headers"
BASE64 = "$base64"
FORM = "$form"
NOTES = "$notes"
AVRO = "$avro"
DATAREF = "dataref"
"""The attribute that says where the whole payload is."""

_NAMED = b'"dataref"'
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


def head_of(event: Event) -> bytes:
    """Everything about the event but its payload."""
    if not event.transport and not event.base64 and not event.form and not event.notes and not event.avro:
        return _encode(event.attributes)
    head: dict[str, Any] = dict(event.attributes)
    if event.transport:
        head[HEADERS] = event.transport
    if event.base64:
        head[BASE64] = True
    if event.form:
        head[FORM] = event.form
    if event.notes:
        head[NOTES] = event.notes
    if event.avro:
        head[AVRO] = event.avro
    return _encode(head)


def event_from(head: bytes, data: bytes | None) -> Event:
    """The event that was stored. Its rules were checked before; Malformed only when the head is damaged."""
    try:
        attributes = _decode(head)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Malformed(f"a stored event cannot be read: {error}") from error
    transport, notes = attributes.pop(HEADERS, None), attributes.pop(NOTES, None)
    base64, form, avro = attributes.pop(BASE64, False), attributes.pop(FORM, ""), attributes.pop(AVRO, "")
    return Event(attributes, data, base64, transport or {}, form, notes or {}, avro)


def has_reference(head: bytes) -> bool:
    """Whether the publisher says where the payload can be fetched."""
    return _NAMED in head and DATAREF in _decode(head)


def without_reference(head: bytes) -> bytes:
    """The head without the place of the payload: whoever gets a part of it must not learn where the rest is."""
    if _NAMED not in head:
        return head
    return _encode({name: value for name, value in _decode(head).items() if name != DATAREF})


def note_in(head: bytes, name: str) -> str:
    """A note beside a stored event; empty where there is none."""
    try:
        return str(_decode(head).get(NOTES, {}).get(name, ""))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
