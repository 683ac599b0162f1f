"""Statuses of a lane's events, page by page, over real files."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import a_position
from tidings.clock import Instant
from tidings.delivery.push.lane.entries import Item
from tidings.delivery.push.lane.saved import encode
from tidings.delivery.push.lane.state import LaneState
from tidings.delivery.push.records import statuses
from tidings.delivery.push.records.port import RecordsKept
from tidings.delivery.push.records.statuses import LaneSources, Statuses, StatusQuestion
from tidings.delivery.push.sqlite import SqliteDeliveryReader, SqliteDeliveryStore, SqliteRecords
from tidings.delivery.push.sqlite.offset_bins import bin_of, bins_between
from tidings.delivery.push.store import Attempted, Firsts, Flush, LaneTally, SavedLane
from tidings.lanes.port import Mark
from tidings.lanes.sink import Routed
from tidings.lanes.sqlite.block import packed
from tidings.lanes.sqlite.lanes import EmbeddedLanes
from tidings.lanes.sqlite.writer import SqliteLanesReader, SqliteLanesWriter
from tidings.log.port import LogReader
from tidings.log.position import LaneNumber, embedded, marks_below

KEY = LaneNumber(3)


class Files:
    """The files of delivery and routing, written by hand."""

    def __init__(self, folder: Path) -> None:
        self.store = SqliteDeliveryStore(folder)
        self.lanes = SqliteLanesWriter(folder)
        self.reader = SqliteDeliveryReader(folder)
        self.lanes_reader = SqliteLanesReader(folder)
        # Nothing is read of what the lanes hold.
        lanes = EmbeddedLanes(self.lanes_reader, cast(LogReader, None))
        self.records = SqliteRecords(self.reader)
        self.statuses = Statuses(LaneSources(lanes, lanes, self.records))
        self._time = 0
        self._offsets: list[int] = []

    def route(self, *offsets: int, upto: int = 0) -> None:
        blocks = [packed(KEY, offsets)] if offsets else []
        self.lanes.write(Routed(blocks, embedded(upto or offsets[-1])))
        self._offsets += offsets

    def mark(self, offset: int) -> Mark:
        """The place of an entry in the lane."""
        return Mark(bisect_right(self._offsets, offset), a_position(offset))

    def save(
        self, cursor: int, delivered: list[int] | None = None, facts: dict[int, str] | None = None, word: str = "active"
    ) -> None:
        """The lane is at `cursor`; these were delivered at once, of others there are facts. What is retried is open."""
        self._time += 1
        at = Instant(self._time)
        firsts = Firsts()
        for offset in delivered or []:
            firsts.add(a_position(offset), at, 1.5, 204)
        retried = [offset for offset, fact in (facts or {}).items() if fact == "retrying"]
        state = LaneState(self.mark(cursor))
        more = {"tries": 1, "due": Instant(99), "since": at, "cause": "timeout"}
        state.restore(Item(*self.mark(offset), **more) for offset in retried)  # type: ignore[arg-type]
        attempts = [
            Attempted(KEY, a_position(offset), fact, 1, at, 500, 2.0, "status-500", "http://there/in")
            for offset, fact in (facts or {}).items()
        ]
        low = state.low_water
        lane = SavedLane(
            lane=KEY, state=word, body=encode(state), low_water=low, open_items=0, next_due=None, tally=LaneTally()
        )
        self.store.save(Flush(lanes=[lane], firsts={KEY: firsts} if delivered else {}, attempts=attempts, at=at))

    def listed(self, limit: int = 100, **question: object) -> list[tuple[int, str]]:
        """Every page of an answer."""
        found: list[tuple[int, str]] = []
        asked = StatusQuestion(limit=limit, **question)  # type: ignore[arg-type]
        while True:
            page = asyncio.run(self.statuses.page(KEY, asked))
            assert len(page.found) <= limit
            found += [(one.position.offset, one.state) for one in page.found]
            if page.before is None:
                return found
            asked = StatusQuestion(limit=limit, **{**question, "upto": marks_below(page.before)})  # type: ignore[arg-type]

    def close(self) -> None:
        for one in (self.store, self.lanes, self.reader, self.lanes_reader):
            one.close()


@contextmanager
def files(folder: Path) -> Iterator[Files]:
    made = Files(folder)
    try:
        yield made
    finally:
        made.close()


@given(st.integers(0, 1 << 58), st.integers(0, 1 << 20), st.data())
def test_a_row_is_found_by_any_of_its_offsets(low: int, length: int, data: st.DataObject) -> None:
    offset = data.draw(st.integers(low, low + length))
    number = bin_of(low, low + length)
    assert number < 1 << 63
    assert any(first <= number <= last for first, last in bins_between(offset, offset))


def test_every_event_of_a_lane_is_listed_once_newest_first(tmp_path: Path) -> None:
    with files(tmp_path) as one:
        one.route(1, 2, 3, 5, 8)
        one.save(5, delivered=[1, 3], facts={2: "dead", 5: "retrying"})
        expected = [(8, "processed"), (5, "retrying"), (3, "delivered"), (2, "dead"), (1, "delivered")]
        assert one.listed() == one.listed(limit=2) == expected
        assert one.listed(states=frozenset(("dead", "retrying"))) == [(5, "retrying"), (2, "dead")]
        assert one.listed(states=frozenset(("processed", "retrying"))) == [(8, "processed"), (5, "retrying")]
        assert one.listed(states=frozenset(("delivered",)), limit=1) == [(3, "delivered"), (1, "delivered")]
        assert one.listed(above=embedded(2), upto=embedded(7)) == [(5, "retrying"), (3, "delivered")]


def test_what_waits_behind_a_stop_is_waiting_without_a_record(tmp_path: Path) -> None:
    with files(tmp_path) as one:
        one.route(*range(1, 5001))
        one.save(2, delivered=[1, 2], word="open")
        page = asyncio.run(one.statuses.page(KEY, StatusQuestion(states=frozenset(("waiting",)), limit=3)))
        assert [(status.position.offset, status.state) for status in page.found] == [
            (5000, "waiting"),
            (4999, "waiting"),
            (4998, "waiting"),
        ]
        assert len(one.listed(states=frozenset(("waiting",)), limit=1000)) == 4998


def test_a_few_events_among_millions_of_others_are_found_in_few_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with files(tmp_path) as one:
        one.route(7, 1_000_000, 90_000_000)
        one.save(90_000_000, delivered=[7, 90_000_000, 1_000_000])
        looks = 0
        real = one.records._between

        def counted(*asked: object) -> object:
            nonlocal looks
            looks += 1
            return real(*asked)  # type: ignore[arg-type]

        monkeypatch.setattr(one.records, "_between", counted)
        assert one.listed() == [(90_000_000, "delivered"), (1_000_000, "delivered"), (7, "delivered")]
        assert looks < 30


def test_what_left_the_lane_is_listed_as_long_as_it_is_recorded(tmp_path: Path) -> None:
    with files(tmp_path) as one:
        one.route(1, 2, 3)
        one.save(3, delivered=[1, 3], facts={2: "dead"})
        one.lanes.trim(embedded(3))
        one.route(9)
        assert one.listed() == [(9, "processed"), (3, "delivered"), (2, "dead"), (1, "delivered")]


def test_a_page_with_nothing_in_it_says_where_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statuses, "LOOKS", 100)
    with files(tmp_path) as one:
        one.route(*range(1, 5001))
        one.save(5000, delivered=list(range(2, 5001)))
        page = asyncio.run(one.statuses.page(KEY, StatusQuestion(states=frozenset(("unrecorded",)))))
        assert page.found == []
        assert page.before is not None
        assert one.listed(states=frozenset(("unrecorded",))) == [(1, "unrecorded")]


def test_one_event_is_told_with_its_whole_history_newest_first(tmp_path: Path) -> None:
    with files(tmp_path) as one:
        one.route(4, 6)
        one.save(6, facts={4: "retrying"}, delivered=[6])
        one.save(6, facts={4: "dead"})
        found = asyncio.run(one.statuses.of(KEY, a_position(4)))
        assert found is not None
        assert (found.state, found.attempts, found.first_at, found.at, found.cause) == ("dead", 1, 1, 2, "status-500")
        assert [(fact.state, fact.at, fact.target) for fact in found.history] == [
            ("dead", 2, "http://there/in"),
            ("retrying", 1, "http://there/in"),
        ]
        assert asyncio.run(one.statuses.of(KEY, a_position(5))) is None


def test_a_rewound_lane_tells_of_both_deliveries(tmp_path: Path) -> None:
    with files(tmp_path) as one:
        one.route(1, 2)
        one.save(2, delivered=[1, 2])
        one.save(0)
        assert one.listed() == [(2, "redelivering"), (1, "redelivering")]
        one.save(2, delivered=[2], facts={1: "dead"})
        assert one.listed() == [(2, "delivered"), (1, "dead")]
        twice = asyncio.run(one.statuses.of(KEY, a_position(2)))
        assert twice is not None and (twice.attempts, len(twice.history)) == (2, 2)


def kept(reader: SqliteDeliveryReader) -> RecordsKept:
    return asyncio.run(SqliteRecords(reader).kept())


FATES = st.sampled_from(["delivered", "dead", "expired", "retrying", "none"])


@settings(deadline=None, max_examples=25)
@given(
    st.lists(st.tuples(st.integers(1, 2000), FATES), max_size=60), st.integers(1, 20), st.integers(1, 30), st.integers(0, 60)
)
def test_pages_of_any_size_tell_the_same_as_asking_for_each_event(
    steps: list[tuple[int, str]], limit: int, every: int, unread: int
) -> None:
    with TemporaryDirectory() as folder, files(Path(folder)) as one:
        offset, open_items, done, fates = 0, dict[int, str](), list[int](), dict[int, str]()
        for n, (gap, fate) in enumerate(steps):
            offset += gap
            one.route(offset)
            if n >= len(steps) - unread:
                continue
            match fate:
                case "delivered":
                    done.append(offset)
                case "dead" | "expired":
                    fates[offset] = fate
                case "retrying":
                    open_items[offset] = "retrying"
            if n % every == 0:
                one.save(offset, done, {**fates, **open_items})
                done, fates = [], {}
        expected = []
        at = 0
        for gap, _ in steps:
            at += gap
            status = asyncio.run(one.statuses.of(KEY, a_position(at)))
            assert status is not None
            expected.insert(0, (at, status.state))
        assert one.listed(limit=limit) == expected
        for words in (*({state} for _, state in expected), {"dead", "expired", "skipped", "deleted"}, {"dead", "retrying"}):
            assert one.listed(limit=limit, states=frozenset(words)) == [pair for pair in expected if pair[1] in words]


def test_records_beyond_their_bytes_go_oldest_first_and_the_reader_says_so(tmp_path: Path) -> None:
    store, reader = SqliteDeliveryStore(tmp_path, records_bytes=200_000), SqliteDeliveryReader(tmp_path)
    for n in range(1, 1501):
        firsts = Firsts()
        firsts.add(a_position(2 * n), n, 1.0, 204)
        failed = Attempted(KEY, a_position(2 * n + 1), "dead", 1, Instant(n), 500, 1.0, "status-500")
        store.save(Flush(firsts={KEY: firsts}, attempts=[failed]))
    assert kept(reader).cut == 0
    while store.trim(Instant(0)):
        pass
    cut = kept(reader).cut
    left = reader.deliveries(KEY, None, 5000)
    assert 0 < len(left) < 1500
    assert 500 <= cut <= left[-1].at
    assert left[0].at == 1500
    assert kept(reader).bytes <= 200_000
    store.close()
    reader.close()
