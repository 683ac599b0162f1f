"""Where feeds of subscriptions read: their lanes, already filtered and projected by the pipeline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

from tidings.events.stored import without_reference
from tidings.lanes.sqlite.block import DIGEST, REFERENCE, offsets_of
from tidings.log.port import Block, BodyKey, Entry, Extent, LanesReader, Limit, LogReader, Row, Share, Slice
from tidings.log.position import EMBEDDED, START, LaneNumber, Offset, Position, TopicNumber

_BLOCKS = 8


class LaneSource:
    """The entries of one lane. Cursors are offsets of the log, as in the feed of a topic; it ends where routing has come to.

    `topics`: where its entries can come from, to know what of them was removed. `counts`: whether an entry can still be fetched;
    what cannot is passed over, as in every other way of delivery.
    """

    def __init__(
        self,
        lanes: LanesReader,
        log: LogReader,
        lane: LaneNumber,
        topics: Sequence[TopicNumber],
        counts: Callable[[Entry], bool],
    ) -> None:
        self._lanes = lanes
        self._log = log
        self._lane = lane
        self._topics = topics
        self._counts = counts

    def extent(self) -> Extent:
        """See `Source.extent`."""
        last = self._lanes.routed().get(EMBEDDED, START)
        removed = self._removed()
        return Extent(removed, max(removed, last))

    def slice(self, after: Offset, upto: Offset, share: Share, limit: Limit) -> Slice:
        """See `Source.slice`."""
        wanted, reached = self._entries(after, upto, limit.entries)
        found = self._log.fetch([position for position, _ in wanted])
        bodies = self._lanes.bodies([BodyKey(*one) for one in wanted if one[1] != REFERENCE])
        rows = [_row(found[one[0]], bodies.get(BodyKey(*one))) for one in wanted if one[0] in found]
        gone = len(rows) < len(wanted) or any(one[1] != REFERENCE and BodyKey(*one) not in bodies for one in wanted)
        fitting = max(1, sum(size <= limit.bytes for size in accumulate(row[4] for row in rows)))
        if fitting < len(rows):
            rows, reached = rows[:fitting], rows[fitting - 1][0]
        rows = [row for row in rows if self._counts(found[Position(EMBEDDED, row[0])])]
        if share.residues:
            rows = [row for row in rows if row[1] % share.modulus in share.residues]
        return Slice(rows, reached, overtaken=gone)

    def _entries(self, after: Offset, upto: Offset, limit: int) -> tuple[list[tuple[Position, bytes]], Offset]:
        """The next entries with the digests of their bodies, and how far they reach."""
        found: list[tuple[Position, bytes]] = []
        while blocks := self._lanes.blocks(self._lane, after, EMBEDDED, _BLOCKS):
            for entry in (entry for block in blocks for entry in _entries_of(block) if entry[0].offset > after):
                if entry[0].offset > upto:
                    return found, upto
                found.append(entry)
                if len(found) == limit:
                    return found, entry[0].offset
            after = blocks[-1].last
        return found, upto

    def _removed(self) -> Offset:
        """Below what the lane's entries are gone: the last gone one, where topics have lost different parts."""
        marks = [self._log.removed(topic).get(EMBEDDED, START) for topic in self._topics] or [START]
        low, high = min(marks), max(marks)
        if low == high:
            return high
        wanted, _ = self._entries(low, high, 1 << 20)
        there = self._log.fetch([position for position, _ in wanted])
        return max((position.offset for position, _ in wanted if position not in there), default=low)


def _entries_of(block: Block) -> list[tuple[Position, bytes]]:
    digests = block.digests
    return [
        (
            Position(EMBEDDED, Offset(offset)),
            REFERENCE if digests is None else digests[n * DIGEST : (n + 1) * DIGEST],
        )
        for n, offset in enumerate(offsets_of(block))
    ]


def _row(entry: Entry, body: bytes | None) -> Row:
    """The entry, or the part of it that this body is, which does not say where the whole is."""
    head, data = (entry.head, entry.data) if body is None else (without_reference(entry.head), body)
    size = len(head) + len(data or b"") + 64
    return entry.position.offset, entry.key_hash, head, data, size
