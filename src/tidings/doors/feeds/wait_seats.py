"""Requests that wait for events, and how many one consumer may hold open."""

from __future__ import annotations

from collections import Counter

from tidings.access.principals import EVERYONE, Principal
from tidings.delivery.feeds.long_polls import Concern, LaneLongPolls, LongPolls, Patient, Waiter
from tidings.doors.feeds.request import FeedRequest
from tidings.log.port import Share
from tidings.log.position import Offset
from tidings.observe.part_status import PartStatus


class Seat:
    """The right of one request to wait, from the moment it begins to wait. Given back once, when its answer is on its way."""

    __slots__ = ("_name", "_open")

    def __init__(self, open: Counter[str] | None, name: str) -> None:
        self._open = open
        self._name = name

    def release(self) -> None:
        """Give it back. Safe to call twice."""
        if self._open is not None:
            self._open[self._name] -= 1
            if not self._open[self._name]:
                del self._open[self._name]
            self._open = None


NO_SEAT = Seat(None, "")


class Waits:
    """All waiting of one door. Belongs to one event loop."""

    def __init__(self, topics: LongPolls, lanes: LaneLongPolls, most: int, board: PartStatus) -> None:
        self._topics = topics
        self._lanes = lanes
        self._most = most
        self._board = board
        self._waiting = 0
        self._open: Counter[str] = Counter()

    def seat(self, by: Principal) -> Seat | None:
        """A seat; None when this consumer waits often enough. Nobody knows who is who on an open hub."""
        if by is EVERYONE:
            return NO_SEAT
        if self._open[by.name] >= self._most:
            self._board.count("tidings_feed_waits_refused_total", consumer=by.name)
            return None
        self._open[by.name] += 1
        return Seat(self._open, by.name)

    async def wait(self, asked: FeedRequest, reader: Patient, seconds: float) -> Offset | None:
        """Where the feed ends once something has come; None when the time is over or the reader has left."""
        self._count(1)
        try:
            return await self._waited(asked, reader, seconds)
        finally:
            self._count(-1)

    async def _waited(self, asked: FeedRequest, reader: Patient, seconds: float) -> Offset | None:
        waiter = Waiter(min(place.position for place in asked.places), reader)
        if asked.feed.topic is None:
            assert asked.feed.subscription is not None
            return await self._lanes.wait(asked.feed.subscription.lane, waiter, seconds)
        residues = tuple(sorted(place.index for place in asked.places))
        share = Share() if len(residues) == asked.count else Share(asked.count, residues)
        return await self._topics.wait(asked.feed.topic.number, Concern(share, asked.wish.types), waiter, seconds)

    def _count(self, by: int) -> None:
        self._waiting += by
        self._board.gauge("tidings_feed_waiting", self._waiting)
