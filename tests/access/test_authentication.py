"""The gate: static tokens, signed tokens with our own keys, and an issuer on loopback that comes, changes and goes."""

import asyncio
import base64
import json
import logging
import threading
from pathlib import Path
from typing import Any

import jwt
import pytest

from tests.access.signing import AUDIENCE, ISSUER, NOW, KeyServer, Signer
from tidings.access.authentication import REMEMBER_FOR, REMEMBERED, Authenticator, Headers, token_digest
from tidings.access.issuer_keys import FRESH, PAUSE_FIRST, Key
from tidings.access.principals import EVERYONE, Principal, Right
from tidings.access.refused_tokens import LINES, WINDOW, RefusedTokens
from tidings.clock import Clock, ManualClock
from tidings.config import AccessSettings, ScopeSettings, TokenSettings
from tidings.errors import Unauthenticated, Unavailable

EC = Signer("k1", "EC")


def bearing(token: str) -> Headers:
    return [(b"host", b"x"), (b"authorization", b"Bearer " + token.encode("utf-8", "surrogateescape"))]


def a_gate(mode: str = "jwt", jwks: str = "keys", clock: Clock | None = None, **fields: Any) -> Authenticator:
    """A gate whose issuer shows EC's key, unless `fetch` says otherwise."""
    fetch, refused = fields.pop("fetch", None), fields.pop("refused", None)
    plain = {"tokens": (), "issuer": ISSUER, "audience": AUDIENCE, "rights_claim": "scope"}
    settings = AccessSettings(mode=mode, jwks=jwks, **{**plain, **fields})
    if fetch is None and jwks == "keys":
        fetch = lambda place: (EC.jwk,)  # noqa: E731
    return Authenticator(settings, clock or ManualClock(), *([fetch] if fetch else []), refused=refused)


def ask(gate: Authenticator, token: str) -> Principal:
    return asyncio.run(gate.identify(bearing(token)))


def refusal(gate: Authenticator, token: str) -> str:
    with pytest.raises(Unauthenticated) as refused:
        ask(gate, token)
    return str(refused.value)


def with_tokens(*entries: tuple[str, str], mode: str = "tokens", **fields: Any) -> Authenticator:
    """A gate with tokens, each given as name and token."""
    tokens = tuple(TokenSettings(name, token_digest(token), ("publish",), ("orders",)) for name, token in entries)
    return a_gate(mode, tokens=tokens, **fields)


def test_with_open_access_everyone_is_let_in() -> None:
    gate = a_gate("open")
    assert gate.identify_cached([]) is EVERYONE
    assert asyncio.run(gate.identify([])) is EVERYONE


def test_a_token_of_the_table_is_its_owner() -> None:
    gate = with_tokens(("shop", "s3cret"), ("till", "other"))
    assert ask(gate, "s3cret") == Principal("shop", frozenset({Right.PUBLISH}), ("orders",))
    assert ask(gate, "other").name == "till"


def test_the_digest_is_written_in_either_case() -> None:
    tokens = (TokenSettings("shop", token_digest("s3cret").upper(), ("read",)),)
    assert ask(a_gate("tokens", tokens=tokens), "s3cret").name == "shop"


@pytest.mark.parametrize("token", ["s3cret2", "S3CRET", "x", token_digest("s3cret")])
def test_a_token_that_is_not_in_the_table_is_refused(token: str) -> None:
    gate = with_tokens(("shop", "s3cret"))
    refusal(gate, token)
    assert gate.identify_cached(bearing(token)) is None


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [(b"x-authorization", b"Bearer s3cret")],
        [(b"authorization", b"")],
        [(b"authorization", b"Bearer")],
        [(b"authorization", b"Bearer  ")],
        [(b"authorization", b"Basic s3cret")],
        [(b"authorization", b"s3cret")],
        [(b"authorization", b"Bearer " + b"x" * (16 << 10) + b"x")],
    ],
)
@pytest.mark.parametrize("mode", ["tokens", "tokens+jwt"])
def test_a_request_without_token_is_refused(headers: Headers, mode: str) -> None:
    gate = with_tokens(("shop", "s3cret"), mode=mode)
    with pytest.raises(Unauthenticated):
        asyncio.run(gate.identify(headers))


def test_the_scheme_is_written_in_either_case() -> None:
    assert asyncio.run(with_tokens(("shop", "s")).identify([(b"authorization", b"bEARER s")])).name == "shop"


def test_a_token_once_found_good_is_told_at_once_and_only_for_a_while() -> None:
    clock = ManualClock()
    gate = with_tokens(("shop", "s3cret"), clock=clock)
    assert gate.identify_cached(bearing("s3cret")) is None
    ask(gate, "s3cret")
    assert gate.identify_cached(bearing("s3cret")) == ask(gate, "s3cret")
    clock.advance(REMEMBER_FOR)
    assert gate.identify_cached(bearing("s3cret")) is None
    assert ask(gate, "s3cret").name == "shop"


def test_what_is_remembered_is_bounded() -> None:
    async def ask_all(gate: Authenticator) -> None:
        for name in names:
            await gate.identify(bearing(name))

    names = [f"t{n}" for n in range(20)]
    gate = with_tokens(*((name, name) for name in names))
    asyncio.run(ask_all(gate))
    assert len(gate._known) == 20 < REMEMBERED
    for n in range(REMEMBERED + 5):
        gate._remember(b"%d" % n, EVERYONE, 60)
    assert len(gate._known) == REMEMBERED
    assert gate.identify_cached(bearing("t0")) is None


def test_no_token_is_kept_or_logged_in_clear(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    gate = with_tokens(("shop", "s3cret"), mode="tokens+jwt")
    ask(gate, "s3cret")
    told = refusal(gate, "wr0ng") + caplog.text
    kept = repr([vars(gate), gate._known, gate._table])
    assert "s3cret" not in told + kept
    assert "wr0ng" not in told + kept


def noted(gate: Authenticator, address: str, *tokens: str) -> None:
    async def ask_all() -> None:
        for token in tokens:
            with pytest.raises(Unauthenticated):
                await gate.identify(bearing(token), address)

    asyncio.run(ask_all())


def with_refusals(clock: ManualClock, counted: list[int]) -> Authenticator:
    return with_tokens(("shop", "s3cret"), clock=clock, refused=RefusedTokens(clock, lambda: counted.append(1)))


def test_a_refused_token_is_counted_and_leaves_a_line_with_its_address(caplog: pytest.LogCaptureFixture) -> None:
    counted = list[int]()
    gate = with_refusals(ManualClock(), counted)
    noted(gate, "10.0.0.7", "wr0ng")
    (line,) = caplog.messages
    assert line == "refused the token of a request from 10.0.0.7: the token is not known"
    assert len(counted) == 1
    asyncio.run(gate.identify(bearing("s3cret"), "10.0.0.7"))
    with pytest.raises(Unauthenticated):
        asyncio.run(gate.identify([], "10.0.0.7"))
    assert len(counted) == 1, "no token at all is no wrong one"


def test_a_header_that_holds_no_token_counts_as_a_refused_one_and_once(caplog: pytest.LogCaptureFixture) -> None:
    counted = list[int]()
    gate, headers = with_refusals(ManualClock(), counted), [(b"authorization", b"Basic c2hvcDpzM2NyZXQ=")]
    assert gate.identify_cached(headers) is None
    with pytest.raises(Unauthenticated):
        asyncio.run(gate.identify(headers, "10.0.0.7"))
    assert (len(counted), "c2hvcDpzM2NyZXQ" in caplog.text, len(caplog.messages)) == (1, False, 1)


def test_lines_about_refused_tokens_are_few_and_say_how_many_were_left_out(caplog: pytest.LogCaptureFixture) -> None:
    clock, counted = ManualClock(), list[int]()
    gate = with_refusals(clock, counted)
    noted(gate, "10.0.0.7", *(f"guess-{n}" for n in range(20)))
    noted(gate, "10.0.0.8", "guess")
    assert [line.split(" from ")[1].split(":")[0] for line in caplog.messages] == ["10.0.0.7", "10.0.0.8"]
    for n in range(100):
        noted(gate, f"10.0.1.{n}", "guess")
    assert len(caplog.messages) == LINES
    clock.advance(WINDOW)
    noted(gate, "10.0.0.7", "guess")
    assert len(caplog.messages) == LINES + 1
    assert caplog.messages[-1].endswith("; 92 others were not logged since the last such line")
    assert len(counted) == 122


def test_a_signed_token_is_its_subject_with_the_rights_of_its_claim() -> None:
    assert ask(a_gate(), EC.token(scope="openid tidings:publish read")) == Principal(
        "shop", frozenset({Right.PUBLISH, Right.READ}), realm="default"
    )
    assert ask(a_gate(rights_claim="roles"), EC.token(roles=["admin"])).rights == {Right.ADMIN}
    assert ask(a_gate(), EC.token(without=("sub",), client_id="app-1")).name == "app-1"


def test_scopes_of_another_standard_stand_for_rights() -> None:
    words = (ScopeSettings("events.publish", "publish"), ScopeSettings("events.consume", "subscribe"))
    token = EC.token(scope="openid events.publish events.consume")
    assert ask(a_gate(scopes=words), token).rights == {Right.PUBLISH, Right.SUBSCRIBE}
    assert ask(a_gate(), token).rights == frozenset()


@pytest.mark.parametrize(
    ("kind", "alg"), [("RSA", "RS256"), ("RSA", "RS384"), ("RSA", "RS512"), ("EC", "ES256"), ("OKP", "EdDSA")]
)
@pytest.mark.parametrize("stated", [True, False])
def test_every_accepted_way_of_signing_is_accepted(kind: str, alg: str, stated: bool) -> None:
    signer = Signer("k", kind, alg if stated else "")
    assert ask(a_gate(fetch=lambda place: (signer.jwk,)), signer.token(alg)).name == "shop"


def unsigned() -> str:
    return jwt.encode({"sub": "shop", "iss": ISSUER, "aud": AUDIENCE, "exp": NOW + 600}, None, "none", headers={"kid": "k1"})


def signed_with_the_public_key() -> str:
    """The old trick: the shown key taken as a shared secret."""
    return jwt.encode(
        {"sub": "shop", "iss": ISSUER, "aud": AUDIENCE, "exp": NOW + 600}, EC.jwk["x"] * 2, "HS256", headers={"kid": "k1"}
    )


def nested() -> str:
    return base64.urlsafe_b64encode(b"[" * 11_000).decode() + ".e30.x"


@pytest.mark.parametrize(
    "token",
    [
        EC.token(exp=NOW - 31),
        EC.token(nbf=NOW + 31),
        EC.token(without=("exp",)),
        EC.token(exp="soon"),
        EC.token(iss="https://other.example"),
        EC.token(without=("iss",)),
        EC.token(aud="others"),
        EC.token(aud=["others"]),
        EC.token(without=("aud",)),
        EC.token(without=("sub",)),
        EC.token(sub=""),
        EC.token(sub=5),
        EC.token()[:-4] + "AAAA",
        Signer("k1", "EC").token(),
        Signer("k1", "RSA").token(),
        unsigned(),
        signed_with_the_public_key(),
        nested(),
        "a.b.c",
        "..",
        "x",
        "ü.é.\udcff",
    ],
)
def test_a_token_that_does_not_hold_is_refused(token: str) -> None:
    gate = a_gate()
    refusal(gate, token)
    assert gate.identify_cached(bearing(token)) is None


@pytest.mark.parametrize(
    "token", [EC.token(exp=NOW - 29), EC.token(nbf=NOW + 29), EC.token(without=("nbf",)), EC.token(aud=["others", AUDIENCE])]
)
def test_a_token_that_holds_is_accepted(token: str) -> None:
    assert ask(a_gate(), token).name == "shop"


def test_issuer_and_audience_are_not_checked_when_not_set() -> None:
    assert ask(a_gate(issuer="", audience=""), EC.token(iss="other", aud="others")).name == "shop"


def test_a_signed_token_is_not_remembered_beyond_its_end() -> None:
    clock = ManualClock()
    gate, token = a_gate(clock=clock), EC.token(exp=NOW + 20)
    ask(gate, token)
    clock.advance(19)
    assert gate.identify_cached(bearing(token))
    clock.advance(1)
    assert gate.identify_cached(bearing(token)) is None
    clock.advance(31)
    assert "expired" in refusal(gate, token)


def test_tokens_of_both_kinds_are_accepted_together() -> None:
    gate = with_tokens(("till", "s3cret"), mode="tokens+jwt")
    assert {ask(gate, "s3cret").name, ask(gate, EC.token()).name} == {"till", "shop"}


def test_a_signed_token_is_refused_where_only_the_table_counts() -> None:
    refusal(with_tokens(("till", "s3cret")), EC.token())


def test_a_token_without_key_id_means_the_only_key() -> None:
    assert ask(a_gate(), EC.token(kid=None)).name == "shop"
    two = a_gate(fetch=lambda place: (EC.jwk, Signer("k2").jwk))
    refusal(two, EC.token(kid=None))


def test_keys_are_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_text(json.dumps({"keys": [EC.jwk]}))
    assert ask(a_gate(jwks=str(file)), EC.token()).name == "shop"


def test_keys_are_fetched_once_for_many_tokens() -> None:
    async def ask_many(gate: Authenticator) -> None:
        await asyncio.gather(*(gate.identify(bearing(EC.token(jti=str(n)))) for n in range(20)))

    with KeyServer(EC.jwk).running() as server:
        asyncio.run(ask_many(a_gate(jwks=server.url)))
        assert server.asked == 1


def test_a_new_key_is_fetched_when_a_token_names_it_but_not_for_every_made_up_name() -> None:
    clock, new = ManualClock(), Signer("k2")
    with KeyServer(EC.jwk).running() as server:
        gate = a_gate(jwks=server.url, clock=clock)
        ask(gate, EC.token())
        for n in range(5):
            refusal(gate, EC.token(kid=f"made-up-{n}"))
        assert server.asked == 1
        server.jwks.append(new.jwk)
        refusal(gate, new.token())
        clock.advance(PAUSE_FIRST)
        assert ask(gate, new.token()).name == "shop"
        assert server.asked == 2


def test_a_withdrawn_key_is_trusted_no_more_once_the_keys_have_grown_old() -> None:
    clock = ManualClock()
    with KeyServer(EC.jwk).running() as server:
        gate = a_gate(jwks=server.url, clock=clock)
        ask(gate, EC.token())
        server.jwks[:] = [Signer("k2").jwk]
        clock.advance(FRESH)
        refusal(gate, EC.token(exp=NOW + 9999))


def test_keys_in_hand_stay_good_while_the_issuer_is_away() -> None:
    clock = ManualClock()
    with KeyServer(EC.jwk).running() as server:
        gate = a_gate(jwks=server.url, clock=clock)
        ask(gate, EC.token())
        server.status = 500
        clock.advance(FRESH)
        assert ask(gate, EC.token(exp=NOW + 9999)).name == "shop"
        assert server.asked == 2


def test_without_any_keys_the_caller_is_told_to_try_later_and_the_pauses_grow() -> None:
    clock, asked = ManualClock(), list[float]()

    def fetch(place: str) -> tuple[Key, ...]:
        asked.append(clock.monotonic() - NOW)
        raise Unavailable("away")

    gate = a_gate(fetch=fetch, clock=clock)
    for _ in range(60):
        with pytest.raises(Unavailable):
            ask(gate, EC.token(exp=NOW + 9999))
        clock.advance(1)
    assert asked == [0, 5, 15, 35]


@pytest.mark.parametrize(
    "answer",
    [
        {"body": b"<html>"},
        {"body": b"[]"},
        {"body": b'{"keys": 5}'},
        {"body": b"x" * ((1 << 20) + 1)},
        {"status": 404},
        {"status": 302, "headers": {"Location": "https://elsewhere.example/keys"}},
    ],
)
def test_what_is_no_set_of_keys_is_not_trusted(answer: dict[str, Any]) -> None:
    with KeyServer().running() as server:
        for name, value in answer.items():
            setattr(server, name, value)
        with pytest.raises(Unavailable):
            ask(a_gate(jwks=server.url), EC.token())


def test_keys_that_are_not_for_signing_are_passed_over() -> None:
    shared = {"kty": "oct", "k": "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0", "kid": "k1"}
    for shown in (shared, {**EC.jwk, "use": "enc"}, {**EC.jwk, "alg": "HS256"}, {**EC.jwk, "kty": []}, "k1", {}):
        with KeyServer(shown).running() as server:  # type: ignore[arg-type]
            refusal(a_gate(jwks=server.url), EC.token())


@pytest.mark.parametrize("broken", [{"x": "?"}, {"x": 5}, {"crv": "P-999"}, {"x": "AAAA"}, {"alg": "RS256"}])
def test_a_key_that_cannot_be_read_refuses_its_tokens(broken: dict[str, Any]) -> None:
    with KeyServer({**EC.jwk, **broken}).running() as server:
        refusal(a_gate(jwks=server.url), EC.token())


def test_fetching_keys_does_not_hold_up_the_event_loop() -> None:
    """The loop itself lets the fetch go on: were the loop held up, this would never end."""
    go_on = threading.Event()

    def fetch(place: str) -> tuple[Key, ...]:
        assert go_on.wait(20)
        return (EC.jwk,)

    async def flow() -> Principal:
        asking = asyncio.create_task(gate.identify(bearing(EC.token())))
        await asyncio.sleep(0)
        go_on.set()
        return await asking

    gate = a_gate(fetch=fetch)
    assert asyncio.run(flow()).name == "shop"
