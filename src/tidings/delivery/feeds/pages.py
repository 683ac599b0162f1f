"""One page of a feed: events after one cursor or several, in slices that take about a millisecond each.

Cursors that stand at the same place share one scan. Each has its share of the page; what one leaves unused goes to the others.
A page holds no more events than were asked for, but one for each cursor in any case: who gets none would seem to have ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeAlias

from tidings.delivery.feeds.lines import Types
from tidings.log.port import Extent, Limit, Row, Share, Slice
from tidings.log.position import Offset

SLICE = Limit(entries=100, bytes=256 << 10)
SCANNED = 10_000
"""Hidden events that one page passes over at the most before it ends with a checkpoint."""


class FeedSource(Protocol):
    """Where a feed's events are read: a topic, or a lane."""

    async def extent(self) -> Extent:
        """Where the events begin and end now."""

    async def slice(self, after: Offset, upto: Offset, share: Share, limit: Limit) -> Slice:
        """As `TopicSlices.slice`."""


class ReadySource(Protocol):
    """The same where nothing has to be waited for: each call takes a millisecond or two at the most."""

    def extent(self) -> Extent:
        """See `FeedSource.extent`."""

    def slice(self, after: Offset, upto: Offset, share: Share, limit: Limit) -> Slice:
        """See `FeedSource.slice`."""


class SliceQuestion(NamedTuple):
    """The slice that a page wants next."""

    after: Offset
    upto: Offset
    share: Share
    limit: Limit


class PartitionCursor:
    """Where one cursor of a request stands. It reads events of residue `index`, not beyond `bound` where there is one."""

    __slots__ = ("bound", "index", "left", "partition", "position", "start")

    def __init__(self, partition: int, index: int, position: Offset, bound: Offset | None = None) -> None:
        self.partition = partition
        self.index = index
        self.start = self.position = position
        self.bound = bound
        self.left = 0

    def end(self, last: Offset) -> Offset:
        return last if self.bound is None else min(last, self.bound)


class PageRequest(NamedTuple):
    """How much a page may hold, and which types it shows (None: all)."""

    entries: int
    types: Types | None = None


Found: TypeAlias = list[tuple[PartitionCursor, Sequence[Row]]]
"""Events in their order: runs of one place each."""


class FeedPage:
    """One page: says which slice it wants and takes it, until it is `over`; the places then say where to go on. Does no I/O.

    `whole` is the slice that it took last, where it was for one place and all of it. `overtaken`: events were removed before they
    could be read, so that there is nothing to go on from.
    """

    def __init__(self, count: int, places: Sequence[PartitionCursor], wish: PageRequest) -> None:
        self._count = count
        self._types = wish.types
        self._hidden = 0
        self._budget = max(wish.entries, len(places))
        self.places = places
        self.served = 0
        self.over = self.overtaken = False
        self.last = Offset(0)
        self.whole: Slice | None = None
        self._group: Sequence[PartitionCursor] = ()
        _share_out(self._budget, places)

    def ended(self, found: Found, at: Offset) -> Found:
        """What of these events is not after `at`, where the layout of the places has ended. The page is over."""
        self.over, self.whole = True, None
        for place in self.places:
            place.position = max(place.start, min(place.position, at))
        kept = [(place, [row for row in rows if row[0] <= at]) for place, rows in found]
        return [(place, rows) for place, rows in kept if rows]

    def again(self) -> None:
        """There may be more by now: the page may be asked again."""
        self.over, self._hidden = False, 0

    @property
    def at_end(self) -> bool:
        """Whether it came to where the source ended when that was asked last."""
        return not any(place.position < self.last for place in self.places)

    def wants(self, last: Offset | None = None) -> SliceQuestion | None:
        """The slice that comes next; None: the page is over. `last`: where the source ends now."""
        self.whole = None
        if last is not None:
            self.last = last
        reading = self._reading()
        if not reading:
            self.over = True
            return None
        start = min(place.position for place in reading)
        group = [place for place in reading if place.position == start]
        upto = min(place.end(self.last) for place in group)
        ahead = [place.position for place in reading if start < place.position < upto]
        self._group = group
        return SliceQuestion(start, min([upto, *ahead]), self._share(group), self._limit(group))

    def took(self, found: Slice) -> Found:
        """The events of the slice that was wanted, in their order."""
        group = self._group
        if found.overtaken:
            # Something may be missing: the next request learns from its cursor that it has expired.
            self.over = self.overtaken = True
            return []
        served = self._give(group[0], found) if len(group) == 1 and self._types is None else self._deal(group, found)
        self.over = self._hidden >= SCANNED or not self._reading()
        return served

    def _reading(self) -> list[PartitionCursor]:
        """The places that have both events ahead and a share left; unused shares are dealt out again."""
        behind = [place for place in self.places if place.position < place.end(self.last)]
        reading = [place for place in behind if place.left]
        rest = self._budget - self.served
        if behind and not reading and rest > 0:
            _share_out(rest, behind)
            return [place for place in behind if place.left]
        return reading

    def _share(self, group: Sequence[PartitionCursor]) -> Share:
        residues = tuple(sorted(place.index for place in group))
        return Share() if len(residues) == self._count else Share(self._count, residues)

    def _limit(self, group: Sequence[PartitionCursor]) -> Limit:
        if self._types is not None:
            return SLICE
        return Limit(min(SLICE.entries, sum(place.left for place in group)), SLICE.bytes)

    def _give(self, place: PartitionCursor, found: Slice) -> Found:
        """All of a slice is for one place."""
        self.whole = found
        self.served += len(found.rows)
        place.left -= len(found.rows)
        place.position = found.reached
        return [(place, found.rows)] if found.rows else []

    def _deal(self, group: Sequence[PartitionCursor], found: Slice) -> Found:
        served: Found = []
        by_index = {place.index: place for place in group}
        full: set[int] = set()
        show = None if self._types is None else self._types.show
        for row in found.rows:
            index = row[1] % self._count
            if index in full:
                continue
            place = by_index[index]
            if show is not None and not show(row[2]):
                self._hidden += 1
                continue
            served.append((place, (row,)))
            place.left -= 1
            if not place.left:
                place.position = row[0]
                full.add(index)
        for place in group:
            if place.index not in full:
                place.position = found.reached
        self.served += len(served)
        return served


async def next_events(page: FeedPage, source: FeedSource, last: Offset | None = None) -> Found:
    """The next events of a page, at most a slice of them. `last`: where the source ends, when that is known."""
    if last is None and page.at_end:
        last = (await source.extent()).last
    wanted = page.wants(last)
    return [] if wanted is None else page.took(await source.slice(*wanted))


def next_at_once(page: FeedPage, source: ReadySource, last: Offset | None = None) -> Found:
    """The same where nothing has to be waited for."""
    if last is None and page.at_end:
        last = source.extent().last
    wanted = page.wants(last)
    return [] if wanted is None else page.took(source.slice(*wanted))


def _share_out(entries: int, places: Sequence[PartitionCursor]) -> None:
    """Give each place its share of so many events; where it does not come out even, those furthest behind get one more."""
    each, over = divmod(entries, len(places))
    for n, place in enumerate(sorted(places, key=lambda one: one.position)):
        place.left = each + (n < over)
