"""What the doctor finds."""

from __future__ import annotations

import os
import sqlite3
import tempfile
import time
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.log.sqlite.test_files import as_somebody_who_may_only_read
from tidings.config import load
from tidings.doctor import machine, sqlite
from tidings.doctor.finding import DoctorFinding, DoctorVerdict
from tidings.log.sqlite.entries import LOG
from tidings.serve import folder
from tidings.sqlite.files import open_writer


def verdicts(findings: list[DoctorFinding]) -> dict[str, DoctorVerdict]:
    return {finding.subject: finding.verdict for finding in findings}


def a_file(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (x)")
        connection.executemany("INSERT INTO t VALUES (?)", [("x" * 500,)] * 200)
        connection.commit()
    return path


def test_everything_is_looked_at(tmp_path: Path) -> None:
    found = machine.look(load(environ={}, flags={"data": str(tmp_path), "server": {"port": 0}}), hub_answers=False)
    assert list(verdicts(found)) == ["python", "java", "memory", "disk", "port", "clock", "open files", "settings"]


@pytest.mark.parametrize(
    ("available", "verdict"),
    [
        (None, DoctorVerdict.DOUBTFUL),
        (8 << 30, DoctorVerdict.OK),
        (2 << 30, DoctorVerdict.DOUBTFUL),
        (1 << 29, DoctorVerdict.WRONG),
    ],
)
def test_memory(available: int | None, verdict: DoctorVerdict) -> None:
    found = machine.memory(available)
    assert found.verdict is verdict
    assert bool(found.remedy) == (verdict is not DoctorVerdict.OK)


def test_a_disk_without_its_reserve_is_wrong(tmp_path: Path) -> None:
    assert machine.disk(tmp_path / "not" / "there", 1 << 60).verdict is DoctorVerdict.WRONG


def test_a_clock_that_went_back_is_doubtful(tmp_path: Path) -> None:
    later = time.time() + 86400
    os.utime(a_file(tmp_path / "log.db"), (later, later))
    assert machine.clock(time.time(), tmp_path).verdict is DoctorVerdict.DOUBTFUL
    assert machine.clock(later + 1, tmp_path).verdict is DoctorVerdict.OK
    assert machine.clock(0, tmp_path).verdict is DoctorVerdict.WRONG


def test_a_missing_folder_is_fine(tmp_path: Path) -> None:
    assert verdicts(sqlite.look(tmp_path / "none", deep=False)) == {"data folder": DoctorVerdict.OK}


def test_a_file_that_is_no_database_is_wrong(tmp_path: Path) -> None:
    folder.prepare(tmp_path)
    a_file(tmp_path / "lanes.db")
    (tmp_path / "log.db").write_bytes(b"no database at all" * 100)
    found = verdicts(sqlite.look(tmp_path, deep=False))
    assert (found["lanes.db"], found["log.db"]) == (DoctorVerdict.OK, DoctorVerdict.WRONG)


def test_damage_inside_a_file_is_found_when_looking_deep(tmp_path: Path) -> None:
    path = a_file(tmp_path / "log.db")
    content = bytearray(path.read_bytes())
    content[3 * 4096 : 4 * 4096] = b"\xff" * 4096
    path.write_bytes(content)
    assert verdicts(sqlite.look(tmp_path, deep=True))["log.db"] is DoctorVerdict.WRONG


def test_data_of_a_newer_version_is_wrong(tmp_path: Path) -> None:
    (tmp_path / folder.VERSION_FILE).write_text('{"format": 99}')
    assert verdicts(sqlite.look(tmp_path, deep=False))["data folder"] is DoctorVerdict.WRONG


def test_a_read_only_folder_is_said_to_be_read_only_and_its_files_are_not_called_damaged() -> None:
    with tempfile.TemporaryDirectory() as name:
        data = Path(name)
        folder.prepare(data)
        with closing(open_writer(data / "log.db", LOG, 1 << 20)):
            pass
        data.chmod(0o755)
        for path in data.glob("*.*"):
            path.chmod(0o644)
        found = {finding["subject"]: finding for finding in as_somebody_who_may_only_read(data, looked_at)}
    assert found["data folder"]["verdict"] == "wrong" and "cannot be written" in found["data folder"]["found"]
    assert found["log.db"]["verdict"] == "ok"
    assert not [one for one in found.values() if "restore" in one["remedy"] or "is damaged" in one["found"]]


def looked_at(data: Path) -> list[dict[str, str]]:
    return [{name: str(value) for name, value in asdict(finding).items()} for finding in sqlite.look(data, deep=True)]
