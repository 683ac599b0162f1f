"""A new log in the place of one that was lost or damaged."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.builders import a_draft
from tests.contracts.log_contract import opened
from tests.log.sqlite.opening import open_writer
from tests.serve.test_files_together import EVENTS, a_hub, remove
from tidings.backup.renewal import renew
from tidings.clock import ManualClock
from tidings.errors import Conflict, DataFolderUnusable
from tidings.log.port import Limit
from tidings.log.position import embedded
from tidings.log.sqlite.entries import LEAP
from tidings.log.sqlite.reader import SqliteLogReader
from tidings.serve import folder as data_folder
from tidings.serve.sqlite_files import check

NOW = ManualClock().now()
EVERYTHING = Limit(entries=100_000, bytes=1 << 30)


def append(folder: Path, count: int, size: int = 0) -> list[int]:
    async def steps() -> list[int]:
        async with opened(open_writer(folder)) as log:
            made = await log.append([a_draft(topic=1, head=b"%d" % n, data=b"x" * size) for n in range(count)])
            return [position.offset for position in made]

    return asyncio.run(steps())


def offsets(folder: Path) -> list[int]:
    return [entry.position.offset for entry in SqliteLogReader(folder).scan({}, embedded(1 << 62), EVERYTHING).entries]


def test_a_lost_log_begins_anew_beyond_every_position_that_was_given(tmp_path: Path) -> None:
    folder = a_hub(tmp_path / "data")
    remove(folder, "log.db")
    made = renew(folder, NOW)
    assert (made.kept, made.gaps, made.begins) == (0, [], EVENTS + LEAP)
    check(folder)
    assert append(folder, 1) == [EVENTS + LEAP + 1]
    assert SqliteLogReader(folder).removed(1) == embedded(EVENTS), "readers of lost events are told so"  # type: ignore[arg-type]
    assert not (folder / "duplicates.db").exists(), "what it knows of lost events would swallow them"


def test_what_can_be_read_of_a_damaged_log_is_kept(tmp_path: Path) -> None:
    folder = a_hub(tmp_path / "data")
    append(folder, 2000, size=700)
    before = offsets(folder)
    with (folder / "log.db").open("r+b") as file:
        for page in (60, 150):
            file.seek(page * 4096)
            file.write(b"\xff" * 4096)
    with pytest.raises(DataFolderUnusable, match="damaged"):
        offsets(folder)
    with pytest.raises(DataFolderUnusable, match=r"log\.db is damaged"):
        check(folder)
    made = renew(folder, NOW)
    kept = offsets(folder)
    missing = [offset for first, last in made.gaps for offset in range(first, last + 1)]
    assert sorted(kept + missing) == before and made.kept == len(kept)
    assert 0 < len(missing) < 100
    check(folder)
    assert append(folder, 1)[0] > before[-1] + LEAP
    assert Path(made.moved_to).exists()


def test_a_log_in_order_is_left_alone(tmp_path: Path) -> None:
    folder = a_hub(tmp_path / "data")
    with pytest.raises(Conflict, match="in order"):
        renew(folder, NOW)
    with data_folder.held(folder), pytest.raises(DataFolderUnusable, match="another hub"):
        renew(folder, NOW)
