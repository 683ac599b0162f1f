"""Backups of folders that are written to meanwhile, and what becomes of bad files."""

from __future__ import annotations

import io
import json
import shutil
import sqlite3
import stat
import tarfile
import threading
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.backup.folders import a_database, a_folder, append, count
from tidings.backup import archive
from tidings.backup.sqlite import Pinned, pin_all
from tidings.clock import Instant
from tidings.data_files import hub_id
from tidings.delivery.feeds.sqlite_cursor_sets import CURSOR_SETS
from tidings.errors import DataFolderUnusable, DataVersionUnsupported, Malformed, NotFound
from tidings.log.sqlite.entries import LEAP
from tidings.serve import folder as data_folder
from tidings.sqlite.files import open_writer

NOW = Instant(1_700_000_000_000_000)


def ignore(done: int) -> None:
    """No progress is shown."""


def a_backup(tmp_path: Path, name: str = "hub.tar.gz") -> Path:
    archive.make(a_folder(tmp_path / "data"), tmp_path / name, NOW, ignore)
    return tmp_path / name


@pytest.mark.parametrize("name", ["hub.tar", "hub.tar.gz"])
def test_a_restored_folder_holds_what_was_backed_up(tmp_path: Path, name: str) -> None:
    file = a_backup(tmp_path, name)
    restored = tmp_path / "restored"
    summary = archive.restore(file, restored, ignore)
    assert {"log.db", "registry.db", "lanes.db", "delivery-0.db", "hub.key", "version.json"} == set(summary.files)
    assert all(count(path) == 100 for path in restored.glob("*.db"))
    assert (restored / "hub.key").read_bytes() == b"secret"
    assert data_folder.version_of(restored) == data_folder.FORMAT


def test_only_the_owner_may_read_a_backup(tmp_path: Path) -> None:
    assert stat.S_IMODE(a_backup(tmp_path).stat().st_mode) == 0o600


def test_a_pinned_view_is_copied_whole_while_another_connection_writes(tmp_path: Path) -> None:
    path = a_database(tmp_path / "log.db", rows=3000)
    stop = threading.Event()

    def write() -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            while not stop.is_set():
                append(connection, 1)

    with closing(Pinned(path)) as pinned:
        writer = threading.Thread(target=write)
        writer.start()
        steps: list[int] = []
        pinned.copy_to(tmp_path / "copy.db", steps.append)
        stop.set()
        writer.join()
    assert count(tmp_path / "copy.db") == 3000 < count(path)
    assert all(step >= 0 for step in steps), "the copy never began again"


def test_registry_and_log_are_pinned_at_one_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A registry change that falls between the two pins makes both be pinned anew."""
    folder = a_folder(tmp_path / "data")
    pins: list[str] = []
    plain = Pinned.__init__

    def pin_and_disturb_once(self: Pinned, path: Path) -> None:
        plain(self, path)
        pins.append(path.name)
        if pins.count("registry.db") == 1 and path.name == "registry.db":
            for name in ("registry.db", "log.db"):
                with closing(sqlite3.connect(folder / name, isolation_level=None)) as connection:
                    append(connection, 1)

    monkeypatch.setattr(Pinned, "__init__", pin_and_disturb_once)
    with ExitStack() as held:
        for view in pin_all(folder, held):
            view.copy_to(tmp_path / view.name, ignore)
    assert pins == ["delivery-0.db", "lanes.db", "registry.db", "log.db", "registry.db", "log.db"]
    assert count(tmp_path / "registry.db") == count(tmp_path / "log.db") == 101


def test_positions_of_a_restored_log_leap_ahead(tmp_path: Path) -> None:
    archive.restore(a_backup(tmp_path), tmp_path / "restored", ignore)
    with closing(sqlite3.connect(tmp_path / "restored" / "log.db", isolation_level=None)) as connection:
        append(connection, 1)
        assert connection.execute("SELECT max(n) FROM entries").fetchone()[0] == 100 + LEAP + 1


def test_a_backup_is_restored_into_an_empty_folder_only(tmp_path: Path) -> None:
    file = a_backup(tmp_path)
    (tmp_path / "empty").mkdir()
    archive.restore(file, tmp_path / "empty", ignore)
    with pytest.raises(DataFolderUnusable, match="not empty"):
        archive.restore(file, tmp_path / "empty", ignore)


def test_a_backup_is_not_restored_where_a_hub_runs(tmp_path: Path) -> None:
    file = a_backup(tmp_path)
    with data_folder.held(tmp_path / "data"), pytest.raises(DataFolderUnusable, match="a hub runs"):
        archive.restore(file, tmp_path / "data", ignore)


def test_a_running_hub_can_be_backed_up(tmp_path: Path) -> None:
    folder = a_folder(tmp_path / "data")
    with data_folder.held(folder):
        assert "log.db" in archive.make(folder, tmp_path / "hub.tar", NOW, ignore).files


def test_a_backup_replaces_no_file_unless_asked(tmp_path: Path) -> None:
    file = a_backup(tmp_path)
    with pytest.raises(DataFolderUnusable, match="there already"):
        archive.make(tmp_path / "data", file, NOW, ignore)
    archive.make(tmp_path / "data", file, NOW, ignore, replace=True)


def test_a_folder_without_a_hub_is_not_backed_up(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        archive.make(tmp_path, tmp_path / "hub.tar", NOW, ignore)


def test_a_backup_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    manifest = json.dumps({"format": 99, "at": "", "files": []}).encode()
    file = tmp_path / "newer.tar"
    with tarfile.open(file, "w") as tar:
        info = tarfile.TarInfo(archive.MANIFEST)
        info.size = len(manifest)
        tar.addfile(info, io.BytesIO(manifest))
    with pytest.raises(DataVersionUnsupported):
        archive.restore(file, tmp_path / "restored", ignore)
    assert not (tmp_path / "restored").exists()


def test_a_damaged_backup_leaves_nothing_behind(tmp_path: Path) -> None:
    file = a_backup(tmp_path, "hub.tar")
    content = bytearray(file.read_bytes())
    content[-60_000] ^= 0xFF
    file.write_bytes(content)
    with pytest.raises(Malformed, match="checksum"):
        archive.restore(file, tmp_path / "restored", ignore)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "hub.tar"]


@pytest.mark.parametrize("content", [b"", b"hello", b"\x1f\x8b broken"])
def test_what_is_no_backup_is_refused_with_a_sentence(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "x.tar"
    file.write_bytes(content)
    with pytest.raises(Malformed):
        archive.restore(file, tmp_path / "restored", ignore)


def test_a_restored_hub_is_another_one_than_the_one_that_was_backed_up(tmp_path: Path) -> None:
    folder = a_folder(tmp_path / "data")
    open_writer(folder / "cursorsets.db", CURSOR_SETS, 1 << 20).close()
    archive.make(folder, tmp_path / "hub.tar", NOW, ignore)
    archive.restore(tmp_path / "hub.tar", tmp_path / "new", ignore)
    assert hub_id(tmp_path / "new") not in ("", hub_id(folder))
    open_writer(tmp_path / "new" / "cursorsets.db", CURSOR_SETS, 1 << 20).close()
    shutil.copyfile(folder / "cursorsets.db", tmp_path / "new" / "cursorsets.db")
    with pytest.raises(DataFolderUnusable, match="another hub"):
        open_writer(tmp_path / "new" / "cursorsets.db", CURSOR_SETS, 1 << 20)
