"""Slices of one topic, as feeds read them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.builders import a_draft
from tidings import config
from tidings.clock import Instant
from tidings.log.port import Draft, Limit, Retention, Share
from tidings.log.position import Offset, TopicNumber, embedded
from tidings.log.sqlite.topic_slices import SqliteSlices
from tidings.log.sqlite.writer import SqliteLogWriter

TOPIC = TopicNumber(1)
ALL = Offset(1 << 40)


def written(folder: Path, drafts: Sequence[Draft], remove: int = 0) -> SqliteSlices:
    """Slices of a log with these entries, those up to an offset removed."""

    async def write() -> None:
        log = SqliteLogWriter(folder, config.load(environ={}).log)
        appending = asyncio.ensure_future(log.append(drafts))
        await asyncio.sleep(0)
        assert log.busy()
        await appending
        assert not log.busy()
        if remove:
            await log.trim([Retention(TOPIC, Instant(1 << 62))], embedded(remove))
        await log.close()

    asyncio.run(write())
    return SqliteSlices(folder)


def test_a_slice_has_a_topics_entries_in_order(tmp_path: Path) -> None:
    slices = written(tmp_path, [a_draft(topic=1 + n % 2) for n in range(10)])
    assert slices.extent(TOPIC) == (0, 9) and slices.end() == 10
    found = slices.slice(TOPIC, Offset(2), Offset(9), Share(), Limit())
    assert [row[0] for row in found.rows] == [3, 5, 7, 9] and found.reached == 9
    assert slices.topics(Offset(0), Offset(1)) == {1} and slices.topics(Offset(0), ALL) == {1, 2}
    assert slices.extent(TopicNumber(3)) == (0, 0)


def test_a_slice_ends_at_its_limits(tmp_path: Path) -> None:
    slices = written(tmp_path, [a_draft(data=b"x" * 1000) for _ in range(10)])
    by_count = slices.slice(TOPIC, Offset(0), ALL, Share(), Limit(entries=3))
    assert (len(by_count.rows), by_count.reached) == (3, 3)
    by_size = slices.slice(TOPIC, Offset(0), ALL, Share(), Limit(bytes=2500))
    assert (len(by_size.rows), by_size.reached) == (2, 2)
    one = slices.slice(TOPIC, Offset(4), ALL, Share(), Limit(bytes=1))
    assert (len(one.rows), one.reached) == (1, 5)


@pytest.mark.parametrize("residues", [(3,), (0, 3)])
def test_a_share_is_read_to_the_end_however_rare_it_is(tmp_path: Path, residues: tuple[int, ...]) -> None:
    slices = written(tmp_path, [a_draft(key_hash=1024 * n + (3 if n in (10, 4500) else 1)) for n in range(5000)])
    share, after, seen, steps = Share(1024, residues), Offset(0), [], 0
    while after < 5000:
        found = slices.slice(TOPIC, after, Offset(5000), share, Limit(entries=100))
        assert found.reached > after
        seen += [row[0] for row in found.rows]
        after, steps = found.reached, steps + 1
    assert seen == [11, 4501] and steps > 2


def test_a_slice_tells_when_entries_after_its_start_were_removed(tmp_path: Path) -> None:
    slices = written(tmp_path, [a_draft() for _ in range(10)], remove=4)
    assert slices.extent(TOPIC) == (4, 10)
    assert slices.slice(TOPIC, Offset(3), ALL, Share(), Limit()).overtaken
    assert not slices.slice(TOPIC, Offset(4), ALL, Share(), Limit()).overtaken


def test_the_newest_entries_are_told_by_offset_and_key_hash(tmp_path: Path) -> None:
    slices = written(tmp_path, [a_draft(topic=TOPIC if n % 2 else TOPIC + 1, key_hash=100 + n) for n in range(1, 11)])
    assert slices.newest(TOPIC, Offset(0), 100) == [(n, 100 + n) for n in (1, 3, 5, 7, 9)]
    assert slices.newest(TOPIC, Offset(3), 2) == [(7, 107), (9, 109)]
    assert slices.newest(TOPIC, Offset(9), 2) == []
