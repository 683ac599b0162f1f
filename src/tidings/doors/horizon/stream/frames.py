"""Events as Horizon streams them (HOR-135 to HOR-137): W3C frames or plain lines, with or without the publisher's headers."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tidings.delivery.sse.socket_protocol import StreamEntry
from tidings.doors.horizon.event_json import horizon_json, horizon_reference
from tidings.doors.horizon.layout import HorizonLayout, PayloadForm
from tidings.doors.sse.response import W3C
from tidings.events.json_lines import compacted
from tidings.events.model import Event
from tidings.events.stored import event_from

PLAIN = "application/stream+json"
OFFSET_ID = "x-pubsub-offset-id"


def content_type(accept: bytes | None) -> str:
    """Only those who ask for exactly W3C frames get them; `*/*` and silence mean plain lines."""
    return W3C if accept is not None and accept.strip().lower() == W3C.encode() else PLAIN


def framing(kind: str, layout: HorizonLayout, hub: str, *, headers: bool) -> Callable[[StreamEntry], bytes]:
    """How entries are written in this kind of stream."""
    body = _body(layout, hub, headers)
    if kind == W3C:
        return lambda entry: b"id: %b\ndata: %b\n\n" % (entry.id.encode(), body(entry))
    return lambda entry: body(entry) + b"\n"


def _body(layout: HorizonLayout, hub: str, headers: bool) -> Callable[[StreamEntry], bytes]:
    identity, address = layout.identity, layout.data_address(hub)

    def write(entry: StreamEntry) -> bytes:
        event = event_from(entry.head, entry.data)
        refers = layout.payload is PayloadForm.DATAREF
        plain = horizon_reference(event, address + entry.id) if refers else _compact(event, layout)
        return b'%b,"httpHeaders":%b}' % (plain[:-1], _headers(event, identity, entry.id)) if headers else plain

    return write


def _compact(event: Event, layout: HorizonLayout) -> bytes:
    """The event without the insignificant white space of its payload (FEED-26)."""
    return compacted(horizon_json(event, parsed=layout.filtered))


def _headers(event: Event, identity: dict[str, str], message: str) -> bytes:
    named = {"x-event-id": event.id, "x-event-type": event.type, OFFSET_ID: message}
    return msgspec.json.encode({name: [value] for name, value in {**event.transport, **named, **identity}.items()})
