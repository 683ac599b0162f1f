"""An event as Horizon writes it (HOR-108): a fixed set of members in a fixed order, those without a value left out."""

from __future__ import annotations

import base64

import msgspec

from tidings.events import content_types, json_text
from tidings.events.model import PLAIN, TEXT, VALUE, Event
from tidings.events.stored import DATAREF

MEMBERS = ("id", "type", "source", "specversion", "datacontenttype", "dataref", "time")

_LINE_BREAKS = bytes.maketrans(b"\r\n", b"  ")
_encode = msgspec.json.Encoder().encode


def is_json(content_type: str | None) -> bool:
    """Whether payloads of this type are JSON here: `text/json`, which CloudEvents take for it, is not (HOR-65)."""
    if content_type is None or content_type == content_types.JSON:
        return True
    essence = content_types.essence_of(content_type)
    return essence == content_types.JSON or (essence.startswith("application/") and essence.endswith("+json"))


def horizon_json(event: Event, *, parsed: bool = False) -> bytes:
    """The event on one line, with its payload where it has one. `parsed`: JSON that came as a text goes on as JSON (HOR-68)."""
    head = _head(event)
    return head if event.data is None else b"%b,%b}" % (head[:-1], _payload(event, event.data, parsed))


def horizon_reference(event: Event, address: str) -> bytes:
    """The event with the address of its payload instead of it (HOR-145); one without a payload stays as it is (HOR-147)."""
    return _head(event) if event.data is None else _head(event, address)


def _head(event: Event, dataref: str = "") -> bytes:
    given = {**event.attributes, DATAREF: dataref} if dataref else event.attributes
    return _encode({name: given[name] for name in MEMBERS if name in given})


def _payload(event: Event, data: bytes, parsed: bool) -> bytes:
    """A JSON value in its own text, anything else as a string; bytes that are no text, as CloudEvents have them."""
    content_type = event.datacontenttype or ""
    if not event.base64:
        if _is_value(event, parsed) and json_text.is_sound(data):
            return b'"data":' + data.strip().translate(_LINE_BREAKS)
        try:
            return b'"data":' + _encode(data.decode(content_types.codec_of(content_type) or "utf-8"))
        except UnicodeDecodeError:
            pass
    return b'"data_base64":"%b"' % base64.b64encode(data)


def _is_value(event: Event, parsed: bool) -> bool:
    """Whether the payload is written as a JSON value, not as a string."""
    if event.form == TEXT:
        return parsed
    return event.form == VALUE or (event.form != PLAIN and content_types.is_json(event.datacontenttype))
