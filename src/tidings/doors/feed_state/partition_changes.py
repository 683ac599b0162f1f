"""Changing the number of a feed's partitions: one registry change at one point of the log (FAPI-32)."""

from __future__ import annotations

import msgspec

from tidings.delivery.feeds.partitions import Method, grown, layout_of
from tidings.doors.api_parts import ApiParts
from tidings.errors import NotFound, RepartitionRunning
from tidings.log.cursor import feed_place
from tidings.log.position import Marks
from tidings.registry.model import Name, Snapshot, Topic
from tidings.registry.port import WantedChange


class Repartitioning:
    """Lets partitions grow, one change of a feed at a time. Belongs to one event loop."""

    def __init__(self, parts: ApiParts) -> None:
        self._parts = parts
        self._running: set[Name] = set()

    async def grow(self, name: Name, method: Method, count: int, by: str) -> Topic:
        """The topic with its new partitions; they hold for every event after this. Raises Malformed, Conflict, NotFound.

        Nothing is copied: every partition is a share of the topic's one log.
        """
        if name in self._running:
            raise RepartitionRunning(f"the partitions of {name} are being changed", expected="to wait for that")
        self._running.add(name)
        try:
            return await self._grow(name, method, count, by)
        finally:
            self._running.discard(name)
            self._parts.current.refresh()
            # Who waits by the old partitions is told at once (FEED-41).
            self._parts.waiting.nudge()

    async def _grow(self, name: Name, method: Method, count: int, by: str) -> Topic:
        parts, at = self._parts, self._parts.clock.now()

        def plan(snapshot: Snapshot, marks: Marks) -> WantedChange:
            topic = snapshot.topics.get(name)
            if topic is None:
                raise NotFound(f"there is no topic {name}")
            layout = grown(layout_of(topic.feed), method, count, feed_place(marks))
            wanted = msgspec.structs.replace(topic, feed=msgspec.structs.replace(topic.feed, layout=layout))
            return WantedChange([wanted], (), by, at)

        (stored,) = await parts.changes.change(plan)
        assert isinstance(stored, Topic)
        return stored
