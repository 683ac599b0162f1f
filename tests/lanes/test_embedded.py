"""Lanes of the embedded hub: numbers, what is gone, and reading while others write."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.delivery.worlds import World, in_world
from tidings.errors import LogUnavailable
from tidings.lanes.port import LanePage, Mark, PageLimit
from tidings.lanes.sink import Routed
from tidings.lanes.sqlite.block import packed
from tidings.lanes.sqlite.lanes import EmbeddedLanes
from tidings.lanes.sqlite.writer import SqliteLanesReader
from tidings.log.port import Entry
from tidings.log.position import EMBEDDED, LaneNumber, Offset, Partition, Position, embedded
from tidings.log.sqlite.reader import SqliteLogReader

MANY = PageLimit(1000, 1 << 20)


class Unreadable(SqliteLogReader):
    """A log that cannot be read at first."""

    failures = 1

    def fetch(self, positions: Sequence[Position]) -> Mapping[Position, Entry]:
        if self.failures:
            self.failures -= 1
            raise LogUnavailable("the disk does not answer")
        return super().fetch(positions)


class Interrupted(SqliteLanesReader):
    """Lanes to which something happens whenever the total of one is asked for."""

    meanwhile: Callable[[], None] = staticmethod(lambda: None)

    def total(self, lane: LaneNumber, partition: Partition) -> int:
        self.meanwhile()
        return super().total(lane, partition)


@contextmanager
def lanes_of(world: World, log: type[SqliteLogReader] = SqliteLogReader) -> Iterator[tuple[EmbeddedLanes, Interrupted]]:
    blocks, events = Interrupted(world.settings.data), log(world.settings.data)
    try:
        yield EmbeddedLanes(blocks, events), blocks
    finally:
        blocks.close()
        events.close()


def at(number: int, offset: int) -> Mark:
    return Mark(number, Position(EMBEDDED, Offset(offset)))


def numbered(page: LanePage) -> list[tuple[int, int]]:
    return [(entry.number, entry.position.offset) for entry in page.entries]


def test_entries_are_numbered_within_their_lane(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        lane = world.subscribe_pull("a")
        await world.publish(2)
        await world.publish(3, lane, first=3)
        await world.publish(1)
        await world.publish(1, lane, first=7)
        with lanes_of(world) as (lanes, _):
            first = await lanes.read(lane, at(0, 0), MANY)
            assert (first.before, numbered(first)) == (0, [(1, 3), (2, 4), (3, 5)])
            assert numbered(await lanes.read(lane, at(1, 3), PageLimit(1, 1))) == [(2, 4)]
            assert numbered(await lanes.read(lane, at(3, 5), MANY)) == [(4, 7)]
            assert await lanes.read(lane, at(4, 7), MANY) == LanePage(4, ())
            assert await lanes.end(lane) == at(4, 7)

    in_world(tmp_path, scenario)


def test_a_place_is_found_by_its_position(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        lane = world.subscribe_pull("a")
        await world.publish(1)
        await world.publish(2, lane, first=2)
        with lanes_of(world) as (lanes, _):
            found = {offset: await lanes.find(lane, Position(EMBEDDED, Offset(offset))) for offset in range(5)}
            assert {offset: (one.mark.number, one.exact) for offset, one in found.items()} == {
                0: (0, False),
                1: (0, False),
                2: (1, True),
                3: (2, True),
                4: (2, False),
            }
            world.lanes.trim(embedded(3))
            assert (await lanes.find(lane, Position(EMBEDDED, Offset(2)))).mark.number == 2

    in_world(tmp_path, scenario)


def test_what_retention_removed_is_missing_from_the_numbers(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        lane = world.subscribe_pull("a")
        await world.publish(3, lane)
        await world.retire()
        with lanes_of(world) as (lanes, _):
            assert await lanes.read(lane, at(1, 1), MANY) == LanePage(3, ())
            await world.publish(1, lane, first=4)
            page = await lanes.read(lane, at(1, 1), MANY)
            assert (page.before, numbered(page)) == (3, [(4, 4)])

    in_world(tmp_path, scenario)


def test_entries_that_cannot_be_read_now_are_read_later(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        lane = world.subscribe_pull("a")
        await world.publish(3, lane)
        with lanes_of(world, Unreadable) as (lanes, _):
            with pytest.raises(LogUnavailable):
                await lanes.read(lane, at(0, 0), MANY)
            assert len((await lanes.read(lane, at(0, 0), MANY)).entries) == 3

    in_world(tmp_path, scenario)


def test_an_entry_that_comes_while_the_end_is_looked_at_is_not_taken_for_lost(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        lane = world.subscribe_pull("a")
        await world.publish(1)
        with lanes_of(world) as (lanes, blocks):
            blocks.meanwhile = lambda: world.lanes.write(Routed([packed(lane, [2])], embedded(2)))
            page = await lanes.read(lane, at(0, 0), MANY)
            assert (page.before, numbered(page)) == (0, [(1, 2)])

    in_world(tmp_path, scenario)


def test_a_page_of_large_events_is_short_and_nothing_of_it_is_passed_over(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        lane = world.subscribe_pull("a")
        await world.publish(9, lane)
        with lanes_of(world) as (lanes, _):
            found: list[tuple[int, int]] = []
            while page := (await lanes.read(lane, at(*(found[-1] if found else (0, 0))), PageLimit(100, 20))).entries:
                assert 1 <= len(page) < 9
                found += [(entry.number, entry.position.offset) for entry in page]
        assert found == [(n, n) for n in range(1, 10)]

    in_world(tmp_path, scenario)


def test_lanes_with_the_same_entries_share_what_was_read(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        one, other = world.subscribe_pull("a"), world.subscribe_pull("b")
        await world.publish(2, one, other)
        with lanes_of(world) as (lanes, _):
            first, second = await lanes.read(one, at(0, 0), MANY), await lanes.read(other, at(0, 0), MANY)
        assert [entry.stored for entry in first.entries] == [entry.stored for entry in second.entries]
        assert first.entries[0].stored is second.entries[0].stored

    in_world(tmp_path, scenario)
