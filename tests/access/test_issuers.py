"""Several trusted issuers, and what Horizon reads from a token: client id and realm (HOR-05, HOR-06)."""

from __future__ import annotations

import asyncio

import pytest

from tests.access.signing import AUDIENCE, Signer
from tidings.access.authentication import Authenticator, token_digest
from tidings.access.jwts import realm_of
from tidings.access.principals import Principal
from tidings.access.settings_checks import check_access
from tidings.clock import ManualClock
from tidings.config import AccessSettings, IssuerSettings, TokenSettings
from tidings.errors import Misconfigured, Unauthenticated

PLAY, PROD = Signer("play", "EC"), Signer("prod", "EC")
REALMS = "https://iris.example/auth/realms/"
KEYS = {"play-keys": (PLAY.jwk,), "prod-keys": (PROD.jwk,)}


def a_gate(*issuers: IssuerSettings, mode: str = "jwt", tokens: tuple[TokenSettings, ...] = ()) -> Authenticator:
    settings = AccessSettings(mode, tokens, "", "", AUDIENCE, "scope", issuers=issuers)
    return Authenticator(settings, ManualClock(), KEYS.__getitem__)


def both() -> Authenticator:
    return a_gate(IssuerSettings(f"{REALMS}playground", "play-keys"), IssuerSettings(f"{REALMS}prod", "prod-keys"))


def ask(gate: Authenticator, token: str) -> Principal:
    return asyncio.run(gate.identify([(b"authorization", b"Bearer " + token.encode())]))


def test_each_issuer_is_checked_with_its_own_keys() -> None:
    found = ask(both(), PLAY.token(iss=f"{REALMS}playground", clientId="hub--team--shop"))
    assert (found.client_id, found.realm) == ("hub--team--shop", "playground")
    assert ask(both(), PROD.token(iss=f"{REALMS}prod", azp="hub--team--x")).client_id == "hub--team--x"


def test_a_token_of_another_issuer_or_signed_by_another_one_is_refused() -> None:
    with pytest.raises(Unauthenticated, match="issuer is not trusted"):
        ask(both(), PLAY.token(iss="https://elsewhere"))
    with pytest.raises(Unauthenticated):
        ask(both(), PLAY.token(iss=f"{REALMS}prod"))
    with pytest.raises(Unauthenticated, match="neither known nor a JWT"):
        ask(both(), "x.y.z")


def test_the_client_id_is_the_claim_client_id_before_azp() -> None:
    gate = a_gate(IssuerSettings(f"{REALMS}playground", "play-keys"))
    assert ask(gate, PLAY.token(iss=f"{REALMS}playground", clientId="a", azp="b")).client_id == "a"


def test_the_realm_is_in_the_issuer() -> None:
    assert realm_of("https://iris.example/auth/realms/prod") == "prod"
    assert realm_of("https://iris.example/realms/prod") == "default"
    assert realm_of(None) == "default"


def test_a_token_of_the_table_may_name_client_and_realm() -> None:
    entry = TokenSettings("shop", token_digest("s3cret"), ("publish",), client_id="hub--team--shop", realm="prod")
    found = ask(a_gate(mode="tokens", tokens=(entry,)), "s3cret")
    assert (found.name, found.client_id, found.realm) == ("shop", "hub--team--shop", "prod")


def test_issuers_are_checked_at_start() -> None:
    def check(*issuers: IssuerSettings, jwks: str = "", issuer: str = "") -> None:
        check_access(AccessSettings("jwt", (), jwks, issuer, "", "scope", issuers=issuers), "127.0.0.1")

    check(IssuerSettings("https://a", "https://a/keys"))
    with pytest.raises(Misconfigured, match=r"access\.issuers\[0\]\.jwks"):
        check(IssuerSettings("https://a", "http://a/keys"))
    with pytest.raises(Misconfigured, match=r"access\.issuer is empty"):
        check(IssuerSettings("https://a", "https://a/keys"), jwks="https://b/keys")
    with pytest.raises(Misconfigured, match=r"access\.jwks is empty"):
        check()
