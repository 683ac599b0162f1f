"""Blocks of lane entries: packing, reading, and cutting them to a range of offsets.

A block is a run of a lane, as it is kept.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from tidings.lanes.parts import KEY_BYTES, WHOLE
from tidings.lanes.sink import LaneRun
from tidings.log.position import LaneNumber, Offset, Partition


class LaneBegin(NamedTuple):
    """A lane that was filled anew begins after this offset, with the entry after this number. `filling` counts how often it was."""

    filling: int
    number: int
    offset: Offset


class Block(LaneRun, frozen=True, gc=False):
    """A run as it is read. `before` is how many entries the lane has had before it, removed ones included; `begin` is where the
    lane begins, if it was filled anew.
    """

    before: int = -1
    begin: LaneBegin | None = None


def packed(
    lane: LaneNumber,
    offsets: Sequence[int],
    keys: bytes | None = None,
    partition: Partition = Partition(0),
) -> LaneRun:
    """A block of these rising offsets (at least one)."""
    return LaneRun(
        lane=lane,
        partition=partition,
        first=Offset(offsets[0]),
        last=Offset(offsets[-1]),
        count=len(offsets),
        offsets=_little(array("q", offsets)).tobytes(),
        keys=keys,
    )


def offsets_of(block: LaneRun) -> array[int]:
    """The offsets of a block's entries."""
    return _little(array("q", block.offsets))


def key_in(block: LaneRun, offset: Offset) -> bytes | None:
    """The key of the block's entry at this offset; None when it has no such entry."""
    offsets = offsets_of(block)
    at = bisect_left(offsets, offset)
    if at == len(offsets) or offsets[at] != offset:
        return None
    return WHOLE if block.keys is None else block.keys[at * KEY_BYTES : (at + 1) * KEY_BYTES]


def count_above(block: LaneRun, after: Offset) -> int:
    """How many entries of the block are after `after`."""
    if block.first > after:
        return block.count
    return block.count - bisect_right(offsets_of(block), after)


def within(block: LaneRun, after: Offset, upto: Offset) -> LaneRun | None:
    """The part of the block after `after` and at or below `upto`; None when nothing is left."""
    if block.first > after and block.last <= upto:
        return block
    offsets = offsets_of(block)
    low, high = bisect_right(offsets, after), bisect_right(offsets, upto)
    if low >= high:
        return None
    keys = None if block.keys is None else block.keys[low * KEY_BYTES : high * KEY_BYTES]
    return packed(block.lane, offsets[low:high], keys, block.partition)


def _little(numbers: array[int]) -> array[int]:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
