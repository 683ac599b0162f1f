"""Cursor sets as consumers: how far each is behind its feed.

The newest events of a topic are looked at once for all of its cursors, and only so many of all topics together.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from tidings.delivery.feeds.cursor_sets import KeptCursor
from tidings.delivery.feeds.partitions import layout_of
from tidings.doors.api_parts import ApiParts
from tidings.doors.feed_state.feed_keys import OF_SUBSCRIPTION, key_of, lane_key
from tidings.lanes.port import Mark
from tidings.log.cursor import feed_position
from tidings.log.position import Offset
from tidings.registry.feeds import FeedPartition
from tidings.registry.model import Topic

LOOKED_AT = 100_000
"""Events of all topics that are looked at to count lags once: a tenth of a second or two."""

_EVERYTHING = FeedPartition(id=0, index=0, count=1)


@dataclass(frozen=True, slots=True)
class Followed:
    """A kept cursor, the feed it belongs to as it is written, and the events after it: `whole` unless there are more."""

    kept: KeptCursor
    feed: str
    lag: int
    whole: bool = True


async def followed(parts: ApiParts, kept: Sequence[KeptCursor]) -> Sequence[Followed]:
    """How far these cursors are behind, as far as their feeds are there."""
    topics = {key_of(topic): topic for topic in parts.snapshot.topics.values()}
    lanes = {lane_key(one): one for one in parts.snapshot.subscriptions.values()}
    tails = await asyncio.to_thread(_tails, parts, topics, kept)
    found = []
    for one in kept:
        topic, subscription = topics.get(one.key.feed), lanes.get(one.key.feed)
        if topic is not None:
            lag, whole = tails[one.key.feed].behind(one)
            found.append(Followed(one, str(topic.name), lag, whole))
        elif subscription is not None:
            after = Mark(0, feed_position(one.offset))
            backlogs = await parts.lane_index.backlogs({subscription.lane: after})
            lag = backlogs[subscription.lane].entries
            found.append(Followed(one, f"{OF_SUBSCRIPTION}{subscription.name}", lag))
    return found


class Tail:
    """The newest events of a topic, at most so many: how many of them lie after a cursor and are of its share."""

    def __init__(self, topic: Topic, entries: Sequence[tuple[Offset, int]], most: int) -> None:
        self._partitions = {one.id: one for one in layout_of(topic.feed).partitions}
        self._entries = entries
        self._begin = entries[0][0] if len(entries) == most else Offset(0)
        self._shares: dict[int, defaultdict[int, list[Offset]]] = {}

    def behind(self, kept: KeptCursor) -> tuple[int, bool]:
        """The events after a cursor that are its own, and whether these are all."""
        if kept.key.n:
            return self._count(FeedPartition(id=0, index=kept.partition, count=kept.key.n), kept.offset)
        # A partition that has left the list is followed by others, which have all of its share.
        return self._count(self._partitions.get(kept.partition, _EVERYTHING), kept.offset)

    def _count(self, partition: FeedPartition, after: int) -> tuple[int, bool]:
        offsets, after = self._share(partition.count)[partition.index], max(after, partition.after)
        end = len(offsets) if partition.upto is None else bisect_right(offsets, partition.upto)
        # A closed partition has no events after its end: those of the same share are its children's.
        whole = after >= self._begin - 1 or (partition.upto is not None and after >= partition.upto)
        return max(0, end - bisect_right(offsets, after)), whole

    def _share(self, count: int) -> defaultdict[int, list[Offset]]:
        if count not in self._shares:
            shares = self._shares[count] = defaultdict(list)
            for offset, key_hash in self._entries:
                shares[key_hash % count].append(offset)
        return self._shares[count]


def _tails(parts: ApiParts, topics: dict[str, Topic], kept: Sequence[KeptCursor]) -> dict[str, Tail]:
    """One for every topic, as far back as its oldest cursor. What one topic does not need is left for the next."""
    oldest: dict[str, Offset] = {}
    for one in kept:
        if one.key.feed in topics:
            oldest[one.key.feed] = min(one.offset, oldest.get(one.key.feed, one.offset))
    tails, left = {}, LOOKED_AT
    for n, (feed, after) in enumerate(oldest.items()):
        most = max(1, left // (len(oldest) - n))
        entries = parts.slices.newest(topics[feed].number, after, most)
        tails[feed] = Tail(topics[feed], entries, most)
        left -= len(entries)
    return tails
