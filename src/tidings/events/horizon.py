"""An event as Horizon writes it (HOR-108): a fixed set of members in a fixed order, those without a value left out."""

from __future__ import annotations

import base64

import msgspec

from tidings.events import jsontext, media
from tidings.events.model import TEXT, VALUE, Event

MEMBERS = ("id", "type", "source", "specversion", "datacontenttype", "dataref", "time")
DATAREF = "dataref"

_LINE_BREAKS = bytes.maketrans(b"\r\n", b"  ")
_encode = msgspec.json.Encoder().encode


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
        is_json = event.form == VALUE or (media.is_json(event.datacontenttype) and (parsed or event.form != TEXT))
        if is_json and jsontext.is_sound(data):
            return b'"data":' + data.strip().translate(_LINE_BREAKS)
        try:
            return b'"data":' + _encode(data.decode(media.codec_of(content_type) or "utf-8"))
        except UnicodeDecodeError:
            pass
    return b'"data_base64":"%b"' % base64.b64encode(data)
