"""Where feeds of subscriptions read: their lanes, already filtered and projected by the pipeline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tidings.clock import Instant
from tidings.lanes.port import LaneEntry, LaneIndex, Lanes, Mark, PageLimit, StoredEntry
from tidings.log.cursor import feed_place, feed_position
from tidings.log.port import EventLog, Extent, Limit, Row, Share, Slice
from tidings.log.position import LaneNumber, Offset, Position, TopicNumber, place_before

_CHUNK = 256
_OVERHEAD = 64


class FeedPorts(NamedTuple):
    """What the feed of a subscription is read from."""

    lanes: Lanes
    lane_index: LaneIndex
    events: EventLog


class LaneSource:
    """The entries of one lane. Cursors are places in the log, as in the feed of a topic; it ends where routing has come to.

    `topics`: where its entries can come from, to know what of them was removed. `counts`: whether an entry can still be fetched;
    what cannot is passed over, as in every other way of delivery.
    """

    def __init__(
        self, ports: FeedPorts, lane: LaneNumber, topics: Sequence[TopicNumber], counts: Callable[[Position, Instant], bool]
    ) -> None:
        self._lanes, self._index, self._events = ports
        self._lane = lane
        self._topics = topics
        self._counts = counts

    async def extent(self) -> Extent:
        """See `FeedSource.extent`."""
        last = feed_place(await self._lanes.routed())
        removed = await self._removed()
        return Extent(removed, max(removed, last))

    async def slice(self, after: Offset, upto: Offset, share: Share, limit: Limit) -> Slice:
        """See `FeedSource.slice`."""
        entries, reached = await self._entries(after, upto, limit)
        gone = any(entry.stored is None for entry in entries)
        rows = [_row(position, stored) for _, position, stored in entries if stored and self._counts(position, stored.at)]
        if share.residues:
            rows = [row for row in rows if row[1] % share.modulus in share.residues]
        return Slice(rows, reached, overtaken=gone)

    async def _entries(self, after: Offset, upto: Offset, limit: Limit) -> tuple[Sequence[LaneEntry], Offset]:
        """The next entries, and how far they reach."""
        found: list[LaneEntry] = []
        mark, size = (await self._lanes.find(self._lane, feed_position(after))).mark, 0
        while len(found) < limit.entries and size < limit.bytes:
            page = await self._lanes.read(self._lane, mark, PageLimit(limit.entries - len(found), limit.bytes - size))
            for entry in page.entries:
                if entry.position.offset > upto:
                    return found, upto
                found.append(entry)
                size += _size(entry.stored)
                mark = Mark(entry.number, entry.position)
            if not page.entries:
                return found, upto
        return found, mark.position.offset

    async def _removed(self) -> Offset:
        """Below what the lane's entries are gone: the last gone one, where topics have lost different parts."""
        marks = [feed_place(await self._events.removed(topic)) for topic in self._topics] or [Offset(0)]
        low, high = min(marks), max(marks)
        if low == high:
            return high
        upto = (await self._lanes.find(self._lane, feed_position(high))).mark
        while held := [mark for mark in await self._index.newest(self._lane, upto, _CHUNK) if mark.position.offset > low]:
            there = await self._events.fetch([mark.position for mark in held])
            gone = next((mark.position.offset for mark in held if mark.position not in there), None)
            if gone is not None:
                return gone
            upto = Mark(held[-1].number - 1, place_before(held[-1].position))
        return low


def _size(stored: StoredEntry | None) -> int:
    return _OVERHEAD if stored is None else len(stored.head) + len(stored.data or b"") + _OVERHEAD


def _row(position: Position, stored: StoredEntry) -> Row:
    return position.offset, stored.key_hash, stored.head, stored.data, _size(stored)
