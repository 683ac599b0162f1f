"""The hub's own formats: CloudEvents, structured and binary, and the entry as it is stored, for streams."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tidings.delivery.push.request.formats import Laid, LaneFormat
from tidings.events.http_binding import encode_binary, encode_structured
from tidings.events.stored import event_from
from tidings.lanes.port import StoredEntry
from tidings.registry.model import ContentMode


class StoredEvent(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a stream is given of an entry: enough to write it as any door does."""

    head: bytes
    data: bytes | None


class StructuredFormat(LaneFormat, frozen=True, kw_only=True):
    """The whole event in the body."""

    def shared(self, entry: StoredEntry) -> Laid:
        headers, body = encode_structured(event_from(entry.head, entry.data))
        return Laid(dict(headers), body)


class BinaryFormat(LaneFormat, frozen=True, kw_only=True):
    """The attributes in headers. A binary request has to have a payload, so an event without one goes structured (WH-01)."""

    def shared(self, entry: StoredEntry) -> Laid:
        event = event_from(entry.head, entry.data)
        headers, body = (encode_structured if event.data is None else encode_binary)(event)
        return Laid(dict(headers), body)


class StreamedFormat(LaneFormat, frozen=True, kw_only=True):
    """The entry as it is stored: the door of a stream writes the frames."""

    def shared(self, entry: StoredEntry) -> Laid:
        return Laid({}, msgspec.msgpack.encode(StoredEvent(entry.head, entry.data)))


STRUCTURED = StructuredFormat(key="structured")
BINARY = BinaryFormat(key="binary")
STREAMED = StreamedFormat(key="stored")

BY_MODE: Mapping[ContentMode, LaneFormat] = {ContentMode.STRUCTURED: STRUCTURED, ContentMode.BINARY: BINARY}
