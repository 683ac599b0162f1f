"""Saving in groups: what cannot be saved is kept and saved later, in order."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.builders import a_position
from tests.delivery.push.lanes import a_mark, taken
from tests.polling import until_async
from tidings.clock import Instant, SystemClock
from tidings.delivery.push.lane.entries import Item
from tidings.delivery.push.lane.push_lane import PushLane
from tidings.delivery.push.lane.saved import decode
from tidings.delivery.push.lane.state import LaneState
from tidings.delivery.push.ledger import MOST_COPIED, SLICE_ROWS, Ledger
from tidings.delivery.push.saver import Saver
from tidings.delivery.push.sqlite import SqliteDeliveryStore
from tidings.delivery.push.store import AppliedCommand, Attempted, Burial, Flush, LaneTally, Loaded, Stage
from tidings.errors import LogUnavailable
from tidings.log.position import LaneNumber, Position

KEY = LaneNumber(1)


class FullDisk:
    """A store in memory whose disk is full for the first saves."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.saved: list[Flush] = []

    def save(self, flush: Flush) -> None:
        if self.failures:
            self.failures -= 1
            raise LogUnavailable("the disk is full")
        self.saved.append(flush)

    def load(self) -> Loaded:
        return Loaded({}, {})

    def buried(self, lane: LaneNumber, positions: Sequence[Position] | None) -> Mapping[Position, Burial]:
        return {}

    def letters(self, lane: LaneNumber, stages: Sequence[Stage] = tuple(Stage), limit: int = -1) -> Sequence[Position]:
        return []

    def result(self, command_id: str) -> str | None:
        return None

    def trim(self, before: Instant) -> int:
        return 0

    def close(self) -> None:
        pass


def a_lane() -> PushLane:
    return PushLane(KEY, "billing", LaneState(), LaneTally())


def an_attempt(offset: int) -> Attempted:
    return Attempted(KEY, a_position(offset), "retrying", 1, Instant(1), 500, 1.0, "status-500")


def test_a_failed_save_is_tried_again_before_anything_later_is_saved() -> None:
    async def scenario() -> None:
        ledger, store, lane = Ledger(), FullDisk(failures=1), a_lane()
        saver = Saver(ledger, store, SystemClock(), 0.01)
        told: list[str] = []
        saver.on_trouble = told.append
        ledger.attempted(lane, an_attempt(1))
        saving = asyncio.create_task(saver.save())
        await asyncio.sleep(0)
        ledger.attempted(lane, an_attempt(2))
        await saving
        await saver.save()
        assert [[attempt.position.offset for attempt in flush.attempts] for flush in store.saved] == [[1], [2]]
        assert told == ["the disk is full", ""]
        await saver.close()

    asyncio.run(scenario())


def test_a_flush_that_was_interrupted_is_not_forgotten() -> None:
    async def scenario() -> None:
        ledger, store, lane = Ledger(), FullDisk(failures=1), a_lane()
        saver = Saver(ledger, store, SystemClock(), 0.01)
        ledger.attempted(lane, an_attempt(1))
        saving = asyncio.create_task(saver.save())
        await until_async(lambda: store.failures == 0)
        saving.cancel()
        await asyncio.gather(saving, return_exceptions=True)
        await saver.close()
        assert [attempt.position.offset for flush in store.saved for attempt in flush.attempts] == [1]

    asyncio.run(scenario())


def test_nothing_new_is_nothing_saved() -> None:
    async def scenario() -> None:
        store = FullDisk(failures=0)
        saver = Saver(Ledger(), store, SystemClock(), 0.01)
        await saver.save()
        await saver.close()
        assert store.saved == []

    asyncio.run(scenario())


def test_what_is_on_its_way_is_saved_as_open() -> None:
    async def scenario() -> None:
        ledger, lane = Ledger(), a_lane()
        lane.state.begin([taken(lane.state, 5)])
        lane.state.close(taken(lane.state, 6))
        ledger.touch(lane)
        flush = ledger.collect(ledger.pending(), Instant(2))
        assert flush is not None
        (saved,) = flush.lanes
        assert (saved.low_water, saved.open_items) == (a_mark(4), 1)
        assert list(decode(saved.body).live.open) == [5]
        assert ledger.open_items == 1

    asyncio.run(scenario())


def a_lane_of(number: int) -> PushLane:
    return PushLane(LaneNumber(number), f"s{number}", LaneState(), LaneTally())


def closed(lane: PushLane, number: int) -> Item:
    """An item of the lane that has just become final."""
    item = taken(lane.state, number)
    lane.state.close(item)
    return item


def test_who_waits_for_a_save_does_not_wait_for_the_records_of_others() -> None:
    async def scenario() -> None:
        ledger, busy, ordered = Ledger(), a_lane_of(1), a_lane_of(2)
        for n in range(1, 4):
            ledger.attempted(busy, an_attempt(n))
        item = closed(ordered, 9)
        ledger.released(ordered, a_position(4))
        ledger.leaving(ordered, item)
        first = ledger.collect_urgent(Instant(2))
        assert first is not None
        assert ([lane.lane for lane in first.lanes], first.attempts, first.released) == (
            [2],
            [],
            [(ordered.number, a_position(4))],
        )
        assert ledger.saved() == [(ordered, [item])]
        assert (ledger.urgent.is_set(), ledger.wanted.is_set()) == (False, True)
        rest = ledger.collect(ledger.pending(), Instant(3))
        assert rest is not None
        assert ([lane.lane for lane in rest.lanes], [one.position.offset for one in rest.attempts]) == ([1], [1, 2, 3])
        assert not ledger.wanted.is_set()
        assert ledger.collect(ledger.pending(), Instant(4)) is ledger.collect_urgent(Instant(4)) is None

    asyncio.run(scenario())


def test_commands_are_saved_together_with_the_lanes_that_they_changed() -> None:
    async def scenario() -> None:
        ledger, changed, ordered, other = Ledger(), a_lane_of(1), a_lane_of(2), a_lane_of(3)
        ledger.touch(other)
        ledger.commanded(changed)
        assert ledger.collect([changed.number], Instant(1)) is None, "without its command it is not saved"
        ledger.applied(AppliedCommand("c1", Instant(1), "done"))
        ledger.leaving(ordered, closed(ordered, 9))
        flush = ledger.collect_urgent(Instant(2))
        assert flush is not None
        assert ({lane.lane for lane in flush.lanes}, [one.id for one in flush.applied]) == ({1, 2}, ["c1"])

    asyncio.run(scenario())


def test_an_ordered_lane_is_saved_at_once_and_the_others_in_their_time() -> None:
    async def scenario() -> None:
        ledger, store, busy, ordered = Ledger(), FullDisk(failures=0), a_lane_of(1), a_lane_of(2)
        saver = Saver(ledger, store, SystemClock(), 3600)
        running = asyncio.create_task(saver.run())
        ledger.attempted(busy, an_attempt(1))
        for n in range(1, 4):
            ledger.leaving(ordered, closed(ordered, n))
            await until_async(lambda n=n: len(store.saved) == n)
        assert [[lane.lane for lane in flush.lanes] for flush in store.saved] == [[2], [2], [2]]
        running.cancel()
        await saver.close()
        assert [attempt.position.offset for attempt in store.saved[-1].attempts] == [1]

    asyncio.run(scenario())


class SlowDisk(FullDisk):
    """A store whose disk takes its time for a save."""

    def __init__(self) -> None:
        super().__init__(failures=0)
        self.begun, self.go_on = threading.Event(), threading.Event()

    def save(self, flush: Flush) -> None:
        self.begun.set()
        self.go_on.wait(10)
        super().save(flush)


def test_a_save_that_is_interrupted_while_the_disk_writes_is_not_made_twice() -> None:
    async def scenario() -> None:
        ledger, store, lane = Ledger(), SlowDisk(), a_lane()
        saver = Saver(ledger, store, SystemClock(), 0.01)
        ledger.attempted(lane, an_attempt(1))
        saving = asyncio.create_task(saver.run())
        await until_async(store.begun.is_set)
        saving.cancel()
        asyncio.get_running_loop().call_later(0.05, store.go_on.set)
        await asyncio.gather(saving, return_exceptions=True)
        ledger.attempted(lane, an_attempt(2))
        await saver.close()
        assert [[attempt.position.offset for attempt in flush.attempts] for flush in store.saved] == [[1], [2]]

    asyncio.run(scenario())


def test_what_a_deleted_lane_had_open_counts_no_more() -> None:
    async def scenario() -> None:
        ledger, lane = Ledger(), a_lane()
        taken(lane.state, 5)
        ledger.touch(lane)
        ledger.collect(ledger.pending(), Instant(2))
        assert ledger.open_items == 1
        lane.delete()
        ledger.touch(lane)
        ledger.collect(ledger.pending(), Instant(3))
        assert ledger.open_items == 0

    asyncio.run(scenario())


def test_no_attempts_begin_while_many_bytes_of_dead_letters_wait_for_a_save() -> None:
    async def scenario() -> None:
        ledger, lane = Ledger(), a_lane()
        data = bytes(1 << 20)
        for offset in range(MOST_COPIED >> 20):
            assert not ledger.full
            ledger.buried(lane, Burial(KEY, a_position(offset), "status-400", 1, Instant(1), Instant(1), b"{}", data))
        assert ledger.full
        ledger.collect(ledger.pending(), Instant(2))
        assert not ledger.full

    asyncio.run(scenario())


def a_failing_lane(number: int, items: int) -> PushLane:
    """A lane with many items that wait for their next try, all saved."""
    lane = a_lane_of(number)
    for n in range(1, items + 1):
        lane.state.retry(taken(lane.state, n), Instant(99), 99.0, "timeout")
    lane.saved()
    return lane


def test_a_lane_is_saved_as_what_changed_in_it_however_much_is_open() -> None:
    lane = a_failing_lane(1, 2000)
    one, other = lane.state.live.open[7], lane.state.live.open[8]
    lane.state.retry(one, Instant(200), 200.0, "status-500")
    lane.state.close(other)
    saved = lane.saved()
    assert ([number for number, _ in saved.items], saved.removed, saved.open_items) == ([7], [8], 1999)
    assert len(saved.body) < 200
    assert (lane.saved().items, lane.saved().removed) == ([], [])


def test_the_items_of_a_lane_survive_being_saved_as_changes(tmp_path: Path) -> None:
    store, lane = SqliteDeliveryStore(tmp_path), a_lane()
    for n in range(1, 6):
        lane.state.retry(taken(lane.state, n), Instant(n), float(n), "timeout")
    store.save(Flush(lanes=[lane.saved()]))
    lane.state.close(lane.state.live.open[2])
    lane.state.retry(lane.state.live.open[4], Instant(77), 77.0, "status-500")
    taken(lane.state, 6)
    store.save(Flush(lanes=[lane.saved()]))
    (saved,) = store.load().lanes.values()
    state = decode(saved.body, [row for _, row in saved.items])
    assert {item.number: item.due for item in state.items()} == {1: 1, 3: 3, 4: 77, 5: 5, 6: 0}
    store.close()


class Watched(FullDisk):
    """A store that says when the first save begins."""

    def __init__(self) -> None:
        super().__init__(failures=0)
        self.on_first: Callable[[], object] = lambda: None

    def save(self, flush: Flush) -> None:
        if not self.saved:
            self.on_first()
        super().save(flush)


def test_an_ordered_lane_waits_for_no_more_than_a_slice_of_the_others() -> None:
    async def scenario() -> None:
        ledger, store, ordered = Ledger(), Watched(), a_lane_of(999)
        failing = [a_failing_lane(n, SLICE_ROWS // 2) for n in range(1, 9)]
        for lane in failing:
            for item in list(lane.state.items()):
                lane.state.retry(item, Instant(100), 100.0, "timeout")
            ledger.touch(lane)
        loop = asyncio.get_running_loop()
        store.on_first = lambda: loop.call_soon_threadsafe(ledger.leaving, ordered, closed(ordered, 1))
        saver = Saver(ledger, store, SystemClock(), 3600)
        await saver.save()
        order = [999 in [lane.lane for lane in flush.lanes] for flush in store.saved]
        assert order.index(True) <= 2 and len(order) >= 4
        assert all(sum(lane.rows for lane in flush.lanes) <= 2 * SLICE_ROWS for flush in store.saved)
        await saver.close()

    asyncio.run(scenario())
