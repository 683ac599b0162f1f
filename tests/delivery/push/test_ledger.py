"""Saving in groups: what cannot be saved is kept and saved later, in order."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence

from tests.delivery.worlds import until
from tidings.clock import Instant, SystemClock
from tidings.delivery.push.lane import Item, LaneState, decode
from tidings.delivery.push.ledger import MOST_COPIED, Ledger, Saver
from tidings.delivery.push.pushing import PushLane
from tidings.delivery.push.store import Applied, Attempted, Burial, Flush, LaneKey, Loaded, Tally
from tidings.errors import LogUnavailable
from tidings.log.position import LaneNumber, Offset, Partition

KEY = LaneKey(LaneNumber(1), Partition(0))


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

    def buried(self, key: LaneKey, offsets: Sequence[Offset] | None) -> Mapping[Offset, Burial]:
        return {}

    def letters(self, key: LaneKey, raised: bool = True) -> Sequence[Offset]:
        return []

    def result(self, command_id: str) -> str | None:
        return None

    def trim(self, before: Instant) -> int:
        return 0

    def close(self) -> None:
        pass


def a_lane() -> PushLane:
    return PushLane(KEY, "billing", LaneState(), Tally())


def an_attempt(offset: int) -> Attempted:
    return Attempted(KEY, Offset(offset), "retrying", 1, Instant(1), 500, 1.0, "status-500")


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
        assert [[attempt.offset for attempt in flush.attempts] for flush in store.saved] == [[1], [2]]
        assert told == ["the disk is full", ""]
        await saver.close()

    asyncio.run(scenario())


def test_a_flush_that_was_interrupted_is_not_forgotten() -> None:
    async def scenario() -> None:
        ledger, store, lane = Ledger(), FullDisk(failures=1), a_lane()
        saver = Saver(ledger, store, SystemClock(), 0.01)
        ledger.attempted(lane, an_attempt(1))
        saving = asyncio.create_task(saver.save())
        await until(lambda: store.failures == 0)
        saving.cancel()
        await asyncio.gather(saving, return_exceptions=True)
        await saver.close()
        assert [attempt.offset for flush in store.saved for attempt in flush.attempts] == [1]

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
        lane.state.take(Offset(5), Instant(1)).sending = True
        done = lane.state.take(Offset(6), Instant(1))
        lane.state.close(done)
        ledger.touch(lane)
        flush = ledger.collect(Instant(2))
        assert flush is not None
        (saved,) = flush.lanes
        assert (saved.low_water, saved.open_items, list(decode(saved.body).open)) == (4, 1, [5])
        assert ledger.open_items == 1

    asyncio.run(scenario())


def a_lane_of(number: int) -> PushLane:
    return PushLane(LaneKey(LaneNumber(number), Partition(0)), f"s{number}", LaneState(), Tally())


def taken(lane: PushLane, offset: int) -> Item:
    """An item of the lane that has just become final."""
    item = lane.state.take(Offset(offset), Instant(1))
    lane.state.close(item)
    return item


def test_who_waits_for_a_save_does_not_wait_for_the_records_of_others() -> None:
    async def scenario() -> None:
        ledger, busy, ordered = Ledger(), a_lane_of(1), a_lane_of(2)
        for n in range(1, 4):
            ledger.attempted(busy, an_attempt(n))
        item = taken(ordered, 9)
        ledger.released(ordered, Offset(4))
        ledger.leaving(ordered, item)
        first = ledger.collect_urgent(Instant(2))
        assert first is not None
        assert ([lane.key.lane for lane in first.lanes], first.attempts, first.released) == ([2], [], [(ordered.key, 4)])
        assert ledger.saved() == [(ordered, item)]
        assert (ledger.urgent.is_set(), ledger.wanted.is_set()) == (False, True)
        rest = ledger.collect(Instant(3))
        assert rest is not None
        assert ([lane.key.lane for lane in rest.lanes], [one.offset for one in rest.attempts]) == ([1], [1, 2, 3])
        assert not ledger.wanted.is_set()
        assert ledger.collect(Instant(4)) is ledger.collect_urgent(Instant(4)) is None

    asyncio.run(scenario())


def test_commands_are_saved_together_with_all_lanes() -> None:
    async def scenario() -> None:
        ledger, changed, ordered = Ledger(), a_lane_of(1), a_lane_of(2)
        ledger.touch(changed)
        ledger.applied(Applied("c1", Instant(1), "done"))
        ledger.leaving(ordered, taken(ordered, 9))
        flush = ledger.collect_urgent(Instant(2))
        assert flush is not None
        assert ({lane.key.lane for lane in flush.lanes}, [one.id for one in flush.applied]) == ({1, 2}, ["c1"])

    asyncio.run(scenario())


def test_an_ordered_lane_is_saved_at_once_and_the_others_in_their_time() -> None:
    async def scenario() -> None:
        ledger, store, busy, ordered = Ledger(), FullDisk(failures=0), a_lane_of(1), a_lane_of(2)
        saver = Saver(ledger, store, SystemClock(), 3600)
        running = asyncio.create_task(saver.run())
        ledger.attempted(busy, an_attempt(1))
        for n in range(1, 4):
            ledger.leaving(ordered, taken(ordered, n))
            await until(lambda n=n: len(store.saved) == n)
        assert [[lane.key.lane for lane in flush.lanes] for flush in store.saved] == [[2], [2], [2]]
        running.cancel()
        await saver.close()
        assert [attempt.offset for attempt in store.saved[-1].attempts] == [1]

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
        await until(store.begun.is_set)
        saving.cancel()
        asyncio.get_running_loop().call_later(0.05, store.go_on.set)
        await asyncio.gather(saving, return_exceptions=True)
        ledger.attempted(lane, an_attempt(2))
        await saver.close()
        assert [[attempt.offset for attempt in flush.attempts] for flush in store.saved] == [[1], [2]]

    asyncio.run(scenario())


def test_what_a_deleted_lane_had_open_counts_no_more() -> None:
    async def scenario() -> None:
        ledger, lane = Ledger(), a_lane()
        lane.state.take(Offset(5), Instant(1))
        ledger.touch(lane)
        ledger.collect(Instant(2))
        assert ledger.open_items == 1
        lane.delete()
        ledger.touch(lane)
        ledger.collect(Instant(3))
        assert ledger.open_items == 0

    asyncio.run(scenario())


def test_no_attempts_begin_while_many_bytes_of_dead_letters_wait_for_a_save() -> None:
    async def scenario() -> None:
        ledger, lane = Ledger(), a_lane()
        data = bytes(1 << 20)
        for offset in range(MOST_COPIED >> 20):
            assert not ledger.full
            ledger.buried(lane, Burial(KEY, Offset(offset), "status-400", 1, Instant(1), Instant(1), b"{}", data))
        assert ledger.full
        ledger.collect(Instant(2))
        assert not ledger.full

    asyncio.run(scenario())
