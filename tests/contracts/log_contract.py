"""What every log adapter must do, written once. An adapter's test class inherits `LogContract` and says how to open it."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, TypeVar

import pytest

from tests.builders import a_draft
from tidings.errors import LogUnavailable
from tidings.log.port import Draft, Entry, Limit, LogReader, LogWriter, Retention
from tidings.log.position import COMMANDS, START, Marks, Position, TopicNumber

T = TypeVar("T")

ORDERS, BILLS = TopicNumber(1), TopicNumber(2)
EVERYTHING = Limit(entries=1_000_000, bytes=1 << 40)


class LogContract(ABC):
    """`opener` names a function `open_writer(folder)` as `module:name`, for use in other processes."""

    opener: ClassVar[str]

    @abstractmethod
    def open_writer(self, folder: Path) -> LogWriter:
        """The adapter that is tested, with its files in this folder."""

    @abstractmethod
    def open_reader(self, folder: Path) -> LogReader:
        """Its reading side."""

    def test_every_draft_gets_its_own_position_in_order(self, tmp_path: Path) -> None:
        positions = self.appended(tmp_path, [a_draft(head=b"1"), a_draft(head=b"2"), a_draft(head=b"3")])
        assert len(set(positions)) == 3
        assert_rising(positions)

    def test_an_entry_is_what_was_appended_byte_for_byte(self, tmp_path: Path) -> None:
        drafts = [
            a_draft(data=None),
            a_draft(data=b""),
            a_draft(data=bytes(range(256)), key_hash=(1 << 63) - 1),
            a_draft(topic=BILLS, data=b"x" * 1_000_000),
        ]
        positions = self.appended(tmp_path, drafts)
        with self.reader(tmp_path) as log:
            found = log.fetch(positions)
        assert [as_draft(found[position]) for position in positions] == drafts

    def test_appending_nothing_is_no_entry(self, tmp_path: Path) -> None:
        assert list(self.appended(tmp_path, [])) == []
        with self.reader(tmp_path) as log:
            assert not log.scan({}, log.ends(), EVERYTHING).entries

    def test_a_topic_is_read_alone_and_in_order_page_by_page(self, tmp_path: Path) -> None:
        drafts = [a_draft(topic=ORDERS if n % 3 else BILLS, head=str(n).encode()) for n in range(100)]
        self.appended(tmp_path, drafts)
        with self.reader(tmp_path) as log:
            for topic in (ORDERS, BILLS):
                pages = list(all_pages(lambda after, t=topic: log.read(t, after, Limit(entries=7))))
                assert [e.head for page in pages for e in page] == [d.head for d in drafts if d.topic == topic]
                assert max(map(len, pages)) == 7

    def test_a_page_keeps_to_its_bytes_but_always_has_one_entry(self, tmp_path: Path) -> None:
        self.appended(tmp_path, [a_draft(data=b"x" * 1000) for _ in range(10)])
        with self.reader(tmp_path) as log:
            assert 2 <= len(log.read(ORDERS, {}, Limit(entries=100, bytes=5000)).entries) <= 5
            assert len(log.read(ORDERS, {}, Limit(entries=100, bytes=10)).entries) == 1
            assert len(log.scan({}, log.ends(), Limit(entries=100, bytes=10)).entries) == 1

    def test_a_scan_passes_all_topics_but_no_commands_and_stops_where_told(self, tmp_path: Path) -> None:
        async def steps() -> Marks:
            async with opened(self.open_writer(tmp_path)) as writer:
                await writer.append(
                    [a_draft(topic=ORDERS, head=b"1"), a_draft(topic=COMMANDS), a_draft(topic=BILLS, head=b"2")]
                )
                upto = await writer.fence(dict)
                await writer.append([a_draft(head=b"later")])
                return upto

        upto = asyncio.run(steps())
        with self.reader(tmp_path) as log:
            page = log.scan({}, upto, EVERYTHING)
            assert sorted(e.head for e in page.entries) == [b"1", b"2"]
            assert page.reached == upto
            pages = list(all_pages(lambda after: log.scan(after, upto, Limit(entries=1))))
            assert sorted(e.head for p in pages for e in p) == [b"1", b"2"]
            assert [e.topic for e in log.read(COMMANDS, {}, EVERYTHING).entries] == [COMMANDS]
            assert (log.count({}, upto), log.count({}, log.ends()), log.count(upto, upto)) == (2, 3, 0)

    def test_a_scan_never_claims_to_have_passed_what_is_still_to_come(self, tmp_path: Path) -> None:
        async def steps() -> None:
            async with opened(self.open_writer(tmp_path)) as writer:
                (position,) = await writer.append([a_draft(head=b"1")])
                with self.reader(tmp_path) as log:
                    far = {position.partition: position.offset + 100}
                    reached = log.scan({}, far, EVERYTHING).reached
                    await writer.append([a_draft(head=b"2")])
                    assert [e.head for e in log.scan(reached, log.ends(), EVERYTHING).entries] == [b"2"]

        asyncio.run(steps())

    def test_a_position_that_is_not_there_is_missing_from_a_fetch(self, tmp_path: Path) -> None:
        (position,) = self.appended(tmp_path, [a_draft()])
        beyond = Position(position.partition, position.offset + 1000)
        with self.reader(tmp_path) as log:
            assert set(log.fetch([position, beyond])) == {position}
            assert not log.fetch([])

    def test_what_was_acknowledged_is_visible_to_a_reader_that_was_open_before(self, tmp_path: Path) -> None:
        async def steps() -> None:
            async with opened(self.open_writer(tmp_path)) as writer:
                with self.reader(tmp_path) as log:
                    for n in range(20):
                        (position,) = await writer.append([a_draft(head=str(n).encode())])
                        assert log.ends()[position.partition] >= position.offset
                        assert log.fetch([position])[position].head == str(n).encode()

        asyncio.run(steps())

    def test_concurrent_appends_keep_their_own_order_and_never_share_a_position(self, tmp_path: Path) -> None:
        async def publisher(writer: LogWriter, name: int) -> list[Position]:
            return [
                p for n in range(20) for p in await writer.append([a_draft(head=b"%d:%d:%d" % (name, n, k)) for k in range(3)])
            ]

        async def steps() -> list[list[Position]]:
            async with opened(self.open_writer(tmp_path)) as writer:
                return await asyncio.gather(*(publisher(writer, name) for name in range(16)))

        lists = asyncio.run(steps())
        assert len({p for positions in lists for p in positions}) == 16 * 20 * 3
        with self.reader(tmp_path) as log:
            for name, positions in enumerate(lists):
                assert_rising(positions)
                found = log.fetch(positions)
                wanted = [b"%d:%d:%d" % (name, n, k) for n in range(20) for k in range(3)]
                assert [found[p].head for p in positions] == wanted

    def test_a_fence_stands_between_what_was_acknowledged_and_what_begins_later(self, tmp_path: Path) -> None:
        async def steps() -> None:
            async with opened(self.open_writer(tmp_path)) as writer:
                before, noise = [], [asyncio.ensure_future(writer.append([a_draft()])) for _ in range(50)]
                for _ in range(20):
                    before += await writer.append([a_draft()])
                    marks = await writer.fence(lambda marks: dict(marks))
                    after = await writer.append([a_draft()])
                    assert all(p.offset <= marks[p.partition] for p in before)
                    assert all(p.offset > marks.get(p.partition, START) for p in after)
                    before += after
                await asyncio.gather(*noise)

        asyncio.run(steps())

    def test_the_fence_gives_what_settle_gives_or_raises_what_it_raises(self, tmp_path: Path) -> None:
        async def steps() -> None:
            async with opened(self.open_writer(tmp_path)) as writer:
                assert await writer.fence(lambda marks: "settled") == "settled"
                with pytest.raises(ZeroDivisionError):
                    await writer.fence(lambda marks: 1 / 0)
                assert len(await writer.append([a_draft()])) == 1

        asyncio.run(steps())

    def test_retention_takes_the_old_entries_of_its_topic_and_leaves_a_mark(self, tmp_path: Path) -> None:
        drafts = [a_draft(topic=t, at=at, head=b"%d" % at) for at in range(1, 1301) for t in (ORDERS, BILLS)]
        positions = self.appended(tmp_path, drafts)
        assert self.trimmed(tmp_path, [Retention(ORDERS, 1201)]) == 1200
        with self.reader(tmp_path) as log:
            assert [e.at for e in log.read(ORDERS, {}, EVERYTHING).entries] == list(range(1201, 1301))
            assert len(log.read(BILLS, {}, EVERYTHING).entries) == 1300
            gone = [p for p, d in zip(positions, drafts, strict=True) if d.topic == ORDERS and d.at <= 1200]
            assert not log.fetch(gone)
            assert all(p.offset <= log.removed(ORDERS).get(p.partition, START) for p in gone)
            kept = [p for p, d in zip(positions, drafts, strict=True) if d.topic == ORDERS and d.at > 1200]
            assert all(p.offset > log.removed(ORDERS).get(p.partition, START) for p in kept)
            assert not any(log.removed(BILLS).values())

    def test_retention_never_takes_what_is_not_routed(self, tmp_path: Path) -> None:
        positions = self.appended(tmp_path, [a_draft(at=n) for n in range(10)])
        middle = positions[4]
        assert self.trimmed(tmp_path, [Retention(ORDERS, 1000)], {}) == 0
        assert self.trimmed(tmp_path, [Retention(ORDERS, 1000)], {middle.partition: middle.offset}) == 5
        with self.reader(tmp_path) as log:
            assert set(log.fetch(positions)) == set(positions[5:])

    def test_retention_lets_appends_pass(self, tmp_path: Path) -> None:
        async def steps() -> None:
            async with opened(self.open_writer(tmp_path)) as writer:
                await writer.append([a_draft(at=1) for _ in range(3000)])
                routed = await writer.fence(dict)
                trimming = asyncio.ensure_future(writer.trim([Retention(ORDERS, 2)], routed))
                await asyncio.gather(*(writer.append([a_draft(at=5)]) for _ in range(50)))
                assert await trimming == 3000

        asyncio.run(steps())
        with self.reader(tmp_path) as log:
            assert len(log.read(ORDERS, {}, EVERYTHING).entries) == 50

    def test_positions_are_never_given_again_even_after_everything_was_removed(self, tmp_path: Path) -> None:
        old = self.appended(tmp_path, [a_draft(at=1) for _ in range(5)])
        assert self.trimmed(tmp_path, [Retention(ORDERS, 100)]) == 5
        with self.reader(tmp_path) as log:
            ends = log.ends()
            assert all(p.offset <= ends[p.partition] for p in old)
        new = self.appended(tmp_path, [a_draft()])
        assert_rising([*old, *new])

    def test_closing_commits_what_waits_and_refuses_what_comes(self, tmp_path: Path) -> None:
        async def steps() -> Sequence[Position]:
            writer = self.open_writer(tmp_path)
            waiting = asyncio.gather(*(writer.append([a_draft()]) for _ in range(20)))
            await asyncio.sleep(0)
            assert writer.refusal() is None
            await writer.close()
            await writer.close()
            assert writer.refusal()
            with pytest.raises(LogUnavailable):
                await writer.append([a_draft()])
            with pytest.raises(LogUnavailable):
                await writer.fence(lambda marks: None)
            return [p for positions in await waiting for p in positions]

        positions = asyncio.run(steps())
        with self.reader(tmp_path) as log:
            assert set(log.fetch(positions)) == set(positions)

    def test_a_cancelled_caller_disturbs_nobody(self, tmp_path: Path) -> None:
        async def steps() -> None:
            async with opened(self.open_writer(tmp_path)) as writer:
                tasks = [asyncio.ensure_future(writer.append([a_draft()])) for _ in range(20)]
                await asyncio.sleep(0)
                for task in tasks[::2]:
                    task.cancel()
                answers = await asyncio.gather(*tasks, return_exceptions=True)
                assert all(isinstance(answer, asyncio.CancelledError) for answer in answers[::2])
                positions = [p for answer in answers[1::2] for p in answer]
                assert len(set(positions)) == 10
                with self.reader(tmp_path) as log:
                    assert set(log.fetch(positions)) == set(positions)

        asyncio.run(steps())

    @pytest.mark.parametrize("round_", range(3))
    def test_what_was_acknowledged_outlives_a_killed_process_and_nothing_is_torn(self, tmp_path: Path, round_: int) -> None:
        acknowledged = kill_in_mid_append(self.opener, tmp_path, after=random.randint(50, 400))
        assert acknowledged
        with self.reader(tmp_path) as log:
            entries = log.scan({}, log.ends(), EVERYTHING).entries
            found = {(e.position.partition, e.position.offset): e.head for e in entries}
        for partition, offset, head in acknowledged:
            assert found[partition, offset] == head
        parts = defaultdict(list)
        for entry in entries:
            publisher, number, part = entry.head.split(b":")
            parts[publisher, number].append(part)
            assert entry.data == entry.head * 20
        assert set(map(tuple, parts.values())) == {(b"0", b"1", b"2")}
        (new,) = self.appended(tmp_path, [a_draft()])
        assert all(new.offset > offset for partition, offset in found if partition == new.partition)

    @contextmanager
    def reader(self, folder: Path) -> Iterator[LogReader]:
        log = self.open_reader(folder)
        try:
            yield log
        finally:
            log.close()

    def appended(self, folder: Path, drafts: Sequence[Draft]) -> Sequence[Position]:
        return self.with_writer(folder, lambda writer: writer.append(drafts))

    def trimmed(self, folder: Path, retentions: Sequence[Retention], routed: Marks | None = None) -> int:
        """Everything is routed unless told."""

        async def trim(writer: LogWriter) -> int:
            return await writer.trim(retentions, await writer.fence(dict) if routed is None else routed)

        return self.with_writer(folder, trim)

    def with_writer(self, folder: Path, use: Callable[[LogWriter], Awaitable[T]]) -> T:
        async def steps() -> T:
            async with opened(self.open_writer(folder)) as writer:
                return await use(writer)

        return asyncio.run(steps())


class opened:
    """A writer that is closed at the end."""

    def __init__(self, writer: LogWriter) -> None:
        self._writer = writer

    async def __aenter__(self) -> LogWriter:
        return self._writer

    async def __aexit__(self, *_: object) -> None:
        await self._writer.close()


def as_draft(entry: Entry) -> Draft:
    return Draft(topic=entry.topic, at=entry.at, key_hash=entry.key_hash, head=entry.head, data=entry.data)


def assert_rising(positions: Sequence[Position]) -> None:
    """Offsets of one partition rise; nothing is said about two partitions."""
    last: dict[int, int] = {}
    for partition, offset in positions:
        assert offset > last.get(partition, 0)
        last[partition] = offset


def all_pages(read: Callable[[Marks], object]) -> Iterator[Sequence[Entry]]:
    """Pages until one is empty."""
    after: Marks = {}
    while True:
        page = read(after)
        if not page.entries:
            return
        yield page.entries
        after = page.reached


def kill_in_mid_append(opener: str, folder: Path, after: int) -> list[tuple[int, int, bytes]]:
    """Let a process append, kill it after some acknowledgements, and return all that it was given."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.contracts.appender", opener, str(folder)],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(after)]
    os.kill(process.pid, signal.SIGKILL)
    lines += process.stdout.readlines()
    process.wait()
    whole = [line.split() for line in lines if line.endswith(b"\n")]
    return [(int(partition), int(offset), head) for partition, offset, head in whole]
