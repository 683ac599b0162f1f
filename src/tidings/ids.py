"""Ids: random ones for events that come without, and the name of a delivery, which is the same for ever.

A delivery is (lane, partition, offset). Its id is a keyed permutation of those 122 bits, shown as a UUID: not guessable
without the key, needs no index, and can be turned back.
"""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Callable
from typing import NamedTuple

_LANE_BITS, _PARTITION_BITS, _OFFSET_BITS = 32, 32, 58
_HALF_BITS = 61
_HALF_MASK = (1 << _HALF_BITS) - 1
_ROUNDS = 4

NewId = Callable[[], str]


def random_id() -> str:
    """A random UUID (version 4) as text."""
    return str(uuid.UUID(bytes=os.urandom(16), version=4))


class DeliveryName(NamedTuple):
    """What a delivery id stands for."""

    lane: int
    partition: int
    offset: int


class DeliveryIds:
    """Turns delivery names into ids and back, under one key. Safe to share between threads."""

    def __init__(self, key: bytes) -> None:
        self._keys = [hashlib.blake2b(bytes([n]), key=key[:64], digest_size=32).digest() for n in range(_ROUNDS)]

    def id_of(self, name: DeliveryName) -> uuid.UUID:
        packed = (name.lane << (_PARTITION_BITS + _OFFSET_BITS)) | (name.partition << _OFFSET_BITS) | name.offset
        left, right = packed >> _HALF_BITS, packed & _HALF_MASK
        for key in self._keys:
            left, right = right, left ^ _mix(key, right)
        return _as_uuid((left << _HALF_BITS) | right)

    def name_of(self, delivery_id: uuid.UUID) -> DeliveryName:
        packed = _from_uuid(delivery_id)
        left, right = packed >> _HALF_BITS, packed & _HALF_MASK
        for key in reversed(self._keys):
            left, right = right ^ _mix(key, left), left
        packed = (left << _HALF_BITS) | right
        offset = packed & ((1 << _OFFSET_BITS) - 1)
        partition = (packed >> _OFFSET_BITS) & ((1 << _PARTITION_BITS) - 1)
        return DeliveryName(packed >> (_OFFSET_BITS + _PARTITION_BITS), partition, offset)


def _mix(key: bytes, half: int) -> int:
    digest = hashlib.blake2b(half.to_bytes(8, "big"), key=key, digest_size=8).digest()
    return int.from_bytes(digest, "big") & _HALF_MASK


def _as_uuid(bits: int) -> uuid.UUID:
    """122 bits into the free places of a version 8 (custom) UUID."""
    high, middle, low = bits >> 74, (bits >> 62) & 0xFFF, bits & ((1 << 62) - 1)
    return uuid.UUID(int=(high << 80) | (8 << 76) | (middle << 64) | (2 << 62) | low)


def _from_uuid(value: uuid.UUID) -> int:
    number = value.int
    return ((number >> 80) << 74) | (((number >> 64) & 0xFFF) << 62) | (number & ((1 << 62) - 1))
