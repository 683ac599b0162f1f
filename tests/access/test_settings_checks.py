"""What access settings are refused, as tables."""

from pathlib import Path
from typing import Any

import pytest

from tidings.access.settings_checks import check_access, check_bind
from tidings.config import AccessSettings, ScopeSettings, TokenSettings
from tidings.errors import Misconfigured

DIGEST = "ab" * 32


def access(mode: str = "open", **fields: Any) -> AccessSettings:
    plain = {"tokens": (), "jwks": "", "issuer": "", "audience": "", "rights_claim": "scope"}
    return AccessSettings(mode=mode, **{**plain, **fields})


def token(**fields: Any) -> TokenSettings:
    return TokenSettings(**{"name": "shop", "sha256": DIGEST, "rights": ("publish",), **fields})


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost", "LOCALHOST", "::ffff:127.0.0.1"])
def test_open_access_is_allowed_on_this_machine_alone(host: str) -> None:
    check_bind(host, "open")


@pytest.mark.parametrize(
    "host",
    ["0.0.0.0", "::", "", "10.0.0.1", "192.168.1.5", "hub.example", "127.0.0.1.example", "::ffff:10.0.0.1", "2130706433"],
)
def test_open_access_is_refused_where_others_can_reach(host: str) -> None:
    with pytest.raises(Misconfigured, match="with open access anybody"):
        check_bind(host, "open")


@pytest.mark.parametrize("mode", ["tokens", "jwt", "tokens+jwt"])
def test_with_token_checks_any_address_can_be_bound(mode: str) -> None:
    check_bind("0.0.0.0", mode)


def test_whole_settings_pass(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.touch()
    check_access(access(), "127.0.0.1")
    check_access(access("tokens", tokens=(token(), token(name="b", sha256="CD" * 32))), "0.0.0.0")
    check_access(access("jwt", jwks="https://login.example/keys"), "0.0.0.0")
    check_access(access("jwt", jwks="http://127.0.0.1:9/keys"), "0.0.0.0")
    check_access(access("tokens+jwt", tokens=(token(),), jwks=str(file)), "0.0.0.0")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (access("none"), "no such access mode"),
        (access(""), "no such access mode"),
        (access("jwt+tokens"), "no such access mode"),
        (access("open"), "with open access anybody"),
        (access("tokens"), "access.tokens is empty"),
        (access("tokens", tokens=(token(sha256="secret"),)), r"tokens\[0\].sha256 is no SHA-256"),
        (access("tokens", tokens=(token(rights=("write",)),)), "'write'"),
        (access("tokens", tokens=(token(name=""),)), "has no name"),
        (access("tokens", tokens=(token(), token(name="b", sha256=DIGEST.upper()))), r"same token 2 times \(shop, b\)"),
        (access("jwt"), "access.jwks is empty"),
        (access("tokens+jwt", tokens=(token(),)), "access.jwks is empty"),
        (access("tokens+jwt", jwks="https://login.example/keys"), "access.tokens is empty"),
        (access("jwt", jwks="http://login.example/keys"), "over https only"),
        (access("jwt", jwks="file:///keys"), "over https only"),
        (access("jwt", jwks="https://"), "over https only"),
        (access("jwt", jwks="no/such/file"), "no such file"),
        (access("jwt", jwks="https://login.example/keys", rights_claim=""), "rights_claim is empty"),
        (
            access("jwt", jwks="https://login.example/keys", scopes=(ScopeSettings("events.publish", "write"),)),
            r"access\.scopes\[0\]\.right is 'write'",
        ),
    ],
)
def test_settings_that_lack_a_piece_are_refused_with_a_sentence(settings: AccessSettings, sentence: str) -> None:
    with pytest.raises(Misconfigured, match=sentence):
        check_access(settings, "0.0.0.0")


def test_a_token_written_in_clear_by_mistake_is_not_repeated() -> None:
    with pytest.raises(Misconfigured) as refused:
        check_access(access("tokens", tokens=(token(sha256="hushhush"),)), "127.0.0.1")
    assert "hushhush" not in str(refused.value)
