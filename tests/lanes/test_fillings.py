"""Filling a lane from the log while routing goes on: no gap, no repeat, whenever the process ends."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.log.sqlite.kept_lanes import ONE, TWO, entries_of
from tidings import config
from tidings.lanes.port import Mark, PageLimit
from tidings.lanes.sink import Filling, Routed
from tidings.lanes.sqlite import fillings
from tidings.lanes.sqlite.block import packed
from tidings.lanes.sqlite.lanes import EmbeddedLanes
from tidings.lanes.sqlite.writer import SqliteLanesReader, SqliteLanesWriter
from tidings.log.position import EMBEDDED, START, Offset, Position, embedded
from tidings.log.sqlite.reader import SqliteLogReader
from tidings.log.sqlite.writer import SqliteLogWriter

EVENTS = 40
SINCE = 10
"""The subscription and its routes begin here, at the earliest."""

wanted = st.sets(st.integers(1, EVENTS))
moves = st.lists(
    st.one_of(
        st.tuples(st.just("route"), st.integers(1, 8)),
        st.tuples(st.just("fill"), st.integers(0, 8)),
        st.tuples(st.just("again"), st.integers(0, EVENTS)),
        st.tuples(st.just("reopen"), st.just(0)),
    ),
    max_size=40,
)


class Step(NamedTuple):
    what: str
    number: int


def a_filling(number: int = 1, after: int = 0) -> Filling:
    """A filling never begins after the change that asked for it."""
    since = embedded(max(after, SINCE))
    return Filling(lane=ONE, number=number, after=embedded(after), since=since, reached=embedded(after))


def some(matching: set[int], after: int, upto: int) -> list[int]:
    return sorted(offset for offset in matching if after < offset <= upto)


def routed(writer: SqliteLanesWriter) -> int:
    return int(writer.routed().get(EMBEDDED, START))


def route(writer: SqliteLanesWriter, matching: set[int], length: int) -> None:
    """What routing does: the lane's own routes begin at SINCE."""
    begin = routed(writer)
    end = min(begin + length, EVENTS)
    if end > begin:
        found = some(matching, max(begin, SINCE), end)
        writer.write(Routed([packed(ONE, found)] if found else [], embedded(end)))


def fill(writer: SqliteLanesWriter, matching: set[int], length: int) -> bool:
    """A step of filling; whether it is done."""
    filling = writer.fillings()[ONE]
    begin, end = filling.reached[EMBEDDED], filling.upto.get(EMBEDDED, START)
    end = Offset(min(max(begin, end), begin + length))
    found = some(matching, begin, end)
    writer.write(Routed([packed(ONE, found)] if found else [], embedded(end), filled=frozenset([ONE])))
    return writer.fillings()[ONE].done


@pytest.fixture(params=[3, 1000])
def _close(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(fillings, "CLOSE", request.param)
    monkeypatch.setattr(fillings, "HELD_BYTES", 40)
    yield


@pytest.mark.usefixtures("_close")
def test_whatever_is_routed_filled_and_broken_off_the_lane_is_what_matches() -> None:
    @settings(max_examples=60)
    @given(wanted, st.integers(0, EVENTS), moves)
    def holds(matching: set[int], after: int, script: Sequence[tuple[str, int]]) -> None:
        with TemporaryDirectory() as folder:
            writer = SqliteLanesWriter(Path(folder))
            route(writer, matching, SINCE)
            writer.write(Routed([], {}, begun=[a_filling(after=after)]))
            number = 1
            for what, amount in script:
                match what:
                    case "route":
                        route(writer, matching, amount)
                    case "fill":
                        fill(writer, matching, amount)
                    case "again":
                        number, after = number + 1, amount
                        writer.write(Routed([], {}, begun=[a_filling(number, after)]))
                    case "reopen":
                        writer.close()
                        writer = SqliteLanesWriter(Path(folder))
            while not fill(writer, matching, EVENTS):
                route(writer, matching, EVENTS)
            route(writer, matching, EVENTS)
            reader = SqliteLanesReader(Path(folder))
            assert entries_of(reader, ONE) == some(matching, after, EVENTS)
            assert reader.fillings()[ONE].done
            reader.close()
            writer.close()

    holds()


def open_log(folder: Path) -> SqliteLogReader:
    """A log without entries."""

    async def made() -> None:
        await SqliteLogWriter(folder, config.load(environ={}).log).close()

    asyncio.run(made())
    return SqliteLogReader(folder)


def test_a_lane_that_begins_anew_goes_on_with_its_numbers_and_says_where_it_begins(tmp_path: Path) -> None:
    writer = SqliteLanesWriter(tmp_path)
    log, reader = open_log(tmp_path), SqliteLanesReader(tmp_path)
    lanes = EmbeddedLanes(reader, log)
    writer.write(Routed([packed(ONE, [11, 12, 13]), packed(TWO, [12])], embedded(20)))
    before = asyncio.run(lanes.read(ONE, Mark(0, Position(EMBEDDED, START)), PageLimit(2, 1 << 20)))
    assert ([entry.number for entry in before.entries], before.filling, before.begin) == ([1, 2], 0, None)

    writer.write(Routed([], {}, begun=[a_filling(after=5)]))
    cached = asyncio.run(lanes.read(ONE, Mark(2, Position(EMBEDDED, Offset(12))), PageLimit(2, 1 << 20)))
    assert (cached.entries, cached.filling) == ((), 1)
    begin = cached.begin
    assert begin == Mark(3, Position(EMBEDDED, Offset(5)))

    writer.write(Routed([packed(ONE, [7, 12])], embedded(20), filled=frozenset([ONE])))
    page = asyncio.run(lanes.read(ONE, begin, PageLimit(9, 1 << 20)))
    assert [(entry.number, entry.position.offset) for entry in page.entries] == [(4, 7), (5, 12)]
    assert page.filling == 1
    assert entries_of(reader, TWO) == [12]
    for one in (writer, log, reader):
        one.close()


def test_the_end_of_a_lane_that_is_being_filled_is_where_the_filling_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fillings, "CLOSE", 0)
    writer, reader = SqliteLanesWriter(tmp_path), SqliteLanesReader(tmp_path)
    lanes = EmbeddedLanes(reader, open_log(tmp_path))
    writer.write(Routed([], embedded(20)))
    writer.write(Routed([], {}, begun=[a_filling()]))
    writer.write(Routed([packed(ONE, [7])], embedded(9), filled=frozenset([ONE])))
    assert asyncio.run(lanes.end(ONE)) == Mark(1, Position(EMBEDDED, Offset(9)))
    writer.write(Routed([packed(ONE, [12])], embedded(20), filled=frozenset([ONE])))
    assert asyncio.run(lanes.end(ONE)) == Mark(2, Position(EMBEDDED, Offset(20)))
    reader.close()
    writer.close()
