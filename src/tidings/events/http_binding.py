"""The HTTP binding of CloudEvents: requests into events and events into requests, in binary, structured and batch form.

A request that is no CloudEvent at all is refused here; `tidings.events.plain` reads those for the doors that take them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from tidings.errors import EventFault, InvalidEvent
from tidings.events import batch, content_types, structured
from tidings.events.attribute_rules import checked, shortened_name
from tidings.events.content_types import HttpForm
from tidings.events.headers import (
    PREFIX,
    RawHeaders,
    SortedHeaders,
    content_type_of,
    decoded_value,
    encoded_value,
    has_context,
    sorted_out,
)
from tidings.events.limits import Limits
from tidings.events.model import Event
from tidings.events.structured import structured_json, structured_line

Headers: TypeAlias = list[tuple[str, str]]
"""Headers to send: names in lower case, values in visible ASCII."""

__all__ = [
    "Headers",
    "Limits",
    "RawHeaders",
    "decode",
    "encode_batch",
    "encode_binary",
    "encode_structured",
    "is_cloudevent",
    "structured_json",
    "structured_line",
]


def is_cloudevent(headers: RawHeaders) -> bool:
    """Whether a request means to be a CloudEvent: by its content type or by any ce- header."""
    return has_context(headers) or content_types.is_cloudevents(content_type_of(headers))


def decode(headers: RawHeaders, body: bytes, limits: Limits) -> list[Event]:
    """The events of a request, all of them valid. All or nothing: one bad event refuses the request.

    Raises InvalidEvent or Malformed (the content), TooLarge (the limits), UnsupportedFormat (a format other than JSON).
    """
    return decode_sorted(sorted_out(headers, limits.transport_headers), body, limits)


def decode_sorted(told: SortedHeaders, body: bytes, limits: Limits) -> list[Event]:
    """`decode` for a request whose headers were already looked through."""
    match content_types.mode_of(told.content_type):
        case HttpForm.BINARY:
            return [_binary(told, body, limits)]
        case HttpForm.STRUCTURED:
            limits.check_event(len(body))
            return [structured.read(body, told.transport)]
        case HttpForm.BATCH:
            return batch.read(body, told.transport, limits)


def _binary(told: SortedHeaders, body: bytes, limits: Limits) -> Event:
    limits.check_event(len(body) + told.context_bytes)
    if not told.context:
        detail = "this is no CloudEvent: it has neither ce- headers nor a content type of application/cloudevents"
        raise InvalidEvent([EventFault(0, "specversion", "missing", detail)])
    attributes = _context_of(told)
    if told.content_type:
        attributes["datacontenttype"] = told.content_type
    # Without a content type the body is bytes of no type (CEH-08): nothing may imply JSON for it.
    typeless = not told.content_type and body != b""
    return checked(attributes, body or None, base64=typeless, transport=told.transport)


def _context_of(told: SortedHeaders) -> dict[str, str]:
    attributes: dict[str, str] = {}
    faults: list[EventFault] = []
    for name, value in told.context:
        if name in attributes:
            faults.append(_fault(name, "duplicate", f"the header {PREFIX}{shortened_name(name)} appears twice"))
        elif name == "datacontenttype":
            faults.append(_fault(name, "bad-name", "the content type is told by Content-Type, not by ce-datacontenttype"))
        try:
            attributes[name] = decoded_value(value)
        except UnicodeDecodeError:
            faults.append(_fault(name, "bad-character", "the value is not valid UTF-8"))
    if faults:
        raise InvalidEvent(faults)
    return attributes


def _fault(name: str, code: str, detail: str) -> EventFault:
    return EventFault(0, shortened_name(name), code, detail)


def encode_binary(event: Event) -> tuple[Headers, bytes]:
    """The event with its attributes as headers and its payload as the body."""
    content_type = event.datacontenttype
    if content_type is None and event.data is not None and not event.base64:
        content_type = content_types.JSON  # implied so far; other forms have to say it (CEJ-05)
    headers = [("content-type", content_type)] if content_type is not None else []
    for name, value in event.attributes.items():
        if name != "datacontenttype":
            headers.append((PREFIX + name, encoded_value(value)))
    headers.extend(event.transport.items())
    return headers, event.data or b""


def encode_structured(event: Event) -> tuple[Headers, bytes]:
    """The event as one JSON object, with the exact content type that every SDK knows (WH-20)."""
    return [("content-type", content_types.STRUCTURED), *event.transport.items()], structured_json(event)


def encode_batch(events: Iterable[Event]) -> tuple[Headers, bytes]:
    """The events as one JSON array. Transport headers belong to one event each and are left out."""
    return [("content-type", content_types.BATCH)], b"[%b]" % b",".join(map(structured_json, events))
