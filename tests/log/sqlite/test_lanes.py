"""The lanes contract over SQLite, and what only SQLite lanes promise."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.log.sqlite.kept_lanes import ONE, TWO, KeptLanes, Left, body_of, entries_of
from tidings.errors import DataFolderUnusable
from tidings.lanes.sink import LaneSink, Routed
from tidings.lanes.sqlite import writer as lanes_module
from tidings.lanes.sqlite.block import packed
from tidings.lanes.sqlite.bodies import Lost, lost_since
from tidings.lanes.sqlite.reader import SqliteLanesReader
from tidings.lanes.sqlite.writer import SqliteLanesWriter
from tidings.log.position import EMBEDDED, START, LaneNumber, Offset, embedded

lost = st.dictionaries(st.tuples(st.integers(1, 4), st.integers(0, 1)), st.integers(1, 30))


class TestSqliteLanes(KeptLanes):
    def open_writer(self, folder: Path) -> LaneSink:
        return SqliteLanesWriter(folder)

    def open_reader(self, folder: Path) -> SqliteLanesReader:
        return SqliteLanesReader(folder)

    @contextmanager
    def breaking_off(self, writer: LaneSink, after: int) -> Iterator[None]:
        """SQLite gives up after that many of its own steps: anywhere between BEGIN and COMMIT."""
        connection: sqlite3.Connection = writer._connection
        connection.set_progress_handler(lambda: 1, after)
        try:
            yield
        finally:
            connection.set_progress_handler(None, 1)


def test_a_second_lanes_writer_is_refused(tmp_path: Path) -> None:
    first = SqliteLanesWriter(tmp_path)
    with pytest.raises(DataFolderUnusable, match="another hub writes this file"):
        SqliteLanesWriter(tmp_path)
    first.close()
    SqliteLanesWriter(tmp_path).close()


def test_a_reader_far_behind_is_told_to_look_at_all_lanes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes_module, "_TOUCH_ROWS", 3)
    writer, reader = SqliteLanesWriter(tmp_path), SqliteLanesReader(tmp_path)
    for n in range(1, 7):
        writer.write(Routed([packed(LaneNumber(n), [n])], embedded(n)))
    assert reader.touched(0).lost
    assert not reader.touched(3).lost
    assert reader.touched(3).lanes == {4, 5, 6}
    writer.close()
    writer = SqliteLanesWriter(tmp_path)
    writer.write(Routed([packed(ONE, [7])], embedded(7)))
    assert reader.touched(reader.touched(0).upto).lanes == frozenset()
    assert reader.touched(3).lost
    assert reader.touched(6).lanes == {ONE}
    writer.close()


def test_a_wide_batch_forgets_older_touches_by_their_lanes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes_module, "_TOUCH_LANES", 10)
    writer, reader = SqliteLanesWriter(tmp_path), SqliteLanesReader(tmp_path)
    for n in range(1, 4):
        writer.write(Routed([packed(LaneNumber(lane), [n]) for lane in range(1, 9)], embedded(n)))
    assert reader.touched(1).lost
    assert len(reader.touched(2).lanes) == 8
    writer.close()


def test_a_failed_write_leaves_nothing_and_the_next_one_works(tmp_path: Path) -> None:
    writer, reader = SqliteLanesWriter(tmp_path), SqliteLanesReader(tmp_path)
    writer.write(Routed([packed(ONE, [1])], embedded(1)))
    writer._connection.execute("CREATE TEMP TRIGGER no BEFORE INSERT ON touches BEGIN SELECT raise(FAIL, 'no'); END")
    with pytest.raises(Exception, match="no"):
        writer.write(Routed([packed(ONE, [2]), packed(TWO, [2])], embedded(2)))
    assert reader.routed() == embedded(1)
    writer._connection.execute("DROP TRIGGER no")
    writer.write(Routed([packed(ONE, [2]), packed(TWO, [2])], embedded(2)))
    assert (entries_of(reader, ONE), entries_of(reader, TWO)) == ([1, 2], [2])
    writer.close()


def test_a_walk_to_any_place_in_a_long_lane_is_short(tmp_path: Path) -> None:
    writer, reader = SqliteLanesWriter(tmp_path), SqliteLanesReader(tmp_path)
    writer.write(Routed([packed(ONE, [n]) for n in range(1, 5001)], embedded(5000)))
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    for after in (START, Offset(2500), Offset(4999)):
        assert reader.blocks(ONE, after, EMBEDDED, 1)[0].first == after + 1
        assert reader._file is not None
        with reader._file.statements() as connection:
            connection.set_progress_handler(count, 100)
        reader.blocks(ONE, after, EMBEDDED, 1)
        with reader._file.statements() as connection:
            connection.set_progress_handler(None, 1)
    assert steps < 100, "a walk visits at most 32 blocks, not thousands"
    writer.close()


def test_ten_thousand_lanes_in_one_batch(tmp_path: Path) -> None:
    writer, reader = SqliteLanesWriter(tmp_path), SqliteLanesReader(tmp_path)
    for n in (1, 2):
        writer.write(
            Routed([packed(LaneNumber(lane), [10 * n + 1, 10 * n + 2]) for lane in range(1, 10_001)], embedded(10 * n + 9))
        )
    assert len(reader.touched(0).lanes) == 10_000
    assert entries_of(reader, LaneNumber(7_777)) == [11, 12, 21, 22]
    assert reader.count_after(LaneNumber(7_777), Offset(12), EMBEDDED) == 2
    writer.close()


def test_large_bodies_go_a_few_at_a_time(tmp_path: Path) -> None:
    writer = SqliteLanesWriter(tmp_path)
    writer.write(Routed([], embedded(9), parts=[body_of(n, bytes([n]) * (1 << 20)) for n in range(1, 10)]))
    assert list(writer.sweep(Left({1: 8}, {})))[:4] == [2, 2, 2, 2]
    writer.close()


@given(before=lost, now=lost)
def test_the_spans_of_what_was_lost_since_cover_it_once(before: Lost, now: Lost) -> None:
    spans = lost_since(before, now)
    covered = [(span.partition, offset) for span in spans for offset in range(span.after + 1, span.upto + 1)]
    expected = {(key[1], offset) for key, upto in now.items() for offset in range(before.get(key, START) + 1, upto + 1)}
    assert len(covered) == len(set(covered))
    assert set(covered) == expected
