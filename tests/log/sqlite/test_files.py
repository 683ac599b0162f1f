"""Data files: their kind, version and settings; what is refused, and with which sentence."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.builders import a_draft
from tests.contracts.log_contract import EVERYTHING, ORDERS, kill_in_mid_append, opened
from tests.log.sqlite.opening import open_writer as open_log_writer
from tidings.errors import DataFolderUnusable, DataVersionUnsupported, LogUnavailable
from tidings.log.sqlite.entries import LOG
from tidings.log.sqlite.reader import SqliteLogReader
from tidings.sqlite.files import FileKind, open_reader, open_writer

KIND = FileKind("the box", application_id=77, version=1, schema=("CREATE TABLE box (thing)",))


def pragma(connection: sqlite3.Connection, name: str) -> Any:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def test_a_new_file_has_the_settings_that_can_only_be_chosen_once(tmp_path: Path) -> None:
    with closing(open_writer(tmp_path / "new" / "box.db", KIND, 1 << 20)) as box:
        assert pragma(box, "page_size") == 4096
        assert pragma(box, "auto_vacuum") == 2
        assert pragma(box, "journal_mode") == "wal"
        assert pragma(box, "synchronous") == 2
        assert pragma(box, "journal_size_limit") == 1 << 20
        assert (pragma(box, "application_id"), pragma(box, "user_version")) == (77, 1)


def test_a_file_that_is_opened_again_syncs_every_commit_too(tmp_path: Path) -> None:
    open_writer(tmp_path / "box.db", KIND, 1 << 20).close()
    with closing(open_writer(tmp_path / "box.db", KIND, 1 << 20)) as box:
        assert (pragma(box, "synchronous"), pragma(box, "journal_mode"), pragma(box, "auto_vacuum")) == (2, "wal", 2)


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    open_writer(tmp_path / "box.db", KIND, 1 << 20).close()
    with closing(open_reader(tmp_path / "box.db", KIND)) as box, pytest.raises(sqlite3.OperationalError):
        box.execute("INSERT INTO box VALUES (1)")


def test_an_older_file_is_lifted_step_by_step(tmp_path: Path) -> None:
    with closing(open_writer(tmp_path / "box.db", KIND, 1 << 20)) as box:
        box.execute("INSERT INTO box VALUES ('old')")
    newer = replace(KIND, version=3, upgrades={1: ("ALTER TABLE box ADD COLUMN color",), 2: ("UPDATE box SET color = 'red'",)})
    with pytest.raises(LogUnavailable, match="waits to be upgraded"):
        open_reader(tmp_path / "box.db", newer)
    with closing(open_writer(tmp_path / "box.db", newer, 1 << 20)) as box:
        assert box.execute("SELECT * FROM box").fetchall() == [("old", "red")]
        assert pragma(box, "user_version") == 3
    with closing(open_reader(tmp_path / "box.db", newer)) as box:
        assert box.execute("SELECT color FROM box").fetchone() == ("red",)


def test_a_file_too_old_to_be_upgraded_is_refused(tmp_path: Path) -> None:
    open_writer(tmp_path / "box.db", KIND, 1 << 20).close()
    with pytest.raises(DataVersionUnsupported, match="does not upgrade"):
        open_writer(tmp_path / "box.db", replace(KIND, version=3, upgrades={2: ()}), 1 << 20)


def test_an_upgrade_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    open_writer(tmp_path / "box.db", KIND, 1 << 20).close()
    broken = replace(KIND, version=2, upgrades={1: ("ALTER TABLE box ADD COLUMN color", "no SQL")})
    with pytest.raises(DataFolderUnusable):
        open_writer(tmp_path / "box.db", broken, 1 << 20)
    with closing(open_writer(tmp_path / "box.db", KIND, 1 << 20)) as box:
        assert [row[1] for row in box.execute("PRAGMA table_info(box)")] == ["thing"]


def test_a_newer_file_is_refused_and_untouched(tmp_path: Path) -> None:
    open_writer(tmp_path / "box.db", replace(KIND, version=9), 1 << 20).close()
    before = (tmp_path / "box.db").read_bytes()
    for opening in (lambda: open_writer(tmp_path / "box.db", KIND, 1 << 20), lambda: open_reader(tmp_path / "box.db", KIND)):
        with pytest.raises(DataVersionUnsupported, match="newer version of Tidings") as refusal:
            opening()
        assert refusal.value.found == 9
    assert (tmp_path / "box.db").read_bytes() == before


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    open_writer(tmp_path / "box.db", KIND, 1 << 20).close()
    with pytest.raises(DataFolderUnusable, match="not the log"):
        open_writer(tmp_path / "box.db", LOG, 1 << 20)


@pytest.mark.parametrize("content", [b"no database at all\n" * 300, b"SQLite format 3\0" + b"\x10\x00" + b"\xff" * 8000])
def test_a_damaged_file_is_refused_with_what_to_do(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "log.db").write_bytes(content)
    for opening in (lambda: open_log_writer(tmp_path), lambda: SqliteLogReader(tmp_path)):
        with pytest.raises(DataFolderUnusable, match=r"damaged or is no database.*never move log.db away alone"):
            opening()
    assert (tmp_path / "log.db").read_bytes() == content


def test_damage_that_is_met_while_reading_is_said_to_be_damage(tmp_path: Path) -> None:
    acknowledge(tmp_path, 2000)
    path = tmp_path / "log.db"
    with path.open("r+b") as file:
        file.seek(40_960)
        file.write(b"\xff" * 200_000)
    with pytest.raises(DataFolderUnusable, match="damaged"):
        SqliteLogReader(tmp_path).read(ORDERS, {}, EVERYTHING)


def test_an_empty_file_left_by_a_crash_becomes_a_log(tmp_path: Path) -> None:
    (tmp_path / "log.db").touch()
    with pytest.raises(LogUnavailable, match="not there yet"):
        SqliteLogReader(tmp_path)
    acknowledge(tmp_path, 1)
    assert len(SqliteLogReader(tmp_path).read(ORDERS, {}, EVERYTHING).entries) == 1


def test_a_data_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    with pytest.raises(DataFolderUnusable):
        open_log_writer(tmp_path / "data")


@pytest.fixture
def readable_folder() -> Iterator[Path]:
    """A folder that other users may enter (the test runner's own is private)."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_a_read_only_folder_takes_no_writer_and_stays_readable_after_an_orderly_stop(readable_folder: Path) -> None:
    acknowledge(readable_folder, 20)
    assert as_somebody_who_may_only_read(readable_folder, what_is_possible) == ("DataFolderUnusable", 20)


def test_a_read_only_folder_stays_readable_after_a_crash(readable_folder: Path) -> None:
    acknowledged = kill_in_mid_append("tests.log.sqlite.opening:open_writer", readable_folder, after=60)
    refusal, readable = as_somebody_who_may_only_read(readable_folder, what_is_possible)
    assert refusal == "DataFolderUnusable"
    assert readable >= len(acknowledged)


def acknowledge(folder: Path, count: int) -> None:
    async def steps() -> None:
        async with opened(open_log_writer(folder)) as writer:
            await writer.append([a_draft(head=b"%d" % n) for n in range(count)])

    asyncio.run(steps())


def what_is_possible(folder: Path) -> tuple[str, int]:
    try:
        open_log_writer(folder)
        refusal = "none"
    except DataFolderUnusable:
        refusal = "DataFolderUnusable"
    return refusal, len(SqliteLogReader(folder).read(ORDERS, {}, EVERYTHING).entries)


def as_somebody_who_may_only_read(folder: Path, call: Callable[[Path], Any]) -> Any:
    """The answer of `call` in a process without the right to write. Root ignores permissions, so root becomes nobody there."""
    fork = multiprocessing.get_context("fork")
    mine, theirs = fork.Pipe()

    def run() -> None:
        if os.geteuid() == 0:
            os.setresuid(65534, 65534, 65534)
        theirs.send(call(folder))

    folder.chmod(0o555)
    try:
        process = fork.Process(target=run)
        process.start()
        process.join()
        assert mine.poll(), "the process gave no answer"
        return mine.recv()
    finally:
        folder.chmod(0o755)
