"""A stored event as one compact line of JSON: no insignificant white space, no character that any splitter takes for a line end.

Number spelling, key order and string contents stay (FEED-26). The usual event is put together from its stored bytes; only
what is unusual (transport headers, bytes, text, unsound JSON) is unpacked first.
"""

from __future__ import annotations

import msgspec

from tidings.events import json_text
from tidings.events.stored import event_from
from tidings.events.structured import structured_json

_JSON_TYPE = b'"datacontenttype":"application/json"'
_ANY_TYPE = b'"datacontenttype"'
_OWN_MEMBERS = b'"$'
_LINE_ENDS = ((b"\xc2\x85", rb"\u0085"), (b"\xe2\x80\xa8", rb"\u2028"), (b"\xe2\x80\xa9", rb"\u2029"))

_format = msgspec.json.format
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def compact_event(head: bytes, data: bytes | None, before: bytes = b"", after: bytes = b"") -> bytes:
    """The whole event as a JSON object between `before` and `after`.

    Quotes inside of JSON strings are escaped, so names can be looked for as bytes.
    """
    if _OWN_MEMBERS in head or (_JSON_TYPE not in head and _ANY_TYPE in head):
        return before + compacted(structured_json(event_from(head, data))) + after
    if data is None:
        return before + head + after
    if not _as_written(data):
        if not json_text.is_sound(data):
            return before + compacted(structured_json(event_from(head, data))) + after
        data = _format(data, indent=-1)
    return b'%b%b,"data":%b}%b' % (before, head[:-1], data, after)


def _as_written(data: bytes) -> bool:
    """Whether this is sound JSON, and compact already: just what would be written for its value. Most payloads are."""
    try:
        return bool(_encode(_decode(data)) == data) and not json_text.may_be_too_deep(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def compact_payload(head: bytes, data: bytes | None, before: bytes = b"", after: bytes = b"") -> bytes:
    """The payload alone: JSON as it is, text and bytes (as base64) as a string, none as an empty object.

    So is null: some readers end at it (ZEH-C6).
    """
    if data is None or data.strip() == b"null":
        return before + b"{}" + after
    members = msgspec.json.decode(structured_json(event_from(head, data)), type=dict[str, msgspec.Raw])
    return before + compacted(bytes(members["data"] if "data" in members else members["data_base64"])) + after


def compacted(text: bytes) -> bytes:
    """Sound JSON without its insignificant white space."""
    return _format(text, indent=-1)


def on_one_line(text: bytes) -> bytes:
    """Compact JSON in which no splitter finds a line end: what Unicode holds for one is escaped. Safe for many lines at once."""
    if text.isascii():
        return text
    for raw, escaped in _LINE_ENDS:
        if raw in text:
            text = text.replace(raw, escaped)
    return text
