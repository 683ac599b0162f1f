"""For random keys, publishes, changes of partitions and page sizes: what all partitions give is the log, each key in its order."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.builders import a_draft, an_event
from tidings import config
from tidings.delivery.feeds.lines import Types
from tidings.delivery.feeds.pages import FeedPage, PageRequest, PartitionCursor, next_at_once
from tidings.delivery.feeds.partitions import Method, grown, layout_of, opened
from tidings.delivery.feeds.topic_feed import ReadyTopic, SharedSlices
from tidings.events.model import key_hash
from tidings.events.stored import head_of
from tidings.log.position import Offset, TopicNumber
from tidings.log.sqlite.topic_slices import SqliteSlices
from tidings.log.sqlite.writer import SqliteLogWriter
from tidings.registry.feeds import FeedPartition, PartitionLayout, TopicFeed

Act = tuple[Any, ...]

keys = st.sampled_from([f"k{n}" for n in range(9)])
publish = st.tuples(st.just("publish"), st.lists(st.tuples(keys, st.booleans()), min_size=1, max_size=12))
grow = st.tuples(st.just("grow"), st.sampled_from(list(Method)), st.sampled_from([2, 4]))
read = st.tuples(st.just("read"), st.integers(1, 7))
acts = st.lists(st.one_of(publish, publish, read, read, grow), min_size=1, max_size=14)


class World:
    """A log with the events of one topic among another's, and the layout of its feed."""

    def __init__(self, folder: Path) -> None:
        self._log = SqliteLogWriter(folder, config.load(environ={}).log)
        self._slices = SqliteSlices(folder)
        self.source = ReadyTopic(SharedSlices(self._slices, most=2000), TopicNumber(1))
        self.layout: PartitionLayout = layout_of(TopicFeed(partitions=2))
        self.published: list[tuple[int, str]] = []

    async def publish(self, events: list[tuple[str, bool]]) -> None:
        drafts = [a_draft(topic=1 if mine else 2, key_hash=key_hash(key)) for key, mine in events]
        for position, (key, mine) in zip(await self._log.append(drafts), events, strict=True):
            if mine:
                self.published.append((position.offset, key))

    async def grow(self, method: Method, factor: int) -> bool:
        count = len(opened(self.layout)) * factor
        if count > 64:
            return False
        marks = await self._log.fence(lambda marks: marks)
        self.layout = grown(self.layout, method, count, marks.get(0, Offset(0)))  # type: ignore[call-overload]
        return True

    async def close(self) -> None:
        self._slices.close()
        await self._log.close()


class Reader:
    """Reads v2 by its rules: parents first, cursors of ancestors, everything at most once."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._cursors: dict[int, Offset] = {}
        self._finished: set[int] = set()
        self.seen: list[int] = []

    def round(self, size: int) -> bool:
        """One page of every partition that may be read; whether anything moved."""
        moved = False
        for one in self._world.layout.partitions:
            if one.id in self._finished or (one.starts_after is not None and one.starts_after not in self._finished):
                continue
            moved |= self._page(one, size)
        return moved

    def _page(self, one: FeedPartition, size: int) -> bool:
        start = next((self._cursors[id] for id in (one.id, *one.cursor_from) if id in self._cursors), Offset(0))
        place = PartitionCursor(
            one.id, one.index, Offset(max(start, one.after)), None if one.upto is None else Offset(one.upto)
        )
        page, found = FeedPage(one.count, [place], PageRequest(size)), []
        while not page.over:
            found += [row[0] for _, rows in next_at_once(page, self._world.source) for row in rows]
        assert len(found) <= size
        self.seen += found
        self._cursors[one.id] = place.position
        if one.closed and not found and place.position == max(start, one.after):
            self._finished.add(one.id)
            return True
        return bool(found) or place.position != place.start


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(acts)
def test_partitions_that_grow_lose_and_repeat_nothing(acts: list[Act]) -> None:
    async def run(folder: Path) -> None:
        world = World(folder)
        reader = Reader(world)
        try:
            for act in acts:
                match act:
                    case ("publish", events):
                        await world.publish(events)
                    case ("grow", method, factor):
                        # A reader that did not finish closed parents may not skip them when they leave the list.
                        while method is Method.REDISTRIBUTE and reader.round(50):
                            pass
                        await world.grow(method, factor)
                    case ("read", size):
                        reader.round(size)
            while reader.round(5):
                pass
        finally:
            await world.close()
        assert sorted(reader.seen) == [offset for offset, _ in world.published]
        order = dict(world.published)
        for key in set(order.values()):
            mine = [offset for offset in reader.seen if order[offset] == key]
            assert mine == sorted(mine)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder)))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    events=st.lists(st.tuples(keys, st.booleans()), max_size=60),
    n=st.sampled_from([1, 2, 4, 8]),
    size=st.integers(1, 30),
    together=st.booleans(),
)
def test_every_division_gives_the_same_events(events: list[tuple[str, bool]], n: int, size: int, together: bool) -> None:
    async def run(folder: Path) -> None:
        world = World(folder)
        try:
            if events:
                await world.publish(events)
            groups = [list(range(n))] if together else [[p] for p in range(n)]
            seen: list[tuple[int, int]] = []
            for group in groups:
                positions = dict.fromkeys(group, Offset(0))
                while True:
                    places = [PartitionCursor(p, p, position) for p, position in positions.items()]
                    page, before = FeedPage(n, places, PageRequest(size)), len(seen)
                    while not page.over:
                        seen += [(place.partition, row[0]) for place, rows in next_at_once(page, world.source) for row in rows]
                    assert len(seen) - before <= max(size, len(group)) + len(group)
                    positions = {place.partition: place.position for place in places}
                    if len(seen) == before:
                        break
        finally:
            await world.close()
        assert sorted(offset for _, offset in seen) == [offset for offset, _ in world.published]
        for p in range(n):
            mine = [offset for q, offset in seen if q == p]
            assert mine == sorted(mine)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder)))


@pytest.mark.parametrize("raw", ["plain", 'with "quotes"', "back\\slash", "Straße", "tab\tbed", "\u2028"])
def test_types_are_found_in_stored_heads(raw: str) -> None:
    event = an_event(type="t", subject='"type":"decoy"')
    attributes = {"subtype": "no", **event.attributes, "type": raw}
    head = head_of(msgspec.structs.replace(event, attributes=attributes))
    assert Types(frozenset([raw.casefold()]), True).show(head)
    assert not Types(frozenset([raw.casefold()]), False).show(head)
    assert not Types(frozenset(["decoy", "no"]), True).show(head)
