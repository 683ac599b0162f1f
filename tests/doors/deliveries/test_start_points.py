from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import a_draft
from tidings import config
from tidings.clock import Instant
from tidings.doors.deliveries.start_points import marks_at, marks_at_any
from tidings.errors import Malformed
from tidings.log.cursor import cursor_of, marks_of, position_of
from tidings.log.port import Limit
from tidings.log.position import COMMANDS, EMBEDDED, Offset, Partition, Position, embedded
from tidings.log.sqlite.events import SqliteEventLog
from tidings.log.sqlite.reader import SqliteLogReader
from tidings.log.sqlite.writer import SqliteLogWriter

_ONE = Limit(entries=1)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> SqliteLogReader:
    """Entries at 10, 20, 20, 30 and 40 seconds after 1970, with commands in between."""
    folder = tmp_path_factory.mktemp("places")
    asyncio.run(_fill(folder))
    return SqliteLogReader(folder)


async def _fill(folder: Path) -> None:
    log = SqliteLogWriter(folder, config.load(environ={}).log)
    for second, topic in ((10, 1), (15, COMMANDS), (20, 1), (20, 2), (30, 1), (40, 1), (50, COMMANDS)):
        await log.append([a_draft(topic=topic, at=second * 1_000_000)])
    await log.close()


@pytest.mark.parametrize(("second", "offset"), [(0, 0), (10, 0), (11, 1), (20, 1), (21, 4), (40, 5), (41, 6), (99, 6)])
def test_a_time_is_the_place_before_its_first_event(reader: SqliteLogReader, second: int, offset: int) -> None:
    (found,) = asyncio.run(SqliteEventLog(reader).before(Instant(second * 1_000_000))).values()
    wanted = reader.scan(embedded(offset), reader.ends(), _ONE).entries
    assert reader.scan(embedded(found), reader.ends(), _ONE).entries == wanted


def test_places_have_names(reader: SqliteLogReader) -> None:
    events = SqliteEventLog(reader)
    assert asyncio.run(marks_at(events, "_first")) == {}
    assert asyncio.run(marks_at(events, "_last")) == embedded(7)
    assert asyncio.run(marks_at(events, "0-3")) == embedded(3)
    assert asyncio.run(marks_at_any(events, "1970-01-01T00:00:00Z")) == embedded(0)


@given(st.dictionaries(st.integers(0, 1 << 40).map(Partition), st.integers(0, (1 << 63) - 1).map(Offset), min_size=1))
def test_a_cursor_gives_back_its_marks(marks: dict[Partition, Offset]) -> None:
    assert marks_of(cursor_of(marks)) == marks


@given(st.text())
def test_any_other_text_is_refused_as_malformed(text: str) -> None:
    try:
        marks = marks_of(text)
    except Malformed:
        return
    assert all(0 <= number < 1 << 63 for pair in marks.items() for number in pair)


def test_a_position_is_a_cursor_of_one_partition() -> None:
    assert position_of("0-5") == Position(EMBEDDED, Offset(5))
    with pytest.raises(Malformed):
        position_of("0-5.1-6")
