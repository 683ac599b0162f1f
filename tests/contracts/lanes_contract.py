"""What every lanes adapter must do, written once: lanes are logs of their own, written exactly once, read by number."""

from __future__ import annotations

import asyncio
import struct
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.builders import a_draft
from tidings.lanes.parts import WHOLE, key_of
from tidings.lanes.port import BEGIN, LaneEntry, LaneIndex, Lanes, Mark, PageLimit
from tidings.lanes.sink import Aside, LaneRun, LaneSink, Part, PartKey, Routed
from tidings.log.port import Draft
from tidings.log.position import LaneNumber, Marks, Position, marks_below, place_after, place_before

ONE, TWO = LaneNumber(1), LaneNumber(2)
ALL = PageLimit(entries=1000, bytes=1 << 30)


class LaneWorld(NamedTuple):
    """An adapter with its log, all of whose events are of one partition."""

    append: Callable[[Sequence[Draft]], Awaitable[Sequence[Position]]]
    sink: LaneSink
    lanes: Lanes
    lane_index: LaneIndex

    async def published(self, count: int) -> Sequence[Position]:
        """So many events, whose payloads are their numbers."""
        return await self.append([a_draft(data=str(n).encode()) for n in range(1, count + 1)])

    async def everything(self, lane: LaneNumber, limit: PageLimit = ALL) -> list[LaneEntry]:
        """All entries of a lane, page by page."""
        found: list[LaneEntry] = []
        while entries := (await self.lanes.read(lane, mark_of(found[-1]) if found else BEGIN, limit)).entries:
            found += entries
        return found


Scenario = Callable[[LaneWorld], Awaitable[None]]


class LanesContract(ABC):
    @abstractmethod
    def open(self, folder: Path) -> AbstractAsyncContextManager[LaneWorld]:
        """The adapter that is tested, with its files in this folder."""

    def play(self, folder: Path, scenario: Scenario) -> None:
        async def run() -> None:
            async with self.open(folder) as world:
                await scenario(world)

        asyncio.run(run())

    def test_entries_are_numbered_from_one_in_the_order_of_the_log(self, tmp_path: Path) -> None:
        async def scenario(world: LaneWorld) -> None:
            positions = await world.published(9)
            world.sink.write(Routed([run_of(ONE, positions[0:9:2]), run_of(TWO, positions[2:5])], marks_at(positions[5])))
            world.sink.write(Routed([run_of(ONE, positions[6:9:2])], marks_at(positions[8])))
            expected = [(n, positions[at]) for n, at in enumerate((0, 2, 4, 6, 8), start=1)]
            for limit in (ALL, PageLimit(1, 1 << 30), PageLimit(100, 1)):
                found = await world.everything(ONE, limit)
                assert [(entry.number, entry.position) for entry in found] == expected
            assert payloads(found) == [b"1", b"3", b"5", b"7", b"9"]
            assert payloads(await world.everything(TWO)) == [b"3", b"4", b"5"]
            assert await world.lanes.routed() == marks_at(positions[8])

        self.play(tmp_path, scenario)

    @pytest.mark.parametrize("again", [0, 2, 5])
    def test_what_is_written_again_is_there_once(self, tmp_path: Path, again: int) -> None:
        async def scenario(world: LaneWorld) -> None:
            positions = await world.published(8)
            world.sink.write(Routed([run_of(ONE, positions[:5])], marks_at(positions[4])))
            world.sink.write(Routed([run_of(ONE, positions[again:8])], marks_at(positions[7])))
            world.sink.write(Routed([run_of(ONE, positions)], marks_at(positions[7])))
            assert [(one.number, one.position) for one in await world.everything(ONE)] == list(enumerate(positions, start=1))

        self.play(tmp_path, scenario)

    def test_places_are_found_by_position_and_by_marks(self, tmp_path: Path) -> None:
        async def scenario(world: LaneWorld) -> None:
            positions = await world.published(6)
            world.sink.write(Routed([run_of(ONE, positions[1:6:2])], marks_at(positions[5])))
            for at, (number, exact) in enumerate(((0, False), (1, True), (1, False), (2, True), (2, False), (3, True))):
                found = await world.lanes.find(ONE, positions[at])
                assert (found.mark.number, found.exact) == (number, exact)
                assert (await world.lanes.find(ONE, marks_at(positions[at]))).mark.number == number
            assert (await world.lanes.find(ONE, marks_below(positions[3]))).mark.number == 1
            assert (await world.lanes.find(ONE, place_after(positions[5]))).exact is False
            assert (await world.lanes.end(ONE)).number == 3
            assert (await world.lanes.end(TWO)).number == 0

        self.play(tmp_path, scenario)

    def test_entries_are_fetched_in_the_order_given(self, tmp_path: Path) -> None:
        async def scenario(world: LaneWorld) -> None:
            positions = await world.published(4)
            world.sink.write(Routed([run_of(ONE, positions[:3])], marks_at(positions[3])))
            wanted = [Mark(3, positions[2]), Mark(1, positions[0]), Mark(4, positions[3])]
            found = await world.lanes.fetch(ONE, wanted)
            assert [mark_of(one) for one in found] == wanted
            assert payloads(found) == [b"3", b"1", None], "what the lane does not have counts as expired"

        self.play(tmp_path, scenario)

    def test_lanes_with_equal_parts_share_them_and_nobody_gets_a_whole_instead(self, tmp_path: Path) -> None:
        async def scenario(world: LaneWorld) -> None:
            positions = await world.published(3)
            part = Part(PartKey(positions[1], key_of(b"part")), b"part")
            keys = WHOLE + part.key.key + key_of(b"lost")
            runs = [run_of(ONE, positions, keys), run_of(TWO, positions[1:2], part.key.key)]
            world.sink.write(Routed(runs, marks_at(positions[2]), parts=[part]))
            assert payloads(await world.everything(ONE)) == [b"1", b"part", None]
            assert payloads(await world.everything(TWO)) == [b"part"]

        self.play(tmp_path, scenario)

    def test_whoever_looks_for_work_is_told_of_each_lane_that_got_entries(self, tmp_path: Path) -> None:
        async def scenario(world: LaneWorld) -> None:
            positions = await world.published(3)
            begin = (await world.lanes.work(0)).upto
            world.sink.write(Routed([run_of(ONE, positions[:1]), run_of(TWO, positions[:1])], marks_at(positions[0])))
            first = await world.lanes.work(begin)
            assert first.lanes >= {ONE, TWO} or first.lost
            world.sink.write(Routed([], marks_at(positions[1])))
            world.sink.write(Routed([run_of(TWO, positions[2:])], marks_at(positions[2])))
            second = await world.lanes.work(first.upto)
            assert TWO in second.lanes and ONE not in second.lanes
            assert (await world.lanes.work(second.upto)).lanes == frozenset()

        self.play(tmp_path, scenario)

    def test_the_index_goes_backwards_in_pages_of_any_size(self, tmp_path: Path) -> None:
        async def scenario(world: LaneWorld) -> None:
            positions = await world.published(100)
            for begin in range(0, 100, 7):
                some = positions[begin : begin + 7]
                world.sink.write(Routed([run_of(ONE, some[::2])], marks_at(some[-1])))
            expected = [mark_of(one) for one in reversed(await world.everything(ONE))]
            for limit in (1, 3, 1000):
                found: list[Mark] = []
                upto = (await world.lanes.end(ONE))._replace(position=positions[-1])
                while page := await world.lane_index.newest(ONE, upto, limit):
                    assert len(page) <= limit
                    found += page
                    upto = Mark(page[-1].number - 1, place_before(page[-1].position))
                assert found == expected

        self.play(tmp_path, scenario)

    def test_a_backlog_is_what_comes_after_a_mark(self, tmp_path: Path) -> None:
        async def scenario(world: LaneWorld) -> None:
            positions = await world.published(6)
            world.sink.write(Routed([run_of(ONE, positions[:5]), run_of(TWO, positions[4:5])], marks_at(positions[5])))
            found = await world.lane_index.backlogs(
                {ONE: Mark(2, positions[1]), TWO: Mark(1, positions[4]), LaneNumber(9): BEGIN}
            )
            assert found == {ONE: (3, positions[2]), TWO: (0, None), LaneNumber(9): (0, None)}

        self.play(tmp_path, scenario)

    def test_asides_come_oldest_first_and_those_of_one_event_together(self, tmp_path: Path) -> None:
        async def scenario(world: LaneWorld) -> None:
            positions = await world.published(3)
            asides = [Aside(positions[0], ONE, "a"), Aside(positions[0], TWO, "b"), Aside(positions[2], None, "c")]
            for _ in range(2):
                world.sink.write(Routed([], marks_at(positions[2]), asides))
            first = await world.lane_index.asides(None, 1)
            assert sorted(first, key=lambda one: one.reason) == asides[:2]
            assert list(await world.lane_index.asides(positions[0], 10)) == asides[2:]

        self.play(tmp_path, scenario)

    def test_what_is_trimmed_is_passed_over_and_numbers_go_on(self, tmp_path: Path) -> None:
        async def scenario(world: LaneWorld) -> None:
            positions = await world.published(6)
            for begin in (0, 2, 4):
                world.sink.write(Routed([run_of(ONE, positions[begin : begin + 2])], marks_at(positions[begin + 1])))
            world.sink.trim(marks_at(positions[3]))
            page = await world.lanes.read(ONE, BEGIN, ALL)
            assert (page.before, [one.number for one in page.entries]) == (4, [5, 6])
            assert (await world.lane_index.backlogs({ONE: BEGIN}))[ONE] == (2, positions[4])

        self.play(tmp_path, scenario)


def run_of(lane: LaneNumber, positions: Sequence[Position], keys: bytes | None = None) -> LaneRun:
    """A run of entries at these places, which are of one partition."""
    offsets = struct.pack(f"<{len(positions)}q", *(position.offset for position in positions))
    (partition,) = {position.partition for position in positions}
    return LaneRun(lane, partition, positions[0].offset, positions[-1].offset, len(positions), offsets, keys)


def marks_at(position: Position) -> Marks:
    return {position.partition: position.offset}


def mark_of(entry: LaneEntry) -> Mark:
    return Mark(entry.number, entry.position)


def payloads(entries: Sequence[LaneEntry]) -> list[bytes | None]:
    return [None if entry.stored is None else entry.stored.data for entry in entries]
