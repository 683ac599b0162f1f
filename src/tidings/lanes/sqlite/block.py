"""Blocks of lane entries: packing, reading, and cutting them to a range of offsets.

`offsets` is little-endian int64. `digests`, where a block has any, has 16 bytes per entry: the digest of its projected body, or
zeros for an entry that refers to the log.
"""

from __future__ import annotations

import hashlib
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from tidings.log.port import Block
from tidings.log.position import LaneNumber, Offset, Partition

DIGEST = 16
REFERENCE = bytes(DIGEST)
"""Stands for the digest of an entry that has no body of its own."""


def packed(
    lane: LaneNumber,
    offsets: Sequence[int],
    digests: bytes | None = None,
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
        digests=digests,
    )


def offsets_of(block: Block) -> array[int]:
    """The offsets of a block's entries."""
    return _little(array("q", block.offsets))


def digest_of(data: bytes) -> bytes:
    """The digest of a projected body; never that of a reference."""
    return hashlib.blake2b(data, digest_size=DIGEST).digest()


def digest_in(block: Block, offset: Offset) -> bytes | None:
    """The digest of the block's entry at this offset; None when it has no such entry."""
    offsets = offsets_of(block)
    at = bisect_left(offsets, offset)
    if at == len(offsets) or offsets[at] != offset:
        return None
    return REFERENCE if block.digests is None else block.digests[at * DIGEST : (at + 1) * DIGEST]


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
    digests = None if block.digests is None else block.digests[low * DIGEST : high * DIGEST]
    return packed(block.lane, offsets[low:high], digests, block.partition)


def _little(numbers: array[int]) -> array[int]:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
