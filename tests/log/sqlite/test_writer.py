"""What the SQLite writer promises beyond the contract: group commit, bounds, and its behavior when the disk fails."""

from __future__ import annotations

import asyncio
import os
import resource
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvloop

from tests.builders import a_draft
from tests.contracts.log_contract import EVERYTHING, ORDERS, opened
from tests.log.sqlite.opening import log_settings, open_writer
from tests.polling import until_async
from tidings.clock import ManualClock
from tidings.errors import DataFolderUnusable, LogUnavailable, Overloaded
from tidings.log.port import Limit, Retention
from tidings.log.position import embedded
from tidings.log.sqlite import writer as writer_module
from tidings.log.sqlite.reader import SqliteLogReader
from tidings.log.sqlite.writer import SqliteLogWriter
from tidings.log.wake import WakeListener


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer rests after a twentieth of a second, and tries again as soon."""
    monkeypatch.setattr(writer_module, "_IDLE_SECONDS", 0.05)
    monkeypatch.setattr(writer_module, "_TRY_AGAIN_SECONDS", 0.05)


def test_concurrent_appends_share_commits_on_either_event_loop(tmp_path: Path) -> None:
    async def steps() -> int:
        async with opened(open_writer(tmp_path)) as writer:
            await asyncio.gather(*(writer.append([a_draft()]) for _ in range(640)))
            return writer.commits

    assert asyncio.run(steps()) < 640 / 4
    assert uvloop.run(steps()) < 640 / 4


@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 127, 128, 129, 255, 256, 257, 321, 1000])
def test_a_batch_of_any_size_is_one_commit_in_order(tmp_path: Path, count: int) -> None:
    async def steps() -> None:
        async with opened(open_writer(tmp_path)) as writer:
            positions = await writer.append([a_draft(head=b"%d" % n) for n in range(count)])
            assert [p.offset for p in positions] == list(range(1, count + 1))
            assert writer.commits == 1

    asyncio.run(steps())
    entries = SqliteLogReader(tmp_path).scan({}, embedded(count), EVERYTHING).entries
    assert [e.head for e in entries] == [b"%d" % n for n in range(count)]


def test_a_group_holds_no_more_events_than_set(tmp_path: Path) -> None:
    async def steps() -> int:
        async with opened(open_writer(tmp_path, group_events=10)) as writer:
            held = asyncio.ensure_future(writer.fence(lambda marks: time.sleep(0.1)))
            await asyncio.sleep(0)
            await asyncio.gather(held, *(writer.append([a_draft()] * 3) for _ in range(30)))
            return writer.commits

    assert asyncio.run(steps()) == 10


def test_more_waiting_bytes_than_allowed_is_overload_until_they_are_written(tmp_path: Path) -> None:
    async def steps() -> None:
        async with opened(open_writer(tmp_path, queue_bytes=10_000)) as writer:
            gate = threading.Event()
            held = asyncio.ensure_future(writer.fence(lambda marks: gate.wait(20)))
            waiting = [asyncio.ensure_future(writer.append([a_draft(data=b"x" * 4000)])) for _ in range(2)]
            await asyncio.sleep(0)
            with pytest.raises(Overloaded):
                await writer.append([a_draft(data=b"x" * 4000)])
            gate.set()
            await asyncio.gather(held, *waiting)
            assert await writer.append([a_draft(data=b"x" * 4000)])
            assert await writer.append([a_draft(data=b"x" * 40_000)]), "alone, even a large one passes"

    asyncio.run(steps())


def test_a_draft_that_cannot_be_stored_fails_alone(tmp_path: Path) -> None:
    async def steps() -> None:
        async with opened(open_writer(tmp_path)) as writer:
            held = asyncio.ensure_future(writer.fence(lambda marks: time.sleep(0.05)))
            await asyncio.sleep(0)
            bad = [a_draft(head=b"bad"), a_draft(key_hash=1 << 70)]
            drafts = [[a_draft(head=b"good")], bad, [a_draft(head=b"good")]]
            answers = await asyncio.gather(*map(writer.append, drafts), return_exceptions=True)
            await held
            assert isinstance(answers[1], OverflowError)
            assert len(answers[0]) == len(answers[2]) == 1

    asyncio.run(steps())
    assert [e.head for e in SqliteLogReader(tmp_path).read(ORDERS, {}, EVERYTHING).entries] == [b"good", b"good"]


def test_a_second_writer_is_refused_with_the_process_that_has_it(tmp_path: Path) -> None:
    async def steps() -> None:
        async with opened(open_writer(tmp_path)) as writer:
            with pytest.raises(DataFolderUnusable, match=f"process {os.getpid()}"):
                open_writer(tmp_path)
            assert await writer.append([a_draft()])
        await open_writer(tmp_path).close()

    asyncio.run(steps())


def test_a_nearly_full_disk_refuses_appends_until_there_is_room(tmp_path: Path) -> None:
    clock, room, looks = ManualClock(), [500], []

    def free(folder: Path) -> int:
        looks.append(folder)
        return room[0]

    async def steps() -> None:
        writer = SqliteLogWriter(tmp_path, log_settings(disk_reserve=1000), clock=clock, free=free)
        async with opened(writer):
            for _ in range(3):
                with pytest.raises(LogUnavailable, match="almost full"):
                    await writer.append([a_draft()])
            assert len(looks) == 1, "the disk is looked at once a second, not per commit"
            assert await writer.fence(lambda marks: marks) == embedded(0)
            room[0] = 2000
            clock.advance(1)
            assert await writer.append([a_draft()])

    asyncio.run(steps())


def test_a_nearly_full_disk_is_told_before_anybody_appends(tmp_path: Path) -> None:
    clock, room = ManualClock(), [500]

    async def steps() -> None:
        writer = SqliteLogWriter(tmp_path, log_settings(disk_reserve=1000), clock=clock, free=lambda folder: room[0])
        async with opened(writer):
            assert writer.refusal() == f"the disk is almost full at {tmp_path}, found 500; expected 1000 bytes free"
            room[0] = 2000
            clock.advance(1)
            assert writer.refusal() is None

    asyncio.run(steps())


def test_a_failed_append_is_told_until_appends_work_again_though_nobody_appends(tmp_path: Path) -> None:
    async def steps() -> None:
        async with opened(open_writer(tmp_path)) as writer:
            await writer.append([a_draft(data=b"x" * 50_000)])
            with files_cannot_grow(writer, beyond=4096):
                with pytest.raises(LogUnavailable) as refused:
                    await writer.append([a_draft()])
                assert writer.refusal() == str(refused.value)
                for _ in range(3):
                    await writer.fence(lambda marks: writer._committer.try_again())
                assert writer.refusal(), "trying changes nothing as long as the disk fails"
            await until_async(lambda: writer.refusal() is None)
            assert (await writer.append([a_draft()]))[0].offset == 2

    asyncio.run(steps())


def test_a_draft_that_cannot_be_stored_is_no_reason_to_refuse_others(tmp_path: Path) -> None:
    async def steps() -> None:
        async with opened(open_writer(tmp_path)) as writer:
            with pytest.raises(OverflowError):
                await writer.append([a_draft(key_hash=1 << 70)])
            assert writer.refusal() is None

    asyncio.run(steps())


def test_a_full_disk_acknowledges_nothing_of_the_group_and_recovers(tmp_path: Path) -> None:
    """The operating system refuses to let files grow: what SQLite meets then is a write that fails halfway."""
    check_failing_disk(tmp_path, files_cannot_grow)


def test_a_full_database_acknowledges_nothing_of_the_group_and_recovers(tmp_path: Path) -> None:
    check_failing_disk(tmp_path, database_cannot_grow)


Failing = Callable[[SqliteLogWriter], "contextmanager[None]"]


def check_failing_disk(folder: Path, failing: Failing) -> None:
    async def steps() -> None:
        async with opened(open_writer(folder)) as writer:
            kept = [p for n in range(5) for p in await writer.append([a_draft(head=b"%d" % n)])]
            held = asyncio.ensure_future(writer.fence(lambda marks: time.sleep(0.05)))
            with failing(writer):
                await held
                large = [a_draft(head=b"lost", data=b"x" * 50_000)]
                answers = await asyncio.gather(*(writer.append(large * 5) for _ in range(8)), return_exceptions=True)
                assert all(isinstance(answer, LogUnavailable) for answer in answers)
                assert len({id(answer) for answer in answers}) == 8
                assert [e.position for e in SqliteLogReader(folder).read(ORDERS, {}, EVERYTHING).entries] == kept
                assert await writer.fence(dict) == embedded(5)
            again = await writer.append([a_draft(head=b"again")] * 8)
            assert [p.offset for p in again] == list(range(6, 14))

    asyncio.run(steps())
    heads = [e.head for e in SqliteLogReader(folder).read(ORDERS, {}, EVERYTHING).entries]
    assert heads == [b"0", b"1", b"2", b"3", b"4"] + [b"again"] * 8


@contextmanager
def files_cannot_grow(writer: SqliteLogWriter, beyond: int = 200_000) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (beyond, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def database_cannot_grow(writer: SqliteLogWriter) -> Iterator[None]:
    connection = writer._committer._connection
    connection.execute("PRAGMA max_page_count=20").fetchall()
    try:
        yield
    finally:
        connection.execute("PRAGMA max_page_count=1073741823").fetchall()


def test_a_writer_whose_connection_broke_opens_the_file_again(tmp_path: Path) -> None:
    async def steps() -> None:
        async with opened(open_writer(tmp_path)) as writer:
            await writer.append([a_draft()])
            await writer.fence(lambda marks: writer._committer._connection.close())
            with pytest.raises(LogUnavailable):
                await writer.append([a_draft()])
            assert (await writer.append([a_draft()]))[0].offset == 2

    asyncio.run(steps())


def test_nobody_waits_for_ever_on_a_writer_that_broke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def steps() -> None:
        async with opened(open_writer(tmp_path)) as writer:
            gate = threading.Event()
            held = asyncio.ensure_future(writer.fence(lambda marks: gate.wait(20)))
            waiting = [asyncio.ensure_future(writer.append([a_draft()])) for _ in range(3)]
            waiting.append(asyncio.ensure_future(writer.fence(dict)))
            await asyncio.sleep(0)
            monkeypatch.setattr(writer, "_next", None)
            gate.set()
            answers = await asyncio.gather(*waiting, return_exceptions=True)
            assert await held
            assert all(isinstance(answer, LogUnavailable) for answer in answers)
            with pytest.raises(LogUnavailable):
                await writer.append([a_draft()])
            assert "has stopped" in (writer.refusal() or "")
        await open_writer(tmp_path).close()

    asyncio.run(steps())


def test_the_write_ahead_file_stays_bounded_under_load_with_readers(tmp_path: Path) -> None:
    limit, largest = 1 << 20, 0
    stop = threading.Event()

    def read_all_the_time() -> None:
        log = SqliteLogReader(tmp_path)
        while not stop.is_set():
            log.scan({}, log.ends(), Limit(entries=500))
        log.close()

    async def steps() -> None:
        nonlocal largest
        async with opened(open_writer(tmp_path, wal_bytes=limit)) as writer:
            await writer.append([a_draft()])
            threads = [threading.Thread(target=read_all_the_time) for _ in range(2)]
            for thread in threads:
                thread.start()
            try:
                for _ in range(100):
                    await writer.append([a_draft(data=b"x" * 2000) for _ in range(50)])
                    largest = max(largest, wal_size(tmp_path))
            finally:
                stop.set()
                for thread in threads:
                    thread.join()

    asyncio.run(steps())
    assert largest <= 2 * limit, "ten times as much was written"


def test_a_reader_that_stays_in_a_transaction_stops_no_append_and_the_file_is_cut_after_it(tmp_path: Path) -> None:
    async def steps() -> None:
        async with opened(open_writer(tmp_path, wal_bytes=1 << 20)) as writer:
            await writer.append([a_draft()])
            hanging = sqlite3.connect(tmp_path / "log.db", isolation_level=None)
            hanging.execute("BEGIN")
            hanging.execute("SELECT count(*) FROM entries").fetchall()
            for _ in range(30):
                await writer.append([a_draft(data=b"x" * 2000) for _ in range(50)])
            assert wal_size(tmp_path) > 1 << 20
            hanging.close()
            await until_async(lambda: wal_size(tmp_path) == 0)

    asyncio.run(steps())


def test_an_idle_writer_cuts_the_write_ahead_file_although_a_reader_is_open(tmp_path: Path) -> None:
    async def steps() -> None:
        async with opened(open_writer(tmp_path)) as writer:
            await writer.append([a_draft(data=b"x" * 50_000)])
            log = SqliteLogReader(tmp_path)
            assert len(log.read(ORDERS, {}, Limit(entries=1)).entries) == 1
            await until_async(lambda: wal_size(tmp_path) == 0)
            assert len(log.read(ORDERS, {}, EVERYTHING).entries) == 1
            log.close()

    asyncio.run(steps())


def test_removed_entries_give_their_room_back(tmp_path: Path) -> None:
    async def steps() -> None:
        async with opened(open_writer(tmp_path)) as writer:
            for _ in range(4):
                await writer.append([a_draft(at=1, data=b"x" * 60_000) for _ in range(100)])
            await until_async(lambda: wal_size(tmp_path) == 0)
            full = (tmp_path / "log.db").stat().st_size
            assert await writer.trim([Retention(ORDERS, 2)], await writer.fence(dict)) == 400
            await until_async(lambda: wal_size(tmp_path) == 0)
            assert (tmp_path / "log.db").stat().st_size < full / 2

    asyncio.run(steps())


def test_many_topics_are_swept_in_one_call(tmp_path: Path) -> None:
    async def steps() -> int:
        async with opened(open_writer(tmp_path)) as writer:
            await writer.append([a_draft(topic=topic, at=1) for topic in range(1, 301)])
            return await writer.trim([Retention(topic, 2) for topic in range(1, 301)], await writer.fence(dict))

    assert asyncio.run(steps()) == 300


def test_retention_stops_at_the_first_young_entry_of_a_topic(tmp_path: Path) -> None:
    async def steps() -> int:
        async with opened(open_writer(tmp_path)) as writer:
            await writer.append([a_draft(at=at) for at in (1, 9, 2)])
            return await writer.trim([Retention(ORDERS, 5)], await writer.fence(dict))

    assert asyncio.run(steps()) == 1


def test_every_commit_rings_the_log_bell(tmp_path: Path) -> None:
    async def steps() -> None:
        async with opened(open_writer(tmp_path)) as writer:
            listener = WakeListener(tmp_path, "log")
            assert not listener.wait(0)
            await writer.append([a_draft()])
            assert await listener.wait_async(30)
            listener.close()

    asyncio.run(steps())


def wal_size(folder: Path) -> int:
    path = folder / "log.db-wal"
    return path.stat().st_size if path.exists() else 0


def test_a_log_whose_folder_went_away_is_not_made_anew_and_goes_on_when_it_is_back(tmp_path: Path) -> None:
    """Like a disk that fails and is unmounted: the path then leads into an empty folder."""
    folder, elsewhere = tmp_path / "data", tmp_path / "elsewhere"

    async def steps() -> None:
        async with opened(open_writer(folder)) as writer:
            await writer.append([a_draft()])
            folder.rename(elsewhere)
            folder.mkdir()
            for _ in range(3):
                with pytest.raises(LogUnavailable, match=r"log\.db is gone from the data folder"):
                    await writer.append([a_draft()])
            assert "bring it back" in (writer.refusal() or "")
            with pytest.raises(LogUnavailable):
                await writer.fence(dict)
            assert list(folder.iterdir()) == []
            folder.rmdir()
            elsewhere.rename(folder)
            await until_async(lambda: writer.refusal() is None)
            kept = await writer.append([a_draft(head=b"again")])
            assert SqliteLogReader(folder).fetch(kept)[kept[0]].head == b"again"

    asyncio.run(steps())


def test_nothing_is_acknowledged_into_a_file_that_was_replaced(tmp_path: Path) -> None:
    async def steps() -> None:
        async with opened(open_writer(tmp_path)) as writer:
            await writer.append([a_draft()])
            (tmp_path / "log.db").rename(tmp_path / "log.db.old")
            (tmp_path / "log.db").write_bytes((tmp_path / "log.db.old").read_bytes())
            with pytest.raises(LogUnavailable, match=r"another file took the place of log\.db"):
                await writer.append([a_draft()])
            assert "start it again" in (writer.refusal() or "")

    asyncio.run(steps())


def test_nothing_is_acknowledged_into_a_file_in_which_anybody_met_damage(tmp_path: Path) -> None:
    async def steps() -> None:
        async with opened(open_writer(tmp_path)) as writer:
            await writer.append([a_draft(data=b"x" * 2000) for _ in range(200)])
            await writer.fence(lambda marks: writer._committer.rest())
            with (tmp_path / "log.db").open("r+b") as file:
                file.seek(20 * 4096)
                file.write(b"\xff" * 4096)
            with pytest.raises(DataFolderUnusable, match="is damaged"):
                SqliteLogReader(tmp_path).read(ORDERS, {}, EVERYTHING)
            with pytest.raises(LogUnavailable, match=r"log\.db is damaged .*tidings renew-log"):
                await writer.append([a_draft()])
            assert "is damaged" in (writer.refusal() or "")

    asyncio.run(steps())
