"""Blocks of lane entries: packing, reading, and cutting them to a range of offsets.

`offsets` is little-endian int64. `payloads`, where a block has any, is a MessagePack array with one item per entry: the
projected body, or nil for an entry that refers to the log.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from collections.abc import Sequence

import msgspec

from tidings.log.port import Block
from tidings.log.position import LaneNumber, Offset, Partition

_payloads = msgspec.msgpack.Decoder(list[bytes | None])


def packed(
    lane: LaneNumber,
    offsets: Sequence[int],
    payloads: Sequence[bytes | None] | None = None,
    partition: Partition = Partition(0),
) -> Block:
    """A block of these rising offsets (at least one)."""
    return Block(
        lane=lane,
        partition=partition,
        first=Offset(offsets[0]),
        last=Offset(offsets[-1]),
        count=len(offsets),
        offsets=_little(array("q", offsets)).tobytes(),
        payloads=None if payloads is None else msgspec.msgpack.encode(payloads),
    )


def offsets_of(block: Block) -> array[int]:
    """The offsets of a block's entries."""
    return _little(array("q", block.offsets))


def payloads_of(block: Block) -> Sequence[bytes | None]:
    """One projected body per entry; None where the entry refers to the log."""
    return [None] * block.count if block.payloads is None else _payloads.decode(block.payloads)


def count_above(block: Block, after: Offset) -> int:
    """How many entries of the block are after `after`."""
    if block.first > after:
        return block.count
    return block.count - bisect_right(offsets_of(block), after)


def within(block: Block, after: Offset, upto: Offset) -> Block | None:
    """The part of the block after `after` and at or below `upto`; None when nothing is left."""
    if block.first > after and block.last <= upto:
        return block
    offsets = offsets_of(block)
    low, high = bisect_right(offsets, after), bisect_right(offsets, upto)
    if low >= high:
        return None
    payloads = None if block.payloads is None else payloads_of(block)[low:high]
    return packed(block.lane, offsets[low:high], payloads, block.partition)


def _little(numbers: array[int]) -> array[int]:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
