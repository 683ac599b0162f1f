"""Cursor sets of a request: what was stored is found, what came is stored before the first byte of the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidings.access.principals import EVERYONE, Principal
from tidings.delivery.feeds.cursorsets import Keeper, Kept, SetKey
from tidings.facades.feeds.asking import Asked, Stored
from tidings.facades.feeds.finding import OpenFeed
from tidings.facades.parts import Parts
from tidings.log.position import Offset


class CursorKeeping:
    """Keeps cursors for one door."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._keeper = Keeper(parts.cursor_sets)

    def stored(self, by: Principal, feed: OpenFeed) -> Stored:
        """Finds what this consumer has stored about this feed."""

        def stored(name: str, version: str, count: int, partitions: Sequence[int]) -> Mapping[int, int]:
            found = self._parts.cursor_sets.load(SetKey(consumer_of(by), feed.key, name, version, count))
            return {number: found[number] for number in partitions if number in found}

        return stored

    async def keep(self, by: Principal, asked: Asked) -> None:
        """Store where each place of the request begins: durable when it returns (FEED-32)."""
        if asked.keeping is None:
            return
        count = asked.count if asked.version == "v1" else 0
        key = SetKey(consumer_of(by), asked.feed.key, asked.keeping.name, asked.version, count)
        now = self._parts.clock.now()
        await self._keeper.keep([Kept(key, place.partition, Offset(place.start), now) for place in asked.places])


def consumer_of(by: Principal) -> str:
    """The name of who reads; empty where everybody may (FEED-31)."""
    return "" if by is EVERYONE else by.name
