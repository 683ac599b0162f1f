"""Reading lanes and the log while they change or cannot be read: nothing is passed over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.delivery.worlds import World, in_world
from tidings.delivery.push import reading
from tidings.delivery.push.lane import LaneState
from tidings.delivery.push.policy import policy_of
from tidings.delivery.push.pushing import PushLane
from tidings.delivery.push.reading import Reading
from tidings.delivery.push.sqlite import SqliteDeliveryStore
from tidings.delivery.push.store import LaneKey, Tally
from tidings.errors import LogUnavailable
from tidings.ids import DeliveryIds
from tidings.log.block import packed
from tidings.log.port import Entry, Routed
from tidings.log.position import EMBEDDED, LaneNumber, Offset, Partition, Position, embedded
from tidings.log.sqlite.lanes import SqliteLanesReader
from tidings.log.sqlite.reader import SqliteLogReader
from tidings.registry.model import Push

NOWHERE = "http://127.0.0.1:1/"


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

    meanwhile: Callable[[], None]

    def total(self, lane: LaneNumber, partition: Partition) -> int:
        self.meanwhile()
        return super().total(lane, partition)


class Desk:
    """A lane with three entries, and what reads it."""

    def __init__(self, world: World, number: LaneNumber, log: SqliteLogReader) -> None:
        folder = world.settings.data
        self.missed: list[int] = []
        self.store = SqliteDeliveryStore(folder)
        self.log = log
        self.lanes = Interrupted(folder)
        self.lanes.meanwhile = lambda: None
        ids = DeliveryIds(bytes(32))
        self.reading = Reading(self.lanes, log, self.store, ids, lambda lane, count, end: self.missed.append(count))
        self.lane = PushLane(LaneKey(number, EMBEDDED), "billing", LaneState(), Tally())
        self.lane.adopt(policy_of(Push(url=NOWHERE), world.settings.push))


@contextmanager
def a_desk(world: World, number: LaneNumber, log: SqliteLogReader) -> Iterator[Desk]:
    desk = Desk(world, number, log)
    try:
        yield desk
    finally:
        for part in (desk.store, desk.log, desk.lanes):
            part.close()


def test_entries_that_cannot_be_read_now_are_read_later(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        number = world.subscribe("billing", NOWHERE)
        await world.publish(3, number)
        with a_desk(world, number, Unreadable(tmp_path)) as desk:
            with pytest.raises(LogUnavailable):
                desk.reading.fill(desk.lane)
            assert desk.reading.fill(desk.lane)
            assert [parcel.offset for parcel in desk.lane.ready] == [1, 2, 3]

    in_world(tmp_path, scenario)


def test_due_items_that_cannot_be_read_now_stay_due(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        number = world.subscribe("billing", NOWHERE)
        await world.publish(3, number)
        with a_desk(world, number, Unreadable(tmp_path)) as desk:
            desk.lane.due.extend(desk.lane.state.take(Offset(n), world.clock.now()) for n in (1, 2, 3))
            with pytest.raises(LogUnavailable):
                desk.reading.load(desk.lane)
            desk.reading.load(desk.lane)
            assert [item.offset for item, _ in desk.lane.loaded] == [1, 2, 3]

    in_world(tmp_path, scenario)


def test_an_entry_that_comes_while_the_end_is_looked_at_is_not_taken_for_lost(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        number = world.subscribe("billing", NOWHERE)
        await world.publish(1)
        with a_desk(world, number, SqliteLogReader(tmp_path)) as desk:
            desk.lanes.meanwhile = lambda: world.lanes.write(Routed([packed(number, [2])], embedded(2)))
            assert desk.reading.fill(desk.lane)
            assert ([parcel.offset for parcel in desk.lane.ready], desk.missed) == ([2], [])

    in_world(tmp_path, scenario)


def test_a_cursor_that_was_moved_knows_how_many_entries_are_before_it(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        number = world.subscribe("billing", NOWHERE)
        await world.publish(3, number)
        with a_desk(world, number, SqliteLogReader(tmp_path)) as desk:
            for to, before in ((0, 0), (2, 2), (3, 3), (9, 3)):
                desk.lane.state.rewind(Offset(to))
                desk.lane.forget_read()
                desk.reading.place(desk.lane)
                assert desk.lane.state.taken == before
            world.lanes.trim(embedded(3))
            desk.lane.state.rewind(Offset(0))
            desk.lane.forget_read()
            desk.reading.place(desk.lane)
            assert (desk.lane.state.taken, desk.missed) == (3, [])

    in_world(tmp_path, scenario)


def test_a_page_of_large_events_is_short_and_nothing_of_it_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "PAGE_BYTES", 300)

    async def scenario(world: World) -> None:
        number = world.subscribe("billing", NOWHERE)
        await world.publish(9, number)
        with a_desk(world, number, SqliteLogReader(world.settings.data)) as desk:
            found: list[int] = []
            while desk.reading.fill(desk.lane):
                assert 1 <= len(desk.lane.ready) < 9
                found += [parcel.offset for parcel in desk.lane.ready]
                desk.lane.ready.clear()
        assert found == list(range(1, 10))

    in_world(tmp_path, scenario)
