"""What the SQLite reader offers beyond the contract: bounded cuts, columns, and reads that leave other topics alone."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import a_draft
from tests.contracts.log_contract import BILLS, EVERYTHING, ORDERS, opened
from tests.log.sqlite.opening import open_writer
from tidings.backup.sqlite import leap_ahead
from tidings.errors import LogUnavailable
from tidings.log.port import Draft, Limit, Retention
from tidings.log.position import COMMANDS, EMBEDDED, Position, embedded
from tidings.log.sqlite import reader as reader_module
from tidings.log.sqlite.entries import LEAP, size_of
from tidings.log.sqlite.reader import BatchEnd, SqliteLogReader


def a_log(folder: Path, *drafts: Draft) -> SqliteLogReader:
    async def fill() -> None:
        async with opened(open_writer(folder)) as writer:
            await writer.append(drafts)

    asyncio.run(fill())
    return SqliteLogReader(folder)


def test_a_cut_is_bounded_by_entries_and_by_bytes(tmp_path: Path) -> None:
    log = a_log(tmp_path, *(a_draft(data=b"x" * 100) for _ in range(10)))
    one = size_of(a_draft(data=b"x" * 100))
    assert log.cut({}, Limit(entries=4)) == BatchEnd(4, 4, 4 * one)
    assert log.cut(embedded(4), Limit(entries=100)) == BatchEnd(10, 6, 6 * one)
    assert log.cut({}, Limit(entries=100, bytes=3 * one)) == BatchEnd(3, 3, 3 * one)
    assert log.cut({}, Limit(entries=100, bytes=3 * one - 1)) == BatchEnd(2, 2, 2 * one)
    assert log.cut({}, Limit(entries=100, bytes=1)) == BatchEnd(1, 1, one)
    assert log.cut(embedded(10), Limit()) == BatchEnd(10, 0, 0)
    assert log.cut(embedded(99), Limit()) == BatchEnd(99, 0, 0)


def test_a_cut_passes_commands_without_counting_them(tmp_path: Path) -> None:
    log = a_log(tmp_path, a_draft(), a_draft(topic=COMMANDS), a_draft(), a_draft(topic=COMMANDS))
    assert log.cut({}, Limit(entries=10))[:2] == (4, 2)
    assert log.cut({}, Limit(entries=2))[:2] == (3, 2)
    assert log.cut(embedded(3), Limit())[:2] == (4, 0)


@pytest.mark.parametrize("routed", range(8))
def test_what_is_counted_is_what_a_scan_finds_also_over_leaps(tmp_path: Path, routed: int) -> None:
    topics = (ORDERS, COMMANDS, ORDERS, ORDERS)
    for _ in range(3):
        a_log(tmp_path, *(a_draft(topic=topic) for topic in topics)).close()
        leap_ahead(tmp_path / "log.db")
    log = SqliteLogReader(tmp_path)
    end = log.ends()
    assert end[EMBEDDED] > 2 << 32
    for after in (embedded(routed), embedded(routed + LEAP), end):
        assert log.count(after, end) == len(log.scan(after, end, EVERYTHING).entries)


def test_columns_are_the_same_entries_as_the_scan(tmp_path: Path) -> None:
    drafts = [a_draft(topic=n % 3, at=n, head=b"%d" % n, data=None if n % 2 else b"x" * n) for n in range(100)]
    log = a_log(tmp_path, *drafts)
    entries = log.scan(embedded(5), embedded(90), EVERYTHING).entries
    columns = log.scan_columns(embedded(5), embedded(90), EVERYTHING)
    assert list(zip(*columns, strict=True)) == [(e.position.offset, e.topic, e.head, e.data) for e in entries]
    assert len(log.scan_columns({}, embedded(90), Limit(entries=7)).offsets) == 7
    assert len(log.scan_columns({}, embedded(90), Limit(entries=99, bytes=1)).offsets) == 1
    assert log.scan_columns(embedded(90), embedded(90), EVERYTHING).offsets == ()


@settings(max_examples=25, deadline=None)
@given(sizes=st.lists(st.integers(0, 300), min_size=1, max_size=60), room=st.integers(1, 3000), entries=st.integers(1, 70))
def test_pages_of_any_limit_add_up_to_the_whole(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], room: int, entries: int
) -> None:
    log = a_log(tmp_path_factory.mktemp("log"), *(a_draft(head=b"%d" % n, data=b"x" * size) for n, size in enumerate(sizes)))
    limit, after, seen = Limit(entries=entries, bytes=room), embedded(0), []
    while (cut := log.cut(after, limit)).entries:
        page = log.scan(after, embedded(cut.end), limit).entries
        assert len(page) == cut.entries
        assert sum(map(size_of, page)) == cut.bytes
        assert len(page) == 1 or (len(page) <= entries and cut.bytes <= room)
        seen += [e.head for e in page]
        after = embedded(cut.end)
    assert seen == [b"%d" % n for n in range(len(sizes))]
    log.close()


def test_reading_a_topic_and_asking_for_the_end_use_an_index(tmp_path: Path) -> None:
    log = a_log(tmp_path, a_draft())
    with log._file.statements() as connection:
        for query, values in (
            (reader_module._READ, (1, 0, 9, 9)),
            (reader_module._SCAN, (0, 9, 9)),
            (reader_module._FETCH, ("[1]",)),
        ):
            plan = " | ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query}", values))
            assert "SCAN entries" not in plan
            assert "TEMP B-TREE FOR ORDER BY" not in plan
        (first, *_) = connection.execute(f"EXPLAIN QUERY PLAN {reader_module._READ}", (1, 0, 9, 9)).fetchall()
        assert "entries_of_topic (topic=? AND rowid>? AND rowid<?)" in first[3]


def test_threads_may_share_a_reader(tmp_path: Path) -> None:
    log = a_log(tmp_path, *(a_draft(head=b"%d" % n) for n in range(500)))
    with ThreadPoolExecutor(8) as pool:
        pages = list(pool.map(lambda _: log.read(ORDERS, {}, EVERYTHING).entries, range(40)))
    assert all(page == pages[0] and len(page) == 500 for page in pages)


def test_a_log_that_is_not_there_yet_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(LogUnavailable, match="not there yet"):
        SqliteLogReader(tmp_path)


def test_a_closed_reader_is_unavailable(tmp_path: Path) -> None:
    log = a_log(tmp_path, a_draft())
    log.close()
    log.close()
    with pytest.raises(LogUnavailable):
        log.ends()


def test_positions_of_another_partition_are_missing_from_a_fetch(tmp_path: Path) -> None:
    log = a_log(tmp_path, a_draft())
    assert not log.fetch([Position(5, 1)])


def test_the_end_is_right_after_everything_was_removed_and_the_writer_restarted(tmp_path: Path) -> None:
    log = a_log(tmp_path, *(a_draft(at=1) for _ in range(7)))

    async def remove() -> None:
        async with opened(open_writer(tmp_path)) as writer:
            assert await writer.trim([Retention(ORDERS, 2)], embedded(7)) == 7

    asyncio.run(remove())
    assert log.ends() == SqliteLogReader(tmp_path).ends() == embedded(7)
    assert log.removed(ORDERS) == embedded(7)
    assert log.read(ORDERS, {}, EVERYTHING).reached == embedded(7)


def test_what_is_left_is_told_of_all_topics_and_entries(tmp_path: Path) -> None:
    log = a_log(tmp_path, *(a_draft(topic=topic, at=1) for topic in (ORDERS, BILLS, ORDERS, BILLS)))
    assert log.removals() == {}

    async def remove() -> None:
        async with opened(open_writer(tmp_path)) as writer:
            assert await writer.trim([Retention(ORDERS, 2), Retention(BILLS, 1)], embedded(4)) == 2

    asyncio.run(remove())
    assert log.removals() == {ORDERS: embedded(3)}
    wanted = [Position(EMBEDDED, offset) for offset in range(1, 9)]
    assert log.remaining([*wanted, Position(5, 2)]) == {Position(EMBEDDED, 2), Position(EMBEDDED, 4)} == set(log.fetch(wanted))
