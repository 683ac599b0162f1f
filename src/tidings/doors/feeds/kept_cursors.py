"""Cursor sets of a request: what was stored is found, what came is stored before the first byte of the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidings.access.principals import EVERYONE, Principal
from tidings.clock import SECOND, Instant
from tidings.delivery.feeds.cursor_sets import Keeper, KeptCursor, SetKey
from tidings.doors.api_parts import ApiParts
from tidings.doors.feed_state.feed_keys import key_of, lane_key
from tidings.doors.feeds.feed_lookup import OpenFeed
from tidings.doors.feeds.refusals import refused
from tidings.doors.feeds.request import FeedRequest, Stored
from tidings.log.position import Offset


class CursorKeeping:
    """Keeps cursors for one door."""

    def __init__(self, parts: ApiParts) -> None:
        self._parts = parts
        self._keeper = Keeper(parts.cursor_sets)
        self._coming: set[SetKey] = set()

    def stored(self, by: Principal, feed: OpenFeed) -> Stored:
        """Finds what this consumer has stored about this feed."""

        def stored(name: str, version: str, count: int, partitions: Sequence[int]) -> Mapping[int, int]:
            found = self._parts.cursor_sets.load(SetKey(consumer_of(by), feed.key, name, version, count))
            return {number: found[number] for number in partitions if number in found}

        return stored

    async def keep(self, by: Principal, asked: FeedRequest) -> None:
        """Store where each place of the request begins: durable when it returns (FEED-32)."""
        if asked.keeping is None:
            return
        count = asked.count if asked.version == "v1" else 0
        key = SetKey(consumer_of(by), asked.feed.key, asked.keeping.name, asked.version, count)
        self._refuse_one_too_many(key)
        now = self._parts.clock.now()
        self._coming.add(key)
        try:
            await self._keeper.keep([KeptCursor(key, place.partition, Offset(place.start), now) for place in asked.places])
        finally:
            self._coming.discard(key)

    def _refuse_one_too_many(self, key: SetKey) -> None:
        """A new set beyond the limit is refused. Those that are on their way to the disk count too."""
        held, most = self._parts.cursor_sets.held(key.consumer), self._parts.settings.feeds.cursor_sets
        if key in held or key in self._coming:
            return
        if len(held) + sum(one.consumer == key.consumer for one in self._coming - held) >= most:
            detail = f"the hub keeps {len(held)} cursor sets of this consumer already, and at most feeds.cursor_sets = {most}"
            raise refused("cursorset-limit", f"{detail}; use one of them, or let an administrator delete some")


def forget_unused(parts: ApiParts) -> int:
    """Forget the cursor sets that nobody has used for long, and those of feeds that are gone; how many cursors. Blocks."""
    # First the feeds, then what is in force: a feed that is made meanwhile is among both or among neither.
    feeds = parts.cursor_sets.feeds()
    snapshot, expiry = parts.snapshot, parts.settings.feeds.cursor_set_expiry
    there = {key_of(topic) for topic in snapshot.topics.values()} | {lane_key(one) for one in snapshot.subscriptions.values()}
    since = Instant(parts.clock.now() - round(expiry * SECOND)) if expiry else None
    return parts.cursor_sets.forget(since, feeds - there)


def consumer_of(by: Principal) -> str:
    """The name of who reads; empty where everybody may (FEED-31)."""
    return "" if by is EVERYONE else by.name
