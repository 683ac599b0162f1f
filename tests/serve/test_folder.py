"""The data folder: versions, foreign folders, locks."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tidings.cli.hub_command import exit_code_of
from tidings.errors import DataFolderUnusable, DataVersionUnsupported, LogUnavailable
from tidings.serve import folder
from tidings.serve.exit_codes import FAILED
from tidings.sqlite.files import translation


def test_a_new_folder_says_its_format(tmp_path: Path) -> None:
    folder.prepare(tmp_path / "data")
    folder.prepare(tmp_path / "data")
    assert folder.version_of(tmp_path / "data") == folder.FORMAT


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / folder.VERSION_FILE).write_text(json.dumps({"format": folder.FORMAT + 1}))
    with pytest.raises(DataVersionUnsupported, match="newer"):
        folder.prepare(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "one"}', '{"format": 0}'])
def test_a_damaged_version_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / folder.VERSION_FILE).write_text(text)
    with pytest.raises(DataFolderUnusable):
        folder.prepare(tmp_path)


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(DataFolderUnusable, match=r"thesis\.tex"):
        folder.prepare(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_in_the_place_of_the_folder_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    with pytest.raises(DataFolderUnusable):
        folder.prepare(tmp_path / "data")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(DataFolderUnusable, match="not permitted"):
        folder.prepare(tmp_path / "data")


def test_a_second_hub_is_refused_and_told_who_is_there(tmp_path: Path) -> None:
    folder.prepare(tmp_path)
    with folder.held(tmp_path):
        assert folder.holder(tmp_path) == os.getpid()
        with pytest.raises(DataFolderUnusable, match=f"process {os.getpid()}"), folder.held(tmp_path):
            pass
    assert folder.holder(tmp_path) is None


def test_parts_without_a_supervisor_share_the_folder_but_not_with_a_hub(tmp_path: Path) -> None:
    folder.prepare(tmp_path)
    shared, refused = folder.held(tmp_path, shared=True), pytest.raises(DataFolderUnusable)
    with shared, folder.held(tmp_path, shared=True), refused, folder.held(tmp_path):
        pass


def test_a_part_runs_once(tmp_path: Path) -> None:
    folder.prepare(tmp_path)
    again = pytest.raises(DataFolderUnusable, match="another api part")
    with folder.part_held(tmp_path, "api"), again, folder.part_held(tmp_path, "api"):
        pass


def test_a_part_waits_for_its_predecessor_to_end(tmp_path: Path) -> None:
    folder.prepare(tmp_path)
    script = f"""
import sys
from pathlib import Path
from tidings.serve import folder
with folder.part_held(Path({str(tmp_path)!r}), "api"):
    print("held", flush=True)
    sys.stdin.readline()
"""
    former = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert former.stdout is not None
    assert former.stdout.readline() == "held\n"
    with pytest.raises(DataFolderUnusable):
        folder.wait_for_parts_to_end(tmp_path, patience=0.05)
    former.kill()
    folder.wait_for_parts_to_end(tmp_path, patience=30)
    former.wait()


def test_a_full_disk_at_the_start_is_no_reason_to_stay_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """systemd does not start again what ended with exit code 2."""

    def full(path: Path, content: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(folder, "write_durably", full)
    with pytest.raises(LogUnavailable, match="the disk is full") as raised:
        folder.prepare(tmp_path / "data")
    assert exit_code_of(raised.value) == FAILED


@pytest.mark.parametrize("code", [sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR | 19 << 8])
def test_data_files_that_cannot_be_opened_on_a_full_disk_are_no_reason_to_stay_down(tmp_path: Path, code: int) -> None:
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode = code
    assert isinstance(translation(error, tmp_path / "log.db", opening=True), LogUnavailable)
