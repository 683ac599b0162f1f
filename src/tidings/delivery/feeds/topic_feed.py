"""Where feeds read: a topic's part of the log. Readers at the same place share what was read and written for one of them."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from tidings.log.port import Extent, Limit, Share, Slice, TopicSlices
from tidings.log.position import Offset, TopicNumber

REMEMBERED_BYTES = 8 << 20


class _Key(NamedTuple):
    topic: TopicNumber
    after: Offset
    share: Share
    entries: int


class _Known(NamedTuple):
    slice: Slice
    upto: Offset
    size: int


class SharedSlices:
    """`TopicSlices` that remembers what it read last, up to some bytes: entries never change. Belongs to one event loop."""

    def __init__(self, slices: TopicSlices, most: int = REMEMBERED_BYTES) -> None:
        self._slices = slices
        self._most = most
        self._held = 0
        self._known: OrderedDict[_Key, _Known] = OrderedDict()
        self.extent = slices.extent
        self.topics = slices.topics
        self.end = slices.end

    def slice(self, topic: TopicNumber, after: Offset, upto: Offset, share: Share, limit: Limit) -> Slice:
        """See `TopicSlices.slice`."""
        key = _Key(topic, after, share, limit.entries)
        known = self._known.get(key)
        if known is not None and (known.upto == upto or known.slice.reached < min(known.upto, upto + 1)):
            # A slice that ended before it had to is the same however far one may read.
            self._known.move_to_end(key)
            return known.slice
        found = self._slices.slice(topic, after, upto, share, limit)
        if found.overtaken or not found.rows:
            return found
        found = found._replace(texts={})
        self._remember(key, _Known(found, upto, sum(row[4] for row in found.rows)))
        return found

    def _remember(self, key: _Key, known: _Known) -> None:
        former = self._known.pop(key, None)
        self._held += known.size - (former.size if former else 0)
        self._known[key] = known
        while self._held > self._most and len(self._known) > 1:
            self._held -= self._known.popitem(last=False)[1].size


class ReadyTopic:
    """`ReadySource` of a topic, straight from the log."""

    def __init__(self, slices: SharedSlices, topic: TopicNumber) -> None:
        self._slices = slices
        self._topic = topic

    def extent(self) -> Extent:
        """See `ReadySource.extent`."""
        return self._slices.extent(self._topic)

    def slice(self, after: Offset, upto: Offset, share: Share, limit: Limit) -> Slice:
        """See `ReadySource.slice`."""
        return self._slices.slice(self._topic, after, upto, share, limit)


class TopicSource:
    """`FeedSource` of a topic."""

    def __init__(self, ready: ReadyTopic) -> None:
        self._ready = ready

    async def extent(self) -> Extent:
        """See `FeedSource.extent`."""
        return self._ready.extent()

    async def slice(self, after: Offset, upto: Offset, share: Share, limit: Limit) -> Slice:
        """See `FeedSource.slice`."""
        return self._ready.slice(after, upto, share, limit)
