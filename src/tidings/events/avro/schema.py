"""An Avro schema, ready for its payloads: checked, decoded, as JSON, from JSON. Pure; safe to share between threads."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any

import msgspec

from tidings.errors import AvroFault, EventFault, Malformed
from tidings.events import json_text
from tidings.events.avro.binary import AvroMismatch, Skips, Walk
from tidings.events.avro.decoding import AvroDecoder
from tidings.events.avro.encoding import Writes, Written
from tidings.events.avro.measures import Measures
from tidings.events.avro.metadata import METADATA, MetadataSlot, metadata_fault
from tidings.events.avro.names import fingerprint
from tidings.events.avro.parser import tree_of
from tidings.events.avro.tree import AvroRecord, AvroTree

_KEPT = 512
_FAULT = "avro"
_encode = msgspec.json.Encoder().encode


class AvroSchema:
    """One schema. Make it with `compiled`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.fingerprint = fingerprint(text)
        self.tree: AvroTree = tree_of(text)
        self._measures = Measures(self.tree)
        self._bare = Writes()
        self._bare.check_defaults(self.tree.names.values())
        self._skips = Skips()
        self._skip = self._skips.of(self.tree.root)
        self._decoder = AvroDecoder(self.tree)
        self._metadata_fault = metadata_fault(self.tree.root)

    def check(self, data: bytes) -> None:
        """Raise AvroFault unless the bytes are one value of this schema, with nothing behind it."""
        walk = Walk(data)
        try:
            end = self._skip(walk, 0)
        except AvroMismatch as mismatch:
            raise _fault(mismatch) from None
        if end != len(data):
            raise AvroFault(f"the value ends at byte {end} and the payload has {len(data)}", "")

    def value(self, data: bytes) -> Any:
        """The value of a payload that was checked, as JSON has it. Raises AvroFault for bytes that are none."""
        if not self._measures.tame:
            self.check(data)
        try:
            return self._decoder.value(data)
        except Exception as error:  # fastavro has no one kind of error for what it cannot read
            self.check(data)
            raise AvroFault(f"the payload cannot be decoded: {type(error).__name__}", "") from error

    def json(self, data: bytes, *, metadata: bool = False) -> bytes:
        """The payload as JSON, without `__metadata` unless that is asked for (HER-76)."""
        value = self.value(data)
        if not metadata and self.has_metadata:
            value.pop(METADATA, None)
        return _encode(value)

    def from_json(self, text: bytes) -> bytes:
        """Avro binary of a JSON text whose unions are bare. Raises Malformed, and AvroFault with the place."""
        return self.from_value(json_text.parse(text))

    def from_value(self, value: Any) -> bytes:
        """Avro binary of a JSON value that was parsed already."""
        return self._written(self._bare, value)

    def from_avro_json(self, text: bytes) -> bytes:
        """Avro binary of Avro's own JSON, where unions name their branch."""
        return self._written(self._wrapped, json_text.parse(text))

    @property
    def has_metadata(self) -> bool:
        """Whether messages carry `__metadata` as Hermes wants it."""
        return not self._metadata_fault

    @property
    def metadata_fault(self) -> str:
        """Why messages cannot carry `__metadata` (HER-30); empty: they can."""
        return self._metadata_fault

    def with_metadata(self, data: bytes, metadata: Mapping[str, str]) -> bytes:
        """The payload with this metadata; unchanged where the schema has no place for it. Raises AvroFault."""
        if self._metadata_fault:
            return data
        try:
            return self._slot.filled(data, metadata)
        except AvroMismatch as mismatch:
            raise _fault(mismatch) from None

    def faults(self, data: bytes | None, index: int = 0) -> list[EventFault]:
        """What is wrong with a payload, as publishers are told; empty when it fits."""
        if data is None:
            return [EventFault(index, "data", _FAULT, "the topic's Avro schema expects data and there is none")]
        try:
            self.check(data)
        except AvroFault as fault:
            return [fault_of_event(fault, index)]
        return []

    @cached_property
    def _wrapped(self) -> Writes:
        return Writes(self._bare)

    @cached_property
    def _slot(self) -> MetadataSlot:
        assert isinstance(self.tree.root, AvroRecord)
        return MetadataSlot(self.tree.root, self._skips)

    def _written(self, writes: Writes, value: Any) -> bytes:
        out = Written()
        try:
            writes.of(self.tree.root)(value, out)
        except AvroMismatch as mismatch:
            raise _fault(mismatch) from None
        return bytes(out)


@lru_cache(maxsize=_KEPT)
def compiled(text: str) -> AvroSchema:
    """The schema of a text. Raises Malformed with the place when it is none, or too large."""
    return AvroSchema(text)


def fault_of_event(fault: Malformed, index: int) -> EventFault:
    """A fault as one of an event in a request."""
    if isinstance(fault, AvroFault):
        return EventFault(index, "data", _FAULT, fault.what, fault.pointer)
    return EventFault(index, "data", _FAULT, str(fault))


def _fault(mismatch: AvroMismatch) -> AvroFault:
    return AvroFault(str(mismatch), mismatch.pointer)
