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
    # Written by hand: every plain event gets one, and the uuid module takes three times as long.
    digits = os.urandom(16).hex()
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


class DeliveryName(NamedTuple):
    """What a delivery id stands for."""

    lane: int
    partition: int
    offset: int


class DeliveryIds:
    """Turns delivery names into ids and back, under one key. Safe to share between threads."""

    def __init__(self, key: bytes) -> None:
        keys = [hashlib.blake2b(bytes([n]), key=key[:64], digest_size=32).digest() for n in range(_ROUNDS)]
        # Keyed once and copied for every use: an id is made for every delivery.
        self._keyed = [hashlib.blake2b(key=each, digest_size=8) for each in keys]

    def id_of(self, name: DeliveryName) -> uuid.UUID:
        return uuid.UUID(int=self._number_of(name))

    def text_of(self, lane: int, partition: int, offset: int) -> str:
        """The id as text, as `str(id_of(…))` writes it, without making the UUID."""
        text = f"{self._number_of((lane, partition, offset)):032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def _number_of(self, name: tuple[int, int, int]) -> int:
        lane, partition, offset = name
        packed = (lane << (_PARTITION_BITS + _OFFSET_BITS)) | (partition << _OFFSET_BITS) | offset
        left, right = packed >> _HALF_BITS, packed & _HALF_MASK
        for keyed in self._keyed:
            # _mix, written out: this runs for every delivery.
            hashed = keyed.copy()
            hashed.update(right.to_bytes(8, "big"))
            left, right = right, left ^ (int.from_bytes(hashed.digest(), "big") & _HALF_MASK)
        return _as_number((left << _HALF_BITS) | right)

    def name_of(self, delivery_id: uuid.UUID) -> DeliveryName:
        packed = _from_uuid(delivery_id)
        left, right = packed >> _HALF_BITS, packed & _HALF_MASK
        for keyed in reversed(self._keyed):
            left, right = right ^ _mix(keyed, left), left
        packed = (left << _HALF_BITS) | right
        offset = packed & ((1 << _OFFSET_BITS) - 1)
        partition = (packed >> _OFFSET_BITS) & ((1 << _PARTITION_BITS) - 1)
        return DeliveryName(packed >> (_OFFSET_BITS + _PARTITION_BITS), partition, offset)


def _mix(keyed: hashlib.blake2b, half: int) -> int:
    hashed = keyed.copy()
    hashed.update(half.to_bytes(8, "big"))
    return int.from_bytes(hashed.digest(), "big") & _HALF_MASK


def _as_number(bits: int) -> int:
    """122 bits in the free places of a version 8 (custom) UUID."""
    high, middle, low = bits >> 74, (bits >> 62) & 0xFFF, bits & ((1 << 62) - 1)
    return (high << 80) | (8 << 76) | (middle << 64) | (2 << 62) | low


def _from_uuid(value: uuid.UUID) -> int:
    number = value.int
    return ((number >> 80) << 74) | (((number >> 64) & 0xFFF) << 62) | (number & ((1 << 62) - 1))
