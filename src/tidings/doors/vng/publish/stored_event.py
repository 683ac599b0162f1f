"""What is stored of an event: attributes under their keys, and a note of names that are spelled otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tidings.doors.vng.names import NAMESPACE
from tidings.doors.vng.publish.event_rules import REFERENCE_KEY, bytes_of
from tidings.events.attribute_names import attribute_key
from tidings.events.model import Event
from tidings.events.structured import payload_of

SPELLED = f"{NAMESPACE}-names"
"""The note that holds, per key, how the sender spelled the name."""

_PAYLOAD = ("data", "data_base64")
_CONTEXT = ("specversion", "id", "source", "domain", "type", "time", "subject", "datacontenttype", "dataschema")
_PLAIN = frozenset((*_CONTEXT, "subscription", "sequence", "sequencetype", "dataref"))


def stored_event(members: Mapping[str, Any], body: bytes, transport: Mapping[str, str]) -> Event:
    """The event of members that obey the rules; `body` is the text they were read from."""
    attributes: dict[str, str] = {}
    spelled: dict[str, str] = {}
    for name, value in members.items():
        if value is None or name in _PAYLOAD:
            continue
        if name in _PLAIN:
            attributes[name] = value
            continue
        key = attribute_key(name)
        attributes[key] = value
        if key not in (name, REFERENCE_KEY):
            spelled[key] = name
    notes = {SPELLED: msgspec.json.encode(spelled).decode()} if spelled else {}
    if "data" in members:
        return Event(attributes, payload_of(body), False, transport, "", notes)
    encoded = members.get("data_base64")
    if encoded is None:
        return Event(attributes, None, False, transport, "", notes)
    return Event(attributes, bytes_of(encoded), True, transport, "", notes)
