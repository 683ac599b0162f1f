"""The CloudEvent as the hub holds it: attributes as sent, payload bytes exactly as published."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import TypeAlias

import msgspec

Attribute: TypeAlias = str | int | bool
"""A context attribute. Timestamps, URIs and binary values stay the text that was sent."""


TEXT, VALUE, PLAIN = "text", "value", "plain"
"""How a payload came where its type does not tell (HOR-65): as a JSON string of this text under a JSON type; or under a type
that its door does not take for JSON, as a JSON value or as a text."""

NO_JSON = (VALUE, PLAIN)
"""Forms of payloads that filters see nothing of, whatever their type says."""


class Event(msgspec.Struct, frozen=True, gc=False):
    """One event. Build it with `http_binding.decode` or `attribute_rules.checked`: one that exists is valid.

    `attributes` holds all context attributes, `specversion` and `datacontenttype` included, in the order they came.
    `data` is the payload: None is no payload, b"null" is the JSON value null.
    `base64` says that the payload came as `data_base64`, or as a body without any type: no JSON type is implied for it.
    `transport` holds the transport headers that are kept beside the event.
    `form` says how the payload came where its type does not: TEXT, VALUE or PLAIN.
    `avro` is the fingerprint of the Avro schema that the payload was written by; empty: the payload is not Avro.
    `notes` is what a door keeps beside the event for itself, such as who published it; no subscriber gets them.
    """

    attributes: Mapping[str, Attribute]
    data: bytes | None = None
    base64: bool = False
    transport: Mapping[str, str] = msgspec.field(default_factory=dict)
    form: str = ""
    notes: Mapping[str, str] = msgspec.field(default_factory=dict)
    avro: str = ""

    @property
    def id(self) -> str:
        return str(self.attributes["id"])

    @property
    def source(self) -> str:
        return str(self.attributes["source"])

    @property
    def type(self) -> str:
        return str(self.attributes["type"])

    @property
    def datacontenttype(self) -> str | None:
        value = self.attributes.get("datacontenttype")
        return None if value is None else str(value)


def partition_key(attributes: Mapping[str, Attribute], key_attribute: str = "subject") -> str:
    """What keeps events in order together: `partitionkey`, else the topic's key attribute, else `id` (FEED-12)."""
    key = attributes.get("partitionkey")
    if key is None:
        key = attributes.get(key_attribute)
    return text_of(attributes["id"] if key is None else key)


def key_hash(key: str) -> int:
    """0 ≤ h < 2^63: BLAKE2b with 8 bytes, big-endian, top bit cleared (FEED-12). Stored with the event, never changes."""
    return int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "big") & 0x7FFF_FFFF_FFFF_FFFF


def text_of(value: Attribute) -> str:
    """The canonical string form of an attribute."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
