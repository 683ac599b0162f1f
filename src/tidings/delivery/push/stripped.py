"""Entries of lanes as they are sent: whole, or what projections left of them.

Sending a whole event where a part was granted would be worse than sending nothing, so an entry whose digest or body is not to
be had counts as gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from tidings.delivery.push.store import LaneKey, position_of
from tidings.events.stored import without_reference
from tidings.log.block import DIGEST, REFERENCE, digest_in, offsets_of
from tidings.log.port import Block, BodyKey, Entry, LanesReader
from tidings.log.position import Offset, Position

GONE = b""


class LaneEntry(NamedTuple):
    """An entry of a lane. `digest`: REFERENCE for the event as it is in the log, GONE when no block holds it any more."""

    offset: Offset
    digest: bytes


def references(offsets: Sequence[int]) -> list[LaneEntry]:
    """Entries that refer to the log."""
    return [LaneEntry(Offset(offset), REFERENCE) for offset in offsets]


def entries_with(offsets: Sequence[int], digests: bytes) -> list[LaneEntry]:
    """Entries with the digests that a block has for them, 16 bytes each."""
    return [LaneEntry(Offset(offset), digests[n * DIGEST : (n + 1) * DIGEST]) for n, offset in enumerate(offsets)]


def entries_of(block: Block) -> list[LaneEntry]:
    """All entries of a block."""
    offsets = offsets_of(block)
    return references(offsets) if block.digests is None else entries_with(offsets, block.digests)


class Stripped:
    """Finds out which entries of a lane are projected, and their bodies."""

    def __init__(self, lanes: LanesReader) -> None:
        self._lanes = lanes

    def entries(self, key: LaneKey, offsets: Sequence[Offset]) -> list[LaneEntry]:
        """The lane's entries at these offsets, in the order given."""
        found: dict[Offset, bytes] = {}
        for offset in sorted(offsets):
            if offset not in found:
                block = next(iter(self._lanes.blocks(key.lane, Offset(offset - 1), key.partition, 1)), None)
                if block is not None:
                    found.update({other: digest_in(block, other) or GONE for other in offsets if offset <= other <= block.last})
        return [LaneEntry(offset, found.get(offset, GONE)) for offset in offsets]

    def datas(
        self, key: LaneKey, wanted: Sequence[LaneEntry], found: Mapping[Position, Entry]
    ) -> Mapping[LaneEntry, bytes | None]:
        """The payloads to send of those that are there; `found` is what the log has of them."""
        return {entry: data for entry, _, data in self.payloads(key, wanted, found)}

    def payloads(
        self, key: LaneKey, wanted: Sequence[LaneEntry], found: Mapping[Position, Entry]
    ) -> Iterator[tuple[LaneEntry, Entry, bytes | None]]:
        """The same, each with what the log has of it; the head of a part does not say where the whole is."""
        stripped = [entry for entry in wanted if entry.digest not in (REFERENCE, GONE)]
        keys = {entry: BodyKey(position_of(key, entry.offset), entry.digest) for entry in stripped}
        bodies = self._lanes.bodies(list(keys.values())) if keys else {}
        by_offset = {position.offset: entry for position, entry in found.items()}
        for entry in wanted:
            stored = by_offset.get(entry.offset)
            if stored is None:
                continue
            if entry.digest == REFERENCE:
                yield entry, stored, stored.data
            elif (body := bodies.get(keys[entry]) if entry in keys else None) is not None:
                yield entry, msgspec.structs.replace(stored, head=without_reference(stored.head)), body
