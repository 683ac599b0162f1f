"""How an entry becomes a request, or a frame of a stream: the forms there are, and what each makes of an event."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, TypeAlias

import msgspec

from tidings.clock import Instant
from tidings.errors import Malformed
from tidings.events.headers import encoded_value
from tidings.events.horizon import horizon_json, horizon_reference
from tidings.events.http_binding import encode_binary, encode_structured
from tidings.events.model import Event
from tidings.events.stored import event_from
from tidings.registry.formats import Horizon, PayloadForm
from tidings.registry.model import ContentMode, Push


class OwnForm(StrEnum):
    """Forms beside those of CloudEvents: Horizon's, and the entry as it is stored, for streams."""

    HORIZON = "horizon"
    HORIZON_PARSED = "horizon-parsed"
    HORIZON_REFERENCE = "horizon-dataref"
    STORED = "stored"


Form: TypeAlias = ContentMode | OwnForm

_HERE = "here"
_PLACE = b'"dataref":"here"'
"""Stands for the address of a payload until it is known whose it is. Quotes inside of values are escaped: no value holds it."""

_HORIZON_HEADERS = {"content-type": "application/json", "accept": "application/json", "accept-charset": "UTF-8"}
_IDENTITY = ("x-pubsub-publisher-id", "x-pubsub-subscriber-id", "x-subscription-id")


class Laid(NamedTuple):
    """An entry laid out, when it was published, and the hash of its partition key."""

    headers: dict[str, str]
    body: bytes
    fault: str = ""
    published: Instant = Instant(0)
    key: int = 0


class StoredEvent(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a stream is given of an entry: enough to write it as any door does."""

    head: bytes
    data: bytes | None


def form_of(push: Push) -> Form:
    """The form that a push asks for."""
    if push.layout is None:
        return push.mode
    if push.layout.payload is PayloadForm.DATAREF:
        return OwnForm.HORIZON_REFERENCE
    return OwnForm.HORIZON_PARSED if push.layout.filtered else OwnForm.HORIZON


def identity_headers(layout: Horizon | None) -> dict[str, str]:
    """The headers that say who publishes and who subscribes (HOR-109); probes carry them too (HOR-124)."""
    if layout is None:
        return {}
    return dict(zip(_IDENTITY, (layout.publisher, layout.subscriber, layout.subscription), strict=True))


def data_address(hub: str, layout: Horizon) -> str:
    """Where a subscriber fetches payloads, but for the message id at its end (HOR-145)."""
    return f"{hub}/horizon/v1/{layout.environment}/data/{layout.subscription}/"


def with_address(body: bytes, address: str) -> bytes:
    """A body with a reference, now that the address of the payload is known."""
    return body.replace(_PLACE, b'"dataref":%b' % msgspec.json.encode(address), 1)


def lay_out(form: Form, head: bytes, data: bytes | None) -> Laid:
    """The entry in this form. A binary request has to have a payload, so an event without one goes structured (WH-01)."""
    if form is OwnForm.STORED:
        return Laid({}, msgspec.msgpack.encode(StoredEvent(head, data)))
    try:
        event = event_from(head, data)
    except Malformed as error:
        return Laid({}, b"", str(error))
    match form:
        case OwnForm.HORIZON:
            return Laid(_horizon_headers(event), horizon_json(event))
        case OwnForm.HORIZON_PARSED:
            return Laid(_horizon_headers(event), horizon_json(event, parsed=True))
        case OwnForm.HORIZON_REFERENCE:
            return Laid(_horizon_headers(event), horizon_reference(event, _HERE))
        case _:
            encode = encode_binary if form is ContentMode.BINARY and event.data is not None else encode_structured
            headers, body = encode(event)
            return Laid(dict(headers), body)


def _horizon_headers(event: Event) -> dict[str, str]:
    """The publisher's headers first: they cannot say who the hub knows somebody to be."""
    kept = {name: value for name, value in event.transport.items() if name not in _IDENTITY}
    named = {"x-event-id": encoded_value(event.id), "x-event-type": encoded_value(event.type)}
    return {**kept, **_HORIZON_HEADERS, **named}
