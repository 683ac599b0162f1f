"""An event as one JSON object (CEJ-01 to CEJ-07), read and written. The payload keeps its own text (CE-09)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import msgspec

from tidings.errors import EventFault, InvalidEvent, Malformed
from tidings.events import content_types, json_text
from tidings.events.attribute_rules import checked
from tidings.events.model import Event

_ENVELOPE_DEPTH = json_text.MAX_DEPTH + 1
_LINE_BREAKS = bytes.maketrans(b"\r\n", b"  ")


class StructuredPayload(msgspec.Struct, gc=False):
    """Picks the text of `data` out of an event; a member left out stays empty."""

    data: msgspec.Raw = msgspec.Raw()


_payload = msgspec.json.Decoder(StructuredPayload).decode
_encode = msgspec.json.Encoder().encode


def read(text: bytes, transport: Mapping[str, str], index: int = 0) -> Event:
    """The event of a JSON text. Malformed: not such a text at all; InvalidEvent: an object that breaks a rule."""
    value = json_text.parse(text, _ENVELOPE_DEPTH)
    if not isinstance(value, dict):
        raise Malformed(f"an event is a JSON object, not {json_text.kind_of(value)}")
    return from_members(value, payload_of(text) if "data" in value else b"", transport, index)


def payload_of(text: bytes) -> bytes:
    """The text of `data` in an event that was already parsed; empty when there is none."""
    return bytes(_payload(text).data)


def from_members(members: dict[str, Any], payload: bytes, transport: Mapping[str, str], index: int = 0) -> Event:
    """The event of an object that was already parsed, with the text of its `data`. Takes `members` over."""
    has_data = "data" in members
    data = members.pop("data", None)
    encoded = members.pop("data_base64", None)
    if None in members.values():
        members = {name: value for name, value in members.items() if value is not None}
    if encoded is not None:
        if has_data:
            raise _fault(index, "data", "conflict", "data and data_base64 exclude each other")
        return checked(members, _unpacked(encoded, index), base64=True, transport=transport, index=index)
    if not has_data:
        return checked(members, transport=transport, index=index)
    event = checked(members, payload, transport=transport, index=index)
    content_type = members.get("datacontenttype")
    if content_types.is_json(content_type):
        return event
    return msgspec.structs.replace(event, data=_written(data, content_type or "", index))


def _unpacked(encoded: object, index: int) -> bytes:
    try:
        if isinstance(encoded, str):
            return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _fault(index, "data_base64", "bad-format", f"this is not base64: {error}") from None
    raise _fault(index, "data_base64", "bad-type", "data_base64 must be a string")


def _written(data: object, content_type: str, index: int) -> bytes:
    """The bytes of a payload that is not JSON: a string in the charset that its content type names."""
    if not isinstance(data, str):
        raise _fault(index, "data", "bad-type", f"data of type {content_type} must be a string, or use data_base64")
    codec = content_types.codec_of(content_type)
    try:
        if codec is not None:
            return data.encode(codec)
    except UnicodeEncodeError:
        pass
    detail = f"this string cannot be written as {content_type}; use data_base64"
    raise _fault(index, "data", "bad-charset", detail)


def _fault(index: int, attribute: str, code: str, detail: str) -> InvalidEvent:
    return InvalidEvent([EventFault(index, attribute, code, detail)])


def structured_json(event: Event) -> bytes:
    """The event as one JSON object: attributes in their order, then the payload in its own text."""
    head = _encode(event.attributes)
    if event.data is None:
        return head
    return b"%b,%b}" % (head[:-1], _payload_member(event, event.data))


def structured_line(event: Event) -> bytes:
    """The same on one line, without its end: line breaks in JSON are only ever white space."""
    return structured_json(event).translate(_LINE_BREAKS)


def _payload_member(event: Event, data: bytes) -> bytes:
    """CEH-09: JSON under a JSON type as it is, text that decodes as a string, anything else as base64."""
    content_type = event.datacontenttype
    if event.base64:
        return _packed(data)
    if content_types.is_json(content_type):
        return b'"data":' + data.strip() if json_text.is_sound(data) else _packed(data)
    return _text_member(data, content_type or "")


def _text_member(data: bytes, content_type: str) -> bytes:
    codec = content_types.codec_of(content_type) if content_types.is_text(content_type) else None
    if codec is None:
        return _packed(data)
    try:
        return b'"data":' + _encode(data.decode(codec))
    except UnicodeDecodeError:
        return _packed(data)


def _packed(data: bytes) -> bytes:
    return b'"data_base64":"%b"' % base64.b64encode(data)
