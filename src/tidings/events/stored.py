"""The stored form of an event: its head as one flat, compact JSON object, and its payload bytes apart.

The head holds the attributes in their order and with their own JSON types. `$headers` (the transport headers), `$base64` and
`$form` stand beside them only when there is something to say, and so do `$by` (who published it) and `$environment` (as the
publisher named it) where a door keeps these: `$` cannot begin the name of an attribute.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tidings.errors import Malformed
from tidings.events.model import Event

HEADERS = "$headers"
BASE64 = "$base64"
BY = "$by"
FORM = "$form"
ENVIRONMENT = "$environment"

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


def head_of(event: Event) -> bytes:
    """Everything about the event but its payload."""
    if not event.transport and not event.base64 and not event.form:
        return _encode(event.attributes)
    head: dict[str, Any] = dict(event.attributes)
    if event.transport:
        head[HEADERS] = event.transport
    if event.base64:
        head[BASE64] = True
    if event.form:
        head[FORM] = event.form
    return _encode(head)


def event_from(head: bytes, data: bytes | None) -> Event:
    """The event that was stored. Its rules were checked before; Malformed only when the head is damaged."""
    try:
        attributes = _decode(head)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Malformed(f"a stored event cannot be read: {error}") from error
    transport = attributes.pop(HEADERS, None)
    attributes.pop(BY, None)
    attributes.pop(ENVIRONMENT, None)
    base64, form = attributes.pop(BASE64, False), attributes.pop(FORM, "")
    return Event(attributes, data, base64, transport or {}, form)


def publisher_of(head: bytes) -> str:
    """Who published a stored event; empty where that was not kept."""
    return _beside(head, BY)


def environment_in(head: bytes) -> str:
    """The environment as the publisher named it; empty where that was not kept."""
    return _beside(head, ENVIRONMENT)


def _beside(head: bytes, name: str) -> str:
    try:
        return str(_decode(head).get(name, ""))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
