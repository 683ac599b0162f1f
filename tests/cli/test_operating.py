"""backup, restore and doctor as commands."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from tests.backup.folders import a_folder
from tidings.cli.root import app


def run(*words: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [*words])
    return result.exit_code, result.stdout, result.stderr


def test_a_backup_is_made_and_restored(tmp_path: Path) -> None:
    data, file, restored = a_folder(tmp_path / "data"), tmp_path / "hub.tar.gz", tmp_path / "restored"
    code, out, _ = run("backup", str(file), "--data", str(data), "--json")
    assert code == 0
    assert "log.db" in json.loads(out)["files"]
    code, out, _ = run("restore", str(file), "--data", str(restored))
    assert code == 0
    assert f"tidings serve --data {restored}" in out
    assert (restored / "log.db").exists()


def test_a_restore_over_data_is_refused(tmp_path: Path) -> None:
    data, file = a_folder(tmp_path / "data"), tmp_path / "hub.tar"
    assert run("backup", str(file), "--data", str(data))[0] == 0
    code, out, err = run("restore", str(file), "--data", str(data))
    assert (code, out, err.count("\n")) == (2, "", 1)


def test_no_data_and_no_file_are_sentences(tmp_path: Path) -> None:
    assert run("backup", str(tmp_path / "x.tar"), "--data", str(tmp_path / "none"))[0] == 1
    assert run("restore", str(tmp_path / "none.tar"), "--data", str(tmp_path / "new"))[0] == 1
    assert not (tmp_path / "new").exists()


def test_the_doctor_finds_a_damaged_file_and_says_what_to_do(tmp_path: Path) -> None:
    data = a_folder(tmp_path / "data")
    (data / "lanes.db").write_bytes(b"nothing of the kind" * 300)
    code, out, _ = run("doctor", "--data", str(data), "--port", "0", "--json")
    found = {finding["subject"]: finding for finding in json.loads(out)["findings"]}
    assert code == 1
    assert found["lanes.db"]["verdict"] == "wrong" and "written again from the log" in found["lanes.db"]["remedy"]
    assert found["log.db"]["verdict"] == "ok"
    assert "lanes.db" in run("doctor", "--data", str(data), "--port", "0")[1]
