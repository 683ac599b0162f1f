"""What lanes.db must hold, whatever was written, again, or in part. The contract of every lanes adapter is in `tests/contracts`."""

from __future__ import annotations

import contextlib
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.errors import LogUnavailable
from tidings.lanes.parts import WHOLE, key_of
from tidings.lanes.sink import Aside, LaneRun, LaneSink, Part, PartKey, Routed
from tidings.lanes.sqlite.block import key_in, offsets_of, packed
from tidings.lanes.sqlite.reader import SqliteLanesReader
from tidings.log.position import EMBEDDED, START, LaneNumber, Marks, Offset, Position, TopicNumber, embedded

ONE, TWO = LaneNumber(1), LaneNumber(2)
EVENTS = 60


class Step(NamedTuple):
    """One routing step of the property: it begins `back` before what is routed, and may break off."""

    back: int
    length: int
    beyond: int
    breaks_after: int | None
    reopens: bool


steps = st.builds(
    Step,
    back=st.integers(0, 20),
    length=st.integers(0, 25),
    beyond=st.integers(0, 5),
    breaks_after=st.none() | st.integers(1, 400),
    reopens=st.booleans(),
)
matches = st.dictionaries(st.integers(1, 4).map(LaneNumber), st.sets(st.integers(1, EVENTS)), max_size=4)


class KeptLanes(ABC):
    @abstractmethod
    def open_writer(self, folder: Path) -> LaneSink:
        """The adapter that is tested, with its files in this folder."""

    @abstractmethod
    def open_reader(self, folder: Path) -> SqliteLanesReader:
        """Its reading side."""

    @contextmanager
    def breaking_off(self, writer: LaneSink, after: int) -> Iterator[None]:
        """A write in here fails at some point that depends on `after`, where the adapter can make it."""
        yield

    def test_a_lane_gives_back_its_entries_in_order(self, tmp_path: Path) -> None:
        with self.writer(tmp_path) as lanes:
            lanes.write(Routed([packed(ONE, [1, 3]), packed(TWO, [2])], embedded(5)))
            lanes.write(Routed([packed(ONE, [6])], embedded(8)))
        with self.reader(tmp_path) as lanes:
            assert entries_of(lanes, ONE) == [1, 3, 6]
            assert entries_of(lanes, TWO) == [2]
            assert entries_of(lanes, LaneNumber(9)) == []
            assert lanes.routed() == embedded(8)

    def test_before_anything_was_routed_every_lane_is_empty(self, tmp_path: Path) -> None:
        with self.reader(tmp_path) as lanes:
            assert not any(lanes.routed().values())
            assert entries_of(lanes, ONE) == []
            assert lanes.count_after(ONE, START, EMBEDDED) == 0
            assert not lanes.touched(0).lanes
            with self.writer(tmp_path) as writer:
                writer.write(Routed([packed(ONE, [1])], embedded(1)))
            assert entries_of(lanes, ONE) == [1]

    def test_how_far_was_routed_moves_without_entries_and_never_back(self, tmp_path: Path) -> None:
        with self.writer(tmp_path) as lanes:
            lanes.write(Routed([], embedded(10)))
            lanes.write(Routed([packed(ONE, [4])], embedded(7)))
            assert lanes.routed() == embedded(10)
        with self.writer(tmp_path) as lanes:
            assert lanes.routed() == embedded(10)
        with self.reader(tmp_path) as lanes:
            assert entries_of(lanes, ONE) == []

    def test_a_block_that_was_partly_routed_is_cut_with_its_digests(self, tmp_path: Path) -> None:
        with self.writer(tmp_path) as lanes:
            lanes.write(Routed([packed(ONE, [1, 2])], embedded(4)))
            digests = b"".join(map(key_of, (b"2", b"4", b"5")))
            lanes.write(Routed([packed(ONE, [2, 4, 5, 9], digests + WHOLE)], embedded(9)))
        with self.reader(tmp_path) as lanes:
            assert entries_of(lanes, ONE) == [1, 2, 5, 9]
            (block,) = lanes.blocks(ONE, Offset(2), EMBEDDED, 10)
            assert (block.first, block.last, block.count) == (5, 9, 2)
            assert [key_in(block, Offset(offset)) for offset in (5, 9)] == [key_of(b"5"), WHOLE]

    def test_a_body_is_kept_once_for_all_lanes_that_name_it(self, tmp_path: Path) -> None:
        bodies = [body_of(1, b"a"), body_of(1, b"b"), body_of(2, b"a"), body_of(1, b"a")]
        with self.writer(tmp_path) as writer, self.reader(tmp_path) as lanes:
            assert lanes.bodies([bodies[0].key]) == {}
            writer.write(Routed([packed(ONE, [1], key_of(b"a"))], embedded(2), parts=bodies))
            found = lanes.bodies([*(body.key for body in bodies), body_of(2, b"b").key])
            assert found == {body.key: body.data for body in bodies}

    def test_bodies_follow_their_entries_when_a_step_is_written_again_or_trimmed(self, tmp_path: Path) -> None:
        early, late, beyond = body_of(1, b"early"), body_of(3, b"late"), body_of(9, b"beyond")
        keys = [early.key, late.key, beyond.key]
        with self.writer(tmp_path) as writer, self.reader(tmp_path) as lanes:
            writer.write(Routed([], embedded(2)))
            writer.write(Routed([packed(ONE, [1, 3], bytes(32))], embedded(3), parts=[early, late, beyond]))
            assert lanes.bodies(keys) == {late.key: b"late"}, "what is routed already, or not yet scanned, brings no body"
            writer.trim(embedded(2))
            assert lanes.bodies(keys) == {late.key: b"late"}
            writer.trim(embedded(3))
            assert lanes.bodies(keys) == {}

    def test_any_number_of_bodies_is_trimmed(self, tmp_path: Path) -> None:
        bodies = [body_of(n, b"x%d" % k) for n in range(1, 301) for k in range(4)]
        with self.writer(tmp_path) as writer, self.reader(tmp_path) as lanes:
            writer.write(Routed([], embedded(300), parts=bodies))
            writer.trim(embedded(299))
            assert set(lanes.bodies([body.key for body in bodies]).values()) == {b"x0", b"x1", b"x2", b"x3"}
            assert len(lanes.bodies([body.key for body in bodies])) == 4

    def test_bodies_go_with_their_entries_though_other_topics_keep_older_ones(self, tmp_path: Path) -> None:
        bodies = [body_of(n, b"%d%d" % (n, k)) for n in range(1, 1501) for k in range(2)]
        log = Left({1: 0, 2: 0}, {n: 1 + n % 2 for n in range(1, 1501)})
        with self.writer(tmp_path) as writer, self.reader(tmp_path) as lanes:
            writer.write(Routed([packed(ONE, [1, 2])], embedded(1500), parts=bodies))
            assert sum(writer.sweep(log)) == 0
            log.lose(2, 1200)
            assert sum(writer.sweep(log)) == 1200
            there = lanes.bodies([body.key for body in bodies])
            assert there == {body.key: body.data for body in bodies if log.remaining([body.key.position])}
            assert entries_of(lanes, ONE) == [1, 2], "a lane keeps its entries: whoever meets one finds that it has gone"
            log.lose(1, 10)
            assert sum(writer.sweep(log)) == 10
            assert sum(writer.sweep(log)) == 0

    def test_a_sweep_lets_writes_pass_and_goes_on_after_a_restart(self, tmp_path: Path) -> None:
        bodies = [body_of(n, b"x") for n in range(1, 3001)]
        log = Left({1: 0, 2: 0}, {n: 1 if n == 1 else 2 for n in range(1, 3001)})
        log.lose(2, 2900)
        with self.writer(tmp_path) as writer:
            writer.write(Routed([], embedded(3000), parts=bodies))
            sweep = writer.sweep(log)
            assert 0 < next(sweep) < 2899
            late = body_of(3001, b"late")
            writer.write(Routed([], embedded(3001), parts=[late]))
        with self.writer(tmp_path) as writer, self.reader(tmp_path) as lanes:
            sum(writer.sweep(log))
            left = lanes.bodies([body.key for body in [*bodies, late]])
            assert [key.position.offset for key in left] == [1, *range(2901, 3002)]
        looked = len(log.asked)
        with self.writer(tmp_path) as writer:
            assert sum(writer.sweep(log)) == 0
            log.lose(1, 2)
            assert sum(writer.sweep(log)) == 1
        assert log.asked[looked:] == [1], "what was swept before is not looked at again"

    def test_entries_above_what_was_scanned_wait_for_the_step_that_scans_them(self, tmp_path: Path) -> None:
        with self.writer(tmp_path) as lanes:
            lanes.write(Routed([packed(ONE, [1, 5, 6])], embedded(5)))
            lanes.write(Routed([packed(ONE, [6, 7])], embedded(7)))
        with self.reader(tmp_path) as lanes:
            assert entries_of(lanes, ONE) == [1, 5, 6, 7]

    def test_blocks_of_a_lane_that_do_not_rise_are_refused_and_nothing_is_stored(self, tmp_path: Path) -> None:
        with self.writer(tmp_path) as lanes:
            with pytest.raises(ValueError, match="not in order"):
                lanes.write(Routed([packed(TWO, [1]), packed(ONE, [5]), packed(ONE, [5, 6])], embedded(9)))
            lanes.write(Routed([packed(ONE, [5]), packed(ONE, [6])], embedded(9)))
        with self.reader(tmp_path) as lanes:
            assert (entries_of(lanes, ONE), entries_of(lanes, TWO)) == ([5, 6], [])

    def test_only_as_many_blocks_as_wanted_from_the_one_that_holds_the_next_entry(self, tmp_path: Path) -> None:
        with self.writer(tmp_path) as lanes:
            for n in range(1, 101):
                lanes.write(Routed([packed(ONE, [3 * n, 3 * n + 1])], embedded(3 * n + 1)))
        with self.reader(tmp_path) as lanes:
            assert [b.first for b in lanes.blocks(ONE, Offset(31), EMBEDDED, 3)] == [33, 36, 39]
            assert [b.first for b in lanes.blocks(ONE, Offset(30), EMBEDDED, 2)] == [30, 33]
            assert [b.first for b in lanes.blocks(ONE, START, EMBEDDED, 1000)] == [3 * n for n in range(1, 101)]
            assert lanes.blocks(ONE, Offset(301), EMBEDDED, 5) == []

    def test_the_lag_is_the_number_of_entries_after_a_place(self, tmp_path: Path) -> None:
        offsets = [n for n in range(1, 400) if n % 3]
        with self.writer(tmp_path) as lanes:
            for start in range(0, len(offsets), 5):
                block = packed(ONE, offsets[start : start + 5])
                lanes.write(Routed([block], embedded(block.last)))
        with self.reader(tmp_path) as lanes:
            for after in (0, 1, 2, 3, 100, 250, 397, 398, 399, 1000):
                assert lanes.count_after(ONE, Offset(after), EMBEDDED) == sum(o > after for o in offsets)

    def test_touches_tell_where_work_is_and_where_to_go_on(self, tmp_path: Path) -> None:
        with self.writer(tmp_path) as writer, self.reader(tmp_path) as lanes:
            writer.write(Routed([packed(ONE, [1])], embedded(1)))
            writer.write(Routed([packed(TWO, [2])], embedded(2)))
            first = lanes.touched(0)
            assert (first.lanes, first.lost) == ({ONE, TWO}, False)
            assert lanes.touched(first.upto).lanes == frozenset()
            writer.write(Routed([], embedded(3)))
            writer.write(Routed([packed(TWO, [2])], embedded(3)))
            assert lanes.touched(first.upto).lanes == frozenset()
            writer.write(Routed([packed(TWO, [4])], embedded(4)))
            second = lanes.touched(first.upto)
            assert (second.lanes, second.lost) == ({TWO}, False)
            assert lanes.touched(second.upto + 50).lost

    def test_what_was_set_aside_is_kept_once_with_its_reason(self, tmp_path: Path) -> None:
        where = Position(EMBEDDED, Offset(3))
        aside = [
            Aside(where, None, "no JSON"),
            Aside(where, TWO, "too deep"),
            Aside(Position(EMBEDDED, Offset(4)), ONE, "late"),
        ]
        with self.writer(tmp_path) as writer, self.reader(tmp_path) as lanes:
            writer.write(Routed([], embedded(5), aside))
            writer.write(Routed([], embedded(5), aside))
            assert list(lanes.asides(None, 10)) == aside
            assert list(lanes.asides(None, 1)) == aside[:2]
            assert list(lanes.asides(where, 10)) == aside[2:]
            writer.trim(embedded(3))
            assert list(lanes.asides(None, 10)) == aside[2:]

    def test_trimming_takes_the_blocks_that_end_at_or_below_the_marks(self, tmp_path: Path) -> None:
        with self.writer(tmp_path) as writer, self.reader(tmp_path) as lanes:
            for n in range(1, 701, 50):
                blocks = [packed(lane, [2 * k + lane - 1]) for k in range(n, n + 50) for lane in (ONE, TWO)]
                writer.write(Routed(blocks, embedded(2 * n + 99)))
            assert writer.trim(embedded(1300)) == 650 + 649
            assert entries_of(lanes, ONE) == list(range(1302, 1401, 2))
            assert entries_of(lanes, TWO) == list(range(1301, 1402, 2))
            assert lanes.count_after(ONE, START, EMBEDDED) == 50
            assert writer.trim(embedded(1300)) == 0
            assert writer.trim(embedded(5000)) == 101
            writer.write(Routed([packed(ONE, [2000])], embedded(2000)))
            assert entries_of(lanes, ONE) == [2000]
            assert lanes.count_after(ONE, START, EMBEDDED) == 1

    def test_a_block_tells_how_many_entries_the_lane_has_had_before_it(self, tmp_path: Path) -> None:
        with self.writer(tmp_path) as writer, self.reader(tmp_path) as lanes:
            assert lanes.total(ONE, EMBEDDED) == 0
            for n in range(1, 101):
                writer.write(Routed([packed(ONE, [3 * n, 3 * n + 1]), packed(TWO, [3 * n])], embedded(3 * n + 1)))
            assert [b.before for b in lanes.blocks(ONE, START, EMBEDDED, 1000)] == list(range(0, 200, 2))
            assert [b.before for b in lanes.blocks(TWO, Offset(150), EMBEDDED, 2)] == [50, 51]
            assert [b.before for b in lanes.blocks(ONE, Offset(150), EMBEDDED, 1)] == [98], "the block holds entry 151 too"
            assert (lanes.total(ONE, EMBEDDED), lanes.total(TWO, EMBEDDED)) == (200, 100)

    def test_what_was_removed_still_counts_in_before_and_total(self, tmp_path: Path) -> None:
        with self.writer(tmp_path) as writer, self.reader(tmp_path) as lanes:
            for n in range(1, 101):
                writer.write(Routed([packed(ONE, [2 * n, 2 * n + 1])], embedded(2 * n + 1)))
            writer.trim(embedded(141))
            (block,) = lanes.blocks(ONE, START, EMBEDDED, 1)
            assert (block.first, block.before, lanes.total(ONE, EMBEDDED)) == (142, 140, 200)
            writer.trim(embedded(500))
            assert (lanes.blocks(ONE, START, EMBEDDED, 1), lanes.total(ONE, EMBEDDED)) == ([], 200)
            assert lanes.count_after(ONE, START, EMBEDDED) == 0
        with self.writer(tmp_path) as writer, self.reader(tmp_path) as lanes:
            writer.write(Routed([packed(ONE, [600])], embedded(600)))
            (block,) = lanes.blocks(ONE, START, EMBEDDED, 1)
            assert (block.before, lanes.total(ONE, EMBEDDED)) == (200, 201)

    @settings(max_examples=40, deadline=None)
    @given(matches=matches, steps=st.lists(steps, max_size=12))
    def test_whatever_is_written_again_after_whatever_crash_each_entry_is_there_once(
        self, matches: Mapping[LaneNumber, set[int]], steps: Sequence[Step]
    ) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            writer = self.open_writer(folder)
            for step in [*steps, Step(0, EVENTS, 0, None, True)]:
                start = max(0, writer.routed().get(EMBEDDED, START) - step.back)
                upto = min(EVENTS, start + step.length)
                found = Routed(blocks_of(matches, start, upto + step.beyond), embedded(upto))
                if step.breaks_after is None:
                    writer.write(found)
                else:
                    with contextlib.suppress(LogUnavailable), self.breaking_off(writer, step.breaks_after):
                        writer.write(found)
                if step.reopens:
                    writer.close()
                    writer = self.open_writer(folder)
            upto = writer.routed()[EMBEDDED]
            writer.write(Routed(blocks_of(matches, upto, EVENTS), embedded(EVENTS)))
            writer.close()
            with self.reader(folder) as lanes:
                assert lanes.routed() == embedded(EVENTS)
                for lane, offsets in matches.items():
                    assert entries_of(lanes, lane) == sorted(offsets)
                    assert lanes.count_after(lane, START, EMBEDDED) == len(offsets)

    @contextmanager
    def writer(self, folder: Path) -> Iterator[LaneSink]:
        lanes = self.open_writer(folder)
        try:
            yield lanes
        finally:
            lanes.close()
            lanes.close()

    @contextmanager
    def reader(self, folder: Path) -> Iterator[SqliteLanesReader]:
        lanes = self.open_reader(folder)
        try:
            yield lanes
        finally:
            lanes.close()


class Left:
    """What is left of a log in which each offset has a topic."""

    def __init__(self, marks: dict[int, int], topics: dict[int, int]) -> None:
        self._marks = marks
        self._topics = topics
        self.asked: list[int] = []

    def lose(self, topic: int, upto: int) -> None:
        self._marks[topic] = upto

    def removals(self) -> Mapping[TopicNumber, Marks]:
        return {TopicNumber(topic): embedded(upto) for topic, upto in self._marks.items()}

    def remaining(self, positions: Sequence[Position]) -> frozenset[Position]:
        self.asked += [position.offset for position in positions]
        return frozenset(one for one in positions if one.offset > self._marks[self._topics.get(one.offset, 1)])


def entries_of(lanes: SqliteLanesReader, lane: LaneNumber) -> list[int]:
    """All entries of a lane, a few blocks at a time."""
    found: list[int] = []
    while blocks := lanes.blocks(lane, Offset(found[-1] if found else 0), EMBEDDED, 7):
        found += [offset for block in blocks for offset in offsets_of(block) if not found or offset > found[-1]]
    return found


def body_of(offset: int, data: bytes) -> Part:
    return Part(PartKey(Position(EMBEDDED, Offset(offset)), key_of(data)), data)


def blocks_of(matches: Mapping[LaneNumber, set[int]], after: int, upto: int) -> list[LaneRun]:
    """What routing (after, upto] finds: one block per lane."""
    found = {lane: sorted(o for o in offsets if after < o <= upto) for lane, offsets in sorted(matches.items())}
    return [packed(lane, offsets) for lane, offsets in found.items() if offsets]
