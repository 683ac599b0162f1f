"""What the headers of a publish request come to: the ordering key, and headers that travel with the message (HER-69, HER-70)."""

from __future__ import annotations

from collections.abc import Collection

from tidings.events.headers import RawHeaders

PARTITION_KEY = b"partition-key"
MESSAGE_ID = b"hermes-message-id"
LONGEST_KEY = 4096

_OF_THE_REQUEST = frozenset(
    (
        PARTITION_KEY,
        MESSAGE_ID,
        *(b"authorization", b"cookie", b"connection", b"content-length", b"content-type", b"content-encoding", b"expect"),
        *(b"host", b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade", b"schema-version", b"accept-encoding"),
    )
)
"""Headers that are about the request itself, or secret: they never travel."""


def partition_key(headers: RawHeaders) -> str:
    """The ordering key that a publisher names; empty: none."""
    for name, value in headers:
        if name == PARTITION_KEY:
            return value.decode("utf-8", "replace").strip()[:LONGEST_KEY]
    return ""


def propagated(headers: RawHeaders, allowed: Collection[str]) -> dict[str, str]:
    """The headers that travel with a message; `allowed` in lower case, empty: all. Those without a value do not."""
    found = {}
    for name, value in headers:
        text = value.decode("latin-1").strip()
        if text and name not in _OF_THE_REQUEST and (not allowed or name.decode("latin-1") in allowed):
            found[name.decode("latin-1")] = text
    return found
