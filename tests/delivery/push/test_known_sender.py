"""Credentials and signatures as an endpoint sees them."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from dataclasses import replace
from itertools import pairwise
from typing import Any

import jwt
import pytest
from standardwebhooks.webhooks import Webhook

from tests.access.signing import OneKey
from tests.delivery.push.knowing import BOX, DELIVERY_ID, GATEWAY, Sending, a_provider, attempts, sending
from tests.receivers import Answer, Arrival, Receiver
from tidings.access.gateway_tokens import GatewayKey
from tidings.access.key_file import Pair
from tidings.access.signing_keys import new_key, rotated
from tidings.client import NotVerified, verify
from tidings.clock import SECOND, Instant, ManualClock
from tidings.config import GatewayClientSettings, load
from tidings.delivery.push.egress.exchange import ExchangeRequest, Reply
from tidings.delivery.push.policy.decision import Outcome
from tidings.delivery.push.request.credential_cache import EARLY, CredentialCache, Gateway
from tidings.delivery.push.request.credentials import EXPIRED, NO_PROVIDER, REFUSED, UNREADABLE, Access
from tidings.delivery.push.request.signatures import message_id
from tidings.registry.credentials import (
    Basic,
    Credential,
    GatewayToken,
    GrantType,
    OAuth,
    Placement,
    SigningVersion,
    TokenCredential,
)
from tidings.registry.credentials import (
    Webhook as Handshake,
)
from tidings.registry.rules.credentials import sealed

OLD, NEW = (new_key(SigningVersion.V1, lambda n, fill=fill: fill * n) for fill in (b"o", b"n"))


def token_answer(token: str, **members: object) -> Answer:
    return Answer(200, {"content-type": "application/json"}, json.dumps({"access_token": token, **members}).encode())


def in_turn(*tokens: str, **members: object) -> list[Answer]:
    return [token_answer(token, **members) for token in tokens]


def only(*tokens: str) -> Any:
    """An endpoint that takes these tokens only."""
    wanted = {f"Bearer {token}" for token in tokens}
    return lambda arrival: Answer(200 if arrival.headers.get("authorization") in wanted else 401)


def authorizations(receiver: Receiver) -> list[str | None]:
    return [arrival.headers.get("authorization") for arrival in receiver.arrivals]


def form_of(arrival: Arrival) -> dict[str, str]:
    from urllib.parse import parse_qsl

    return dict(parse_qsl(arrival.body.decode()))


def test_headers_are_sealed_at_rest_and_plain_at_the_endpoint() -> None:
    with Receiver() as receiver:
        attempts(1, receiver.url, headers={"X-Api": "hush", "Authorization": "Bearer by-hand"})
    (arrival,) = receiver.arrivals
    assert (arrival.headers["x-api"], arrival.headers["authorization"]) == ("hush", "Bearer by-hand")


def test_basic_goes_as_a_header_and_beats_one_given_by_hand() -> None:
    with Receiver() as receiver:
        attempts(1, receiver.url, headers={"authorization": "x"}, credential=Basic(user="ü", password="p:ä"))
    assert authorizations(receiver) == [f"Basic {base64.b64encode('ü:p:ä'.encode()).decode()}"]


@pytest.mark.parametrize(
    ("kind", "sent"), [("Bearer", "Bearer abc"), ("bearer", "Bearer abc"), ("BEARER", "Bearer abc"), ("DPoP", "DPoP abc")]
)
def test_a_token_goes_under_its_type(kind: str, sent: str) -> None:
    with Receiver() as receiver:
        attempts(1, receiver.url, credential=TokenCredential(token="abc", token_type=kind))
    assert authorizations(receiver) == [sent]


def test_a_token_may_go_in_the_address() -> None:
    """WH-07."""
    with Receiver() as receiver:
        attempts(2, f"{receiver.url}?x=1", credential=TokenCredential(token="a+b", placement=Placement.QUERY))
    for arrival in receiver.arrivals:
        assert arrival.path == "/in?x=1&access_token=a%2Bb"
        assert arrival.headers["cache-control"] == "no-store"
        assert "authorization" not in arrival.headers


def test_an_expired_token_makes_no_request() -> None:
    with Receiver() as receiver:
        (outcome,) = attempts(1, receiver.url, credential=TokenCredential(token="abc", expires=Instant(1)))
    assert (outcome.cause, outcome.status, receiver.arrivals) == (EXPIRED, None, [])


def test_a_secret_of_another_key_makes_no_request() -> None:
    async def act(made: Sending) -> Outcome:
        assert made.target.access is not None
        made.target.access = Access(owner="subscription/other", headers=made.target.access.headers)
        return await made.attempt()

    with Receiver() as receiver:
        outcome = sending(lambda: Sending(receiver.url, headers={"x": "hush"}), act)
    assert (outcome.cause, receiver.arrivals) == (UNREADABLE, [])


def test_the_origin_of_the_handshake_goes_with_every_delivery() -> None:
    """WH-12."""
    with Receiver() as receiver:
        attempts(2, receiver.url, webhook=Handshake(origin="hub.example"))
    assert [arrival.headers["webhook-request-origin"] for arrival in receiver.arrivals] == ["hub.example"] * 2


# ---- OAuth


def test_a_token_is_asked_for_at_the_start_and_used_again() -> None:
    """HER-131, HER-132."""
    with Receiver(in_turn("t1")) as login, Receiver(only("t1")) as receiver:
        credential = OAuth(provider="login", scope="a b")
        outcomes = attempts(3, receiver.url, credential=credential, provider=a_provider(login.url))
    assert [outcome.status for outcome in outcomes] == [200] * 3
    (asked,) = login.arrivals
    assert (asked.method, asked.headers["content-type"]) == ("POST", "application/x-www-form-urlencoded")
    assert form_of(asked) == {
        "grant_type": "client_credentials",
        "client_id": "hub",
        "client_secret": "shared-hush",
        "scope": "a b",
    }


def test_the_password_grant_sends_everything_in_one_request() -> None:
    """HER-T28."""
    credential = OAuth(provider="login", grant=GrantType.PASSWORD, user="u", password="p&=")
    with Receiver(in_turn("t1")) as login, Receiver(only("t1")) as receiver:
        attempts(1, receiver.url, credential=credential, provider=a_provider(login.url))
    assert form_of(login.arrivals[0]) == {
        "grant_type": "password",
        "client_id": "hub",
        "client_secret": "shared-hush",
        "username": "u",
        "password": "p&=",
    }


def test_parameters_may_go_in_the_address() -> None:
    with Receiver(in_turn("t1")) as login, Receiver() as receiver:
        provider = a_provider(f"{login.url}?x=1", parameters_in_query=True)
        attempts(1, receiver.url, credential=OAuth(provider="login"), provider=provider)
    assert login.arrivals[0].path == "/in?x=1&grant_type=client_credentials&client_id=hub&client_secret=shared-hush"
    assert login.arrivals[0].body == b""


def test_a_refused_token_is_replaced_and_the_event_sent_again_at_once() -> None:
    """HER-130, HER-T26."""
    with Receiver(in_turn("t1", "t2")) as login, Receiver() as receiver:
        receiver.script = lambda arrival: Answer(200 if len(receiver.arrivals) == 1 else only("t2")(arrival).status)
        provider = a_provider(login.url, first_delay=60.0)
        outcomes = attempts(2, receiver.url, credential=OAuth(provider="login"), provider=provider)
    assert [outcome.status for outcome in outcomes] == [200, 200]
    assert authorizations(receiver) == ["Bearer t1", "Bearer t1", "Bearer t2"]
    assert len(login.arrivals) == 2, "the success of the first delivery let the second token be asked for at once"


UNUSABLE = [
    Answer(500),
    Answer(201, {}, b'{"access_token":"t"}'),
    Answer(200, {}, b"{}"),
    Answer(200, {}, b"no json"),
    Answer(200, {}, b'{"access_token":"a\\r\\nhost: b"}'),
    Answer(drop=True),
]


@pytest.mark.parametrize("answer", UNUSABLE)
def test_only_200_with_an_access_token_counts(answer: Answer) -> None:
    """HER-133: the request goes without a token, and its 401 is tried again later whatever is thought of 4xx."""
    with Receiver([answer]) as login, Receiver(only("t1")) as receiver:
        (outcome,) = attempts(1, receiver.url, credential=OAuth(provider="login"), provider=a_provider(login.url))
    assert (outcome.status, outcome.cause) == (None, REFUSED)
    assert authorizations(receiver) == [None]


def test_tokens_are_asked_for_at_growing_gaps_until_the_endpoint_is_content() -> None:
    """HER-135, HER-T27, under a clock of our own."""

    async def act(made: Sending) -> list[int]:
        asked = []
        for _ in range(40):
            await made.attempt()
            asked.append(len(login.arrivals))
            clock.advance(0.1)
        receiver.script = lambda arrival: Answer(200)
        await made.attempt()
        receiver.script = lambda arrival: Answer(401)
        await made.attempt()
        asked.append(len(login.arrivals))
        return asked

    clock = ManualClock()
    with Receiver(in_turn(*(f"t{n}" for n in range(50)))) as login, Receiver([Answer(401)]) as receiver:
        provider = a_provider(login.url, first_delay=0.1, longest_delay=0.8)
        asked = sending(lambda: Sending(receiver.url, credential=OAuth(provider="login"), provider=provider, clock=clock), act)
    moments = [n for n in range(1, 40) if asked[n] > asked[n - 1]]
    gaps = [later - earlier for earlier, later in pairwise(moments)]
    assert gaps[:3] == [2, 4, 8] and set(gaps[3:]) == {8}, "100, 200, 400 ms, then 800 ms for ever"
    assert asked[-1] == asked[-2] + 1


def test_concurrent_deliveries_share_one_token_request() -> None:
    import asyncio

    async def act(made: Sending) -> list[Outcome]:
        return list(await asyncio.gather(*(made.attempt() for _ in range(20))))

    with Receiver(in_turn("t1", "t2")) as login, Receiver(only("t1")) as receiver:
        provider = a_provider(login.url)
        outcomes = sending(lambda: Sending(receiver.url, credential=OAuth(provider="login"), provider=provider), act)
    assert ([outcome.status for outcome in outcomes], len(login.arrivals)) == ([200] * 20, 1)


def test_a_token_is_fetched_anew_when_its_life_is_over() -> None:
    async def act(made: Sending) -> None:
        await made.attempt()
        clock.advance(100)
        await made.attempt()

    clock = ManualClock()
    with Receiver(in_turn("t1", "t2", expires_in=90)) as login, Receiver() as receiver:
        provider = a_provider(login.url)
        sending(lambda: Sending(receiver.url, credential=OAuth(provider="login"), provider=provider, clock=clock), act)
    assert authorizations(receiver) == ["Bearer t1", "Bearer t2"]


def test_a_changed_provider_holds_for_the_next_request_and_a_missing_one_is_a_cause() -> None:
    """HER-134."""

    async def act(made: Sending) -> list[Outcome]:
        first = await made.attempt()
        made.offer(a_provider(second.url))
        later = await made.attempt()
        made.offer(None)
        return [first, later, await made.attempt()]

    with Receiver(in_turn("t1", expires_in=0)) as login, Receiver(in_turn("t2")) as second, Receiver() as receiver:
        provider = a_provider(login.url, first_delay=0.0)
        outcomes = sending(lambda: Sending(receiver.url, credential=OAuth(provider="login"), provider=provider), act)
    assert [outcome.status for outcome in outcomes] == [200, 200, 200], "what is good needs no provider"
    with Receiver() as receiver:
        (outcome,) = attempts(1, receiver.url, credential=OAuth(provider="login"))
    assert (outcome.cause, receiver.arrivals) == (NO_PROVIDER, [])


# ---- refresh tokens


def refreshing(login: Receiver, expires_in: float) -> tuple[ManualClock, TokenCredential]:
    clock = ManualClock()
    expires = Instant(clock.now() + round(expires_in * SECOND))
    return clock, TokenCredential(token="t0", expires=expires, refresh="r0", refresh_at=login.url)


def test_a_token_is_refreshed_a_minute_before_it_expires() -> None:
    """SUB-15."""

    async def act(made: Sending) -> None:
        await made.attempt()
        clock.advance(2)
        await made.attempt()
        clock.advance(3600)
        await made.attempt()

    with Receiver(in_turn("t1", "t2", expires_in=600, refresh_token="r1")) as login, Receiver() as receiver:
        clock, credential = refreshing(login, EARLY + 1)
        sending(lambda: Sending(receiver.url, credential=credential, clock=clock), act)
    assert authorizations(receiver) == ["Bearer t0", "Bearer t1", "Bearer t2"]
    assert [form_of(asked) for asked in login.arrivals] == [
        {"grant_type": "refresh_token", "refresh_token": "r0"},
        {"grant_type": "refresh_token", "refresh_token": "r1"},
    ]


def test_a_token_is_refreshed_once_when_it_is_refused() -> None:
    with Receiver(in_turn("t1")) as login, Receiver(only("t1")) as receiver:
        _, credential = refreshing(login, 3600)
        outcomes = attempts(2, receiver.url, credential=credential, clock=ManualClock())
    assert [outcome.status for outcome in outcomes] == [200, 200]
    assert authorizations(receiver) == ["Bearer t0", "Bearer t1", "Bearer t1"]


def test_what_is_expired_and_cannot_be_refreshed_makes_no_request() -> None:
    with Receiver([Answer(400)]) as login, Receiver() as receiver:
        clock, credential = refreshing(login, -1)
        (outcome,) = attempts(1, receiver.url, credential=credential, clock=clock)
    assert (outcome.cause, receiver.arrivals, len(login.arrivals)) == (EXPIRED, [], 1)


def test_token_requests_go_through_the_guard() -> None:
    with Receiver() as receiver:
        provider = a_provider("http://10.0.0.1:9/token")
        (outcome,) = attempts(1, receiver.url, credential=OAuth(provider="login"), provider=provider)
    assert outcome.status == 200
    assert authorizations(receiver) == [None], "nothing was asked for, so nothing was got"


# ---- the hub's own token


def test_the_gateway_token_says_what_it_should_and_checks_with_the_shown_key() -> None:
    """HOR-110, HOR-111, HOR-T40."""
    credential = GatewayToken(request_path="/horizon-aws/callback/v1", publisher="shop", subscriber="billing")
    clock = ManualClock()
    with Receiver() as receiver:
        attempts(2, receiver.url, credential=credential, clock=clock)
    first, second = authorizations(receiver)
    assert first == second and first is not None
    token = first.removeprefix("Bearer ")
    (shown,) = GATEWAY.jwks["keys"]
    assert shown["kid"] == jwt.get_unverified_header(token)["kid"] and "d" not in shown
    claims = jwt.decode(token, jwt.PyJWK(shown), algorithms=["RS256"], options={"verify_exp": False, "verify_iat": False})
    now = clock.now() // SECOND
    assert claims == {
        "iss": "tidings",
        "iat": now,
        "exp": now + 300,
        "clientId": "eventstore",
        "requestPath": "/horizon-aws/callback/v1",
        "publisherId": "shop",
        "subscriberId": "billing",
    }


def test_issuer_and_client_may_depend_on_the_environment() -> None:
    clients = (GatewayClientSettings("play", "gateway"),)
    settings = replace(load(environ={}).gateway, issuer="https://hub/{environment}", environment="prod", clients=clients)
    gateway = Gateway(GATEWAY, settings, ManualClock())

    async def said(environment: str, **members: str) -> tuple[str, str]:
        credential = GatewayToken(request_path="/x", publisher="a", subscriber="b", environment=environment, **members)
        claims = jwt.decode(await gateway.token(credential), options={"verify_signature": False})
        return claims["iss"], claims["clientId"]

    async def act() -> None:
        assert await said("play") == ("https://hub/play", "gateway")
        assert await said("test") == ("https://hub/test", "eventstore")
        assert await said("") == ("https://hub/prod", "eventstore")
        assert await said("play", client="mine") == ("https://hub/play", "mine")

    asyncio.run(act())


def test_a_gateway_token_is_made_anew_before_it_expires() -> None:
    async def act(made: Sending) -> None:
        await made.attempt()
        clock.advance(250)
        await made.attempt()

    clock = ManualClock()
    credential = GatewayToken(request_path="/x", publisher="a", subscriber="b", client="gateway")
    with Receiver() as receiver:
        sending(lambda: Sending(receiver.url, credential=credential, clock=clock), act)
    assert len(set(authorizations(receiver))) == 2


# ---- signatures


def test_the_library_of_standard_webhooks_verifies_a_hundred_deliveries() -> None:
    """CT-23."""
    with Receiver() as receiver:
        attempts(100, receiver.url, signing=(NEW,))
    for arrival in receiver.arrivals:
        Webhook(NEW.secret).verify(arrival.body.decode(), arrival.headers)
        verify(arrival.body, arrival.headers, NEW.secret)
        assert arrival.headers["webhook-id"] == message_id(DELIVERY_ID)


def test_both_keys_sign_during_the_grace_and_only_the_new_one_after_it() -> None:
    """SW-09."""
    clock = ManualClock()
    keys = rotated([OLD], NEW, clock.now(), Instant(clock.now() + 100 * SECOND))

    async def act(made: Sending) -> None:
        await made.attempt()
        clock.advance(101)
        await made.attempt()

    with Receiver() as receiver:
        sending(lambda: Sending(receiver.url, signing=keys, clock=clock), act)
    during, after = receiver.arrivals
    for key in (OLD, NEW):
        verify(during.body, during.headers, key.secret, now=int(during.headers["webhook-timestamp"]))
    verify(after.body, after.headers, NEW.secret, now=int(after.headers["webhook-timestamp"]))
    with pytest.raises(NotVerified):
        verify(after.body, after.headers, OLD.secret, now=int(after.headers["webhook-timestamp"]))


def test_public_keys_verify_too() -> None:
    pair = new_key(SigningVersion.V1A, lambda n: b"p" * n)
    with Receiver() as receiver:
        attempts(1, receiver.url, signing=(pair,))
    verify(receiver.arrivals[0].body, receiver.arrivals[0].headers, pair.public)


def test_each_attempt_has_a_new_time_and_the_same_id() -> None:
    clock = ManualClock()

    async def act(made: Sending) -> None:
        for _ in range(2):
            await made.attempt()
            clock.advance(7)

    with Receiver([Answer(500)]) as receiver:
        sending(lambda: Sending(receiver.url, signing=(NEW,), clock=clock), act)
    first, second = (arrival.headers for arrival in receiver.arrivals)
    assert first["webhook-id"] == second["webhook-id"]
    assert int(second["webhook-timestamp"]) - int(first["webhook-timestamp"]) == 7


def test_message_ids_differ_and_have_no_dot() -> None:
    found = {message_id(f"5bd0eeb4-61b7-8abf-9e09-f5e4c1ee{n:04x}") for n in range(1000)}
    assert len(found) == 1000
    assert all(one.startswith("msg_") and "." not in one and len(one) == 26 for one in found)


@pytest.mark.parametrize(
    "value",
    [TokenCredential(token="hush"), Basic(user="u", password="hush")],
)
def test_what_is_kept_in_memory_does_not_print_its_secrets(value: Credential) -> None:
    made = Sending("http://127.0.0.1:1/", credential=value, signing=(NEW,), headers={"x": "hush"})
    assert "hush" not in repr(made.target.access) and NEW.secret not in repr(made.target.access)
    assert BOX.open("subscription/billing/headers/x", made.subscription.delivery.headers["x"]) == "hush"  # type: ignore[union-attr]


class Asked:
    """An exchange whose answers are given by hand; `at` are the times it was asked."""

    def __init__(self, clock: ManualClock, *statuses: int | None) -> None:
        self._clock = clock
        self._statuses = list(statuses)
        self.asks: list[ExchangeRequest] = []

    async def __call__(self, ask: ExchangeRequest) -> Reply:
        self.asks.append(ask)
        status = self._statuses.pop(0) if len(self._statuses) > 1 else self._statuses[0]
        return Reply(status=status, cause="" if status else "timeout", body=b'{"access_token":"t"}')


@pytest.mark.parametrize(("status", "asked"), [(503, 1), (None, 1), (429, 1), (400, 2), (401, 2)])
def test_a_provider_in_trouble_is_left_alone_by_all_its_subscriptions(status: int | None, asked: int) -> None:
    """One that refuses a subscription may well have a token for the next one."""
    clock = ManualClock()
    exchange = Asked(clock, status)
    provider = sealed(a_provider("https://login.example/token", first_delay=1.0, longest_delay=8.0), BOX.seal)
    gateway = Gateway(GATEWAY, load(environ={}).gateway, clock)
    held = CredentialCache(BOX, exchange, lambda name: provider, gateway, clock)
    first, second = (Access(owner=f"subscription/{n}", credential=OAuth(provider="login")) for n in "ab")

    async def act() -> None:
        for access in (first, second):
            await held.headers_for(access)

    asyncio.run(act())
    assert len(exchange.asks) == asked
    clock.advance(1.0)
    asyncio.run(act())
    assert len(exchange.asks) == (2 if asked == 1 else 4), "after the delay the first who comes asks again"


def test_a_provider_that_stays_silent_is_given_up_before_its_time() -> None:
    with Receiver([Answer(hang=True)]) as login, Receiver() as receiver:
        provider = a_provider(login.url, request_timeout=30.0, socket_timeout=0.2)
        (outcome,) = attempts(1, receiver.url, provider=provider, credential=OAuth(provider="login"))
    assert (outcome.status, len(login.arrivals), authorizations(receiver)) == (200, 1, [None])
    assert outcome.duration < 20


def test_the_loop_goes_on_while_the_hubs_key_is_made() -> None:
    """Making an RSA key takes a good part of a second; other deliveries must not wait for it."""
    begun, done = threading.Event(), threading.Event()

    class Slow(OneKey):
        def pair(self, known: Pair | None = None) -> Pair:
            begun.set()
            assert done.wait(20)
            return super().pair(known)

    gateway = Gateway(GatewayKey(Slow()), load(environ={}).gateway, ManualClock())

    async def act() -> set[str]:
        tokens = [
            asyncio.create_task(gateway.token(GatewayToken(request_path="/in", publisher="p", subscriber="s")))
            for _ in range(20)
        ]
        await asyncio.to_thread(begun.wait, 20)
        done.set()
        return set(await asyncio.gather(*tokens))

    assert len(asyncio.run(act())) == 1


def test_headers_of_the_hub_that_were_stored_before_they_were_refused_are_not_sent() -> None:
    with Receiver() as receiver:
        attempts(1, receiver.url, headers={"Tidings-Delivery-Id": "forged", "Host": "elsewhere", "X-Mine": "1"})
    (arrival,) = receiver.arrivals
    assert (arrival.headers["tidings-delivery-id"], arrival.headers["x-mine"]) == (DELIVERY_ID, "1")
    assert arrival.headers["host"] == f"127.0.0.1:{receiver.port}"
