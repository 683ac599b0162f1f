"""The key of the hub's own tokens: made once, sealed, and found by every process."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jwt
import pytest

from tidings.access.gateway_tokens import GatewayKey
from tidings.access.key_file import FILE, KeyFile
from tidings.access.secret_box import Box
from tidings.access.secrets import Secret
from tidings.clock import Clock, ManualClock, SystemClock
from tidings.errors import Unavailable


def a_key(folder: Path, secret: bytes = b"a", clock: Clock | None = None) -> GatewayKey:
    return GatewayKey(KeyFile(folder, Box(Secret(secret * 32)), 600, clock or SystemClock()))


def kid_of(token: str) -> str:
    return str(jwt.get_unverified_header(token)["kid"])


def test_every_process_finds_the_key_that_was_made_first(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        tokens = list(pool.map(lambda _: a_key(tmp_path).signed({"a": 1}), range(8)))
    (key,) = a_key(tmp_path).jwks["keys"]
    assert {kid_of(token) for token in tokens} == {key["kid"]}
    assert (key["kty"], key["alg"], key["use"], "d" in key) == ("RSA", "RS256", "sig", False)
    assert jwt.decode(tokens[0], jwt.PyJWK(key), algorithms=["RS256"]) == {"a": 1}


def test_the_private_key_is_sealed_and_for_its_owner_only(tmp_path: Path) -> None:
    a_key(tmp_path).signed({"a": 1})
    kept = tmp_path / FILE
    assert b"PRIVATE" not in kept.read_bytes() and b'"d":' not in kept.read_bytes()
    assert kept.stat().st_mode & 0o077 == 0


def test_hor_165_a_former_key_is_listed_for_a_while(tmp_path: Path) -> None:
    clock = ManualClock()
    token = a_key(tmp_path, b"a", clock).signed({"a": 1})
    clock.advance(1_000_000)
    new = a_key(tmp_path, b"b", clock)
    listed = new.jwks["keys"]
    assert [key["kid"] == kid_of(token) for key in listed] == [False, True]
    assert jwt.decode(token, jwt.PyJWK(listed[1]), algorithms=["RS256"]) == {"a": 1}
    clock.advance(599)
    assert new.jwks["keys"] == listed
    # Back to the former secret: its key is the one in use again.
    assert [key["kid"] for key in a_key(tmp_path, b"a", clock).jwks["keys"]] == [kid_of(token), listed[0]["kid"]]
    a_key(tmp_path, b"b", clock).signed({})
    clock.advance(601)
    assert [key["kid"] for key in new.jwks["keys"]] == [listed[0]["kid"]]


def test_a_process_follows_when_another_one_changed_the_key(tmp_path: Path) -> None:
    old = a_key(tmp_path)
    before = kid_of(old.signed({}))
    (tmp_path / FILE).unlink()
    assert kid_of(old.signed({})) == before, "what it holds is put back"
    (tmp_path / FILE).unlink()
    after = kid_of(a_key(tmp_path).signed({}))
    assert after != before
    assert kid_of(old.signed({})) == after


@pytest.mark.parametrize("damage", ["damaged", '[{"key": {"kid": "x"}, "private": "sealed:none"}]', "[]"])
def test_a_damaged_file_gives_way_to_a_new_key(tmp_path: Path, damage: str) -> None:
    (tmp_path / FILE).write_text(damage)
    key = a_key(tmp_path)
    assert key.jwks["keys"][0]["kid"] == kid_of(key.signed({}))


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="signing keys cannot be kept"):
        a_key(tmp_path / "nowhere").signed({})
