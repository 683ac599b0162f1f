"""The hub's key, and secrets that do not show."""

import logging
import pickle
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tidings.access.secrets import Secret, covered, hub_key
from tidings.errors import DataFolderUnusable


def test_the_key_is_made_once_and_stays(tmp_path: Path) -> None:
    key = hub_key(tmp_path)
    assert len(key.reveal()) == 32
    assert hub_key(tmp_path) == key
    assert [file.name for file in tmp_path.iterdir()] == ["hub.key"]


def test_two_hubs_have_two_keys(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert hub_key(tmp_path / "a") != hub_key(tmp_path / "b")


def test_only_the_owner_may_read_the_key(tmp_path: Path) -> None:
    hub_key(tmp_path)
    file = tmp_path / "hub.key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.chmod(0o644)
    hub_key(tmp_path)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_processes_that_start_together_get_the_same_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        keys = set(pool.map(hub_key, [tmp_path] * 64))
    assert len(keys) == 1
    assert [file.name for file in tmp_path.iterdir()] == ["hub.key"]


def test_a_damaged_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / "hub.key").write_bytes(b"half")
    with pytest.raises(DataFolderUnusable, match="the hub's key is damaged"):
        hub_key(tmp_path)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataFolderUnusable, match="cannot be read or made"):
        hub_key(tmp_path / "nowhere")


def test_a_secret_does_not_show(caplog: pytest.LogCaptureFixture) -> None:
    secret = Secret(b"hushhush")
    logging.getLogger("test").warning("%s %r", secret, secret)
    assert "hushhush" not in f"{secret} {secret!r} {[secret]} {caplog.text}"
    with pytest.raises(TypeError):
        pickle.dumps(secret)
    assert secret == Secret(b"hushhush")
    assert secret != Secret(b"other") and secret != b"hushhush"


def test_headers_are_shown_with_their_secrets_covered() -> None:
    headers = {"Authorization": "Bearer x", "X-Api-Key": "k", "Set-Cookie": "c", "X-Auth-Token": "t", "Accept": "a"}
    assert covered(headers) == dict.fromkeys(headers, "***") | {"Accept": "a"}
