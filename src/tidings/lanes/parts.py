"""What projections left of an event is a part of it. Lanes that hold equal parts of one event share one, by its key."""

from __future__ import annotations

import hashlib

KEY_BYTES = 16
WHOLE = bytes(KEY_BYTES)
"""Stands for the key of an entry that is the event as the log has it."""


def key_of(data: bytes) -> bytes:
    """The key of a part; never that of a whole event."""
    return hashlib.blake2b(data, digest_size=KEY_BYTES).digest()
