"""Cursor sets as consumers: how far each is behind its feed. Blocks while it reads: call it in a thread."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tidings.delivery.feeds.cursorsets import Kept
from tidings.delivery.feeds.layout import layout_of
from tidings.facades.feeds.finding import OF_SUBSCRIPTION, key_of
from tidings.facades.parts import Parts
from tidings.log.port import Share
from tidings.log.position import EMBEDDED, Offset
from tidings.registry.model import Subscription, Topic

COUNTED = 100_000
"""How far a lag is counted."""


@dataclass(frozen=True, slots=True)
class Followed:
    """A kept cursor, the feed it belongs to as it is written, and the events after it."""

    kept: Kept
    feed: str
    lag: int


def followed(parts: Parts, feed: str | None = None) -> Iterator[Followed]:
    """Every kept cursor of a feed (by its key), or of all feeds that there are."""
    topics = {key_of(topic): topic for topic in parts.snapshot.topics.values()}
    lanes = {f"{OF_SUBSCRIPTION}{one.lane}": one for one in parts.snapshot.subscriptions.values()}
    for kept in parts.cursor_sets.listed(feed):
        topic, subscription = topics.get(kept.key.feed), lanes.get(kept.key.feed)
        if topic is not None:
            yield Followed(kept, str(topic.name), _behind_topic(parts, kept, topic))
        elif subscription is not None:
            yield Followed(kept, f"{OF_SUBSCRIPTION}{subscription.name}", _behind_lane(parts, kept, subscription))


def _behind_topic(parts: Parts, kept: Kept, topic: Topic) -> int:
    if kept.key.n:
        return parts.slices.count(topic.number, kept.offset, Share(kept.key.n, (kept.partition,)), COUNTED)
    found = next((one for one in layout_of(topic.feed).partitions if one.id == kept.partition), None)
    if found is None:
        return parts.slices.count(topic.number, kept.offset, Share(), COUNTED)
    share = Share(found.count, (found.index,))
    behind = parts.slices.count(topic.number, max(kept.offset, Offset(found.after)), share, COUNTED)
    if found.upto is None:
        return behind
    # A closed partition has no events after its end: those of the same share are its children's.
    return max(0, behind - parts.slices.count(topic.number, max(kept.offset, Offset(found.upto)), share, COUNTED))


def _behind_lane(parts: Parts, kept: Kept, subscription: Subscription) -> int:
    return parts.lanes.count_after(subscription.lane, kept.offset, EMBEDDED)
