"""Waiting for events of a feed: ten thousand requests may wait; one task looks what has come and wakes those concerned.

The look is shared: one small select says which topics have grown, one slice of each watched one says for whom.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from tidings.delivery.feeds.lines import Types
from tidings.delivery.feeds.pages import SLICE
from tidings.delivery.feeds.topic_feed import SharedSlices
from tidings.errors import Unavailable, tolerating
from tidings.lanes.port import Lanes
from tidings.log.cursor import feed_place, feed_position
from tidings.log.port import Row, Share
from tidings.log.position import LaneNumber, Offset, TopicNumber

BEAT = 1.0
AT_ONCE = 50
"""Waiters that are woken before others get their turn."""


class Hint(Protocol):
    """Says that the log may have grown."""

    over: bool

    async def wait(self, timeout: float) -> None:
        """Until the next hint."""


class Concern(NamedTuple):
    """Which events somebody waits for: those of a share, of some types."""

    share: Share
    types: Types | None = None

    def latest(self, rows: Iterable[Row]) -> Offset | None:
        """The last of the rows that is meant."""
        found = None
        for row in rows:
            if self.share.residues and row[1] % self.share.modulus not in self.share.residues:
                continue
            if self.types is None or self.types.show(row[2]):
                found = row[0]
        return found

    @property
    def key(self) -> object:
        return self.share, None if self.types is None else self.types.key


class Patient(Protocol):
    """Somebody who waits, as who wakes them sees them."""

    def left(self) -> bool:
        """Whether nobody waits for the answer any more, or there is another reason to end."""

    def answer(self, last: Offset) -> bool:
        """Answer at once, without any waiting, if that is possible; whether it was. The source ends at `last`."""


class Waiter:
    """A place among those who wait, from this position on."""

    __slots__ = ("future", "position", "reader")

    def __init__(self, position: Offset, reader: Patient) -> None:
        self.position = position
        self.reader = reader
        self.future: asyncio.Future[Offset | None] = asyncio.get_running_loop().create_future()

    def wake(self, last: Offset | None) -> None:
        if not self.future.done():
            self.future.set_result(last)


class _Watched:
    """Everyone who waits for one topic, those with the same concern together."""

    __slots__ = ("groups",)

    def __init__(self) -> None:
        self.groups: dict[object, tuple[Concern, set[Waiter]]] = {}


class LongPolls:
    """Lets requests wait for topics. Belongs to one event loop; its task runs while anybody waits.

    `revision` changes when something else than events may end the waiting.
    """

    def __init__(self, slices: SharedSlices, hint: Hint, revision: Callable[[], int]) -> None:
        self._slices = slices
        self._hint = hint
        self._revision = revision
        self._topics: dict[TopicNumber, _Watched] = {}
        self._task: asyncio.Task[None] | None = None
        self._seen = Offset(0)

    async def wait(self, topic: TopicNumber, concern: Concern, waiter: Waiter, seconds: float) -> Offset | None:
        """Where the topic ends once an event has come for this one; None after this time, or when it is to end."""
        if self._task is None or self._task.done():
            self._seen = self._slices.end()
            self._task = asyncio.ensure_future(self._watch())
        # From here to the registration nothing else runs, and `_seen` is older: what comes now is noticed.
        last = self._slices.extent(topic).last
        if last > waiter.position:
            return last
        watched = self._topics.setdefault(topic, _Watched())
        _, waiters = watched.groups.setdefault(concern.key, (concern, set()))
        waiters.add(waiter)
        timer = asyncio.get_running_loop().call_later(seconds, waiter.wake, None)
        try:
            return await waiter.future
        finally:
            timer.cancel()
            waiters.discard(waiter)
            self._tidy(topic, concern.key)

    def _tidy(self, topic: TopicNumber, key: object) -> None:
        watched = self._topics.get(topic)
        if watched is not None and key in watched.groups and not watched.groups[key][1]:
            del watched.groups[key]
            if not watched.groups:
                del self._topics[topic]

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        beat, revision = loop.time() + BEAT, self._revision()
        try:
            while self._topics and not self._hint.over:
                await self._hint.wait(BEAT)
                await self._look()
                if loop.time() >= beat or self._revision() != revision:
                    beat, revision = loop.time() + BEAT, self._revision()
                    await self._let_go()
        finally:
            for waiter in self._everyone():
                waiter.wake(None)

    async def _look(self) -> None:
        end = self._slices.end()
        if end <= self._seen:
            return
        for topic in self._slices.topics(self._seen, end) & self._topics.keys():
            await self._wake(topic, self._seen, end)
        self._seen = end

    async def _wake(self, topic: TopicNumber, after: Offset, end: Offset) -> None:
        found = self._slices.slice(topic, after, end, Share(), SLICE)
        last = self._slices.extent(topic).last
        meant: list[Waiter] = []
        for concern, waiters in self._topics[topic].groups.values():
            # When more came than one slice holds, everybody looks for himself.
            latest = concern.latest(found.rows) if found.reached >= end and not found.overtaken else last
            meant += [one for one in waiters if latest is not None and one.position < latest]
        # All answers go out before anybody tidies up behind them.
        for n, waiter in enumerate(meant, 1):
            if not waiter.future.done():
                with tolerating(Unavailable, doing="an answer to a waiting reader"):
                    waiter.reader.answer(last)
            if n % AT_ONCE == 0:
                await asyncio.sleep(0)
        for n, waiter in enumerate(meant, 1):
            waiter.wake(last)
            if n % AT_ONCE == 0:
                await asyncio.sleep(0)

    async def _let_go(self) -> None:
        for n, waiter in enumerate(self._everyone(), 1):
            if waiter.reader.left():
                waiter.wake(None)
            if n % 1000 == 0:
                await asyncio.sleep(0)

    def _everyone(self) -> list[Waiter]:
        groups = [group for watched in self._topics.values() for group in watched.groups.values()]
        return [waiter for _, waiters in groups for waiter in waiters]


class LaneLongPolls:
    """Lets requests wait for lanes. The record of touched lanes says whom to wake; its task runs while anybody waits."""

    def __init__(self, lanes: Lanes, hint: Hint) -> None:
        self._lanes = lanes
        self._hint = hint
        self._waiters: dict[LaneNumber, set[Waiter]] = {}
        self._task: asyncio.Task[None] | None = None
        self._caught_up = asyncio.Event()
        self._mark = 0

    async def wait(self, lane: LaneNumber, waiter: Waiter, seconds: float) -> Offset | None:
        """How far routing has come once the lane has a further entry; None after this time, or when it is to end."""
        self._waiters.setdefault(lane, set()).add(waiter)
        timer = asyncio.get_running_loop().call_later(seconds, waiter.wake, None)
        try:
            if self._task is None or self._task.done():
                self._task = asyncio.ensure_future(self._watch())
            # What comes after this is noticed; what came before is seen here.
            await self._caught_up.wait()
            if await self._has_more(lane, waiter.position):
                return feed_place(await self._lanes.routed())
            return await waiter.future
        finally:
            timer.cancel()
            self._waiters[lane].discard(waiter)
            if not self._waiters[lane]:
                del self._waiters[lane]

    async def _has_more(self, lane: LaneNumber, after: Offset) -> bool:
        found = await self._lanes.find(lane, feed_position(after))
        return (await self._lanes.end(lane)).number > found.mark.number

    async def _grown(self) -> frozenset[LaneNumber]:
        """The lanes that got entries since the last look; all that are watched when that cannot be told."""
        touched = await self._lanes.work(self._mark)
        self._mark = touched.upto
        return frozenset(self._waiters) if touched.lost else touched.lanes

    async def _watch(self) -> None:
        try:
            mark = -1
            while mark != self._mark:
                mark = self._mark
                await self._grown()
            self._caught_up.set()
            while self._waiters and not self._hint.over:
                await self._hint.wait(BEAT)
                grown = await self._grown()
                last = feed_place(await self._lanes.routed()) if grown else Offset(0)
                for lane, waiters in list(self._waiters.items()):
                    for waiter in list(waiters):
                        if lane in grown or waiter.reader.left():
                            waiter.wake(last if lane in grown else None)
        finally:
            # Nobody waits for this any more: who comes next begins anew.
            self._caught_up.set()
            self._caught_up = asyncio.Event()
            for waiters in self._waiters.values():
                for waiter in waiters:
                    waiter.wake(None)
