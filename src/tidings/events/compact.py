"""A stored event as one compact line of JSON: no insignificant white space, no character that any splitter takes for a line end.

Number spelling, key order and string contents stay (FEED-26). The usual event is put together from its stored bytes; only
what is unusual (transport headers, bytes, text, unsound JSON) is unpacked first.
"""

from __future__ import annotations

import msgspec

from tidings.events import jsontext
from tidings.events.stored import event_from
from tidings.events.structured import structured_json

_JSON_TYPE = b'"datacontenttype":"application/json"'
_ANY_TYPE = b'"datacontenttype"'
_OWN_MEMBERS = b'"$'
_LINE_ENDS = ((b"\xc2\x85", rb"\u0085"), (b"\xe2\x80\xa8", rb"\u2028"), (b"\xe2\x80\xa9", rb"\u2029"))

_format = msgspec.json.format
_sound = jsontext.is_sound


def compact_event(head: bytes, data: bytes | None) -> bytes:
    """The whole event as a JSON object. Quotes inside of JSON strings are escaped, so names can be looked for as bytes."""
    if _OWN_MEMBERS in head or (_JSON_TYPE not in head and _ANY_TYPE in head):
        return compacted(structured_json(event_from(head, data)))
    if data is None:
        return head
    if not _sound(data):
        return compacted(structured_json(event_from(head, data)))
    return b'%b,"data":%b}' % (head[:-1], _format(data, indent=-1))


def compact_payload(head: bytes, data: bytes | None) -> bytes:
    """The payload alone: JSON as it is, text and bytes (as base64) as a string, none as an empty object."""
    if data is None:
        return b"{}"
    members = msgspec.json.decode(structured_json(event_from(head, data)), type=dict[str, msgspec.Raw])
    return compacted(bytes(members["data"] if "data" in members else members["data_base64"]))


def compacted(text: bytes) -> bytes:
    """Sound JSON without its insignificant white space."""
    return _format(text, indent=-1)


def on_one_line(text: bytes) -> bytes:
    """Compact JSON in which no splitter finds a line end: what Unicode holds for one is escaped. Safe for many lines at once."""
    for raw, escaped in _LINE_ENDS:
        if raw in text:
            text = text.replace(raw, escaped)
    return text
