"""The webhook handshake: what an answer means, as a table, and the protocol's turns."""

from __future__ import annotations

import pytest

from tidings.delivery.push.egress.exchange import ExchangeRequest, Reply
from tidings.delivery.push.request.handshake import (
    Agreed,
    ConsentRefused,
    HandshakeRequest,
    Later,
    NoSupport,
    Result,
    Unverified,
    consent_to,
    shaking,
)


def wish(**fields: object) -> HandshakeRequest:
    return HandshakeRequest(**{"sink": "https://a.example/in?x=1", "origin": "Hub.example", **fields})  # type: ignore[arg-type]


def reply(status: int | None = 200, cause: str = "", **headers: str) -> Reply:
    return Reply(status=status, cause=cause, headers={name.replace("_", "-"): value for name, value in headers.items()})


def played(wish: HandshakeRequest, *replies: Reply) -> tuple[Result, list[ExchangeRequest]]:
    """The result, and what was asked on the way."""
    protocol = shaking(wish)
    asked, left = [next(protocol)], list(replies)
    while True:
        try:
            asked.append(protocol.send(left.pop(0)))
        except StopIteration as ended:
            assert not left
            return ended.value, asked


def origin(text: str = "hub.example", **headers: str) -> dict[str, str]:
    return {"webhook_allowed_origin": text, **headers}


def rate(text: str) -> dict[str, str]:
    return origin(webhook_allowed_rate=text)


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        (reply(200, **origin()), Agreed(10)),
        (reply(200, **origin("HUB.EXAMPLE")), Agreed(10)),
        (reply(200, **origin("*")), Agreed(10)),
        (reply(405, **origin()), Agreed(10)),
        (reply(500, **origin("*")), Agreed(10)),
        (reply(200, **rate("60")), Agreed(60)),
        (reply(200, **rate(" 60 ")), Agreed(60)),
        (reply(200, **rate("*")), Agreed(None)),
        (reply(200, **rate("99999999999")), Agreed(6_000_000)),
        (reply(200, **rate("0")), ConsentRefused("it allows a rate that is none")),
        (reply(200, **rate("-1")), ConsentRefused("it allows a rate that is none")),
        (reply(200, **rate("x")), ConsentRefused("it allows a rate that is none")),
        (reply(200, **rate("1.5")), ConsentRefused("it allows a rate that is none")),
        (reply(200, **origin("other.example")), ConsentRefused("it consents to another origin only")),
        (reply(200), ConsentRefused("it did not consent (status-200)")),
        (reply(405), ConsentRefused("it did not consent (status-405)")),
        (reply(302, **origin()), ConsentRefused("it redirects (status-302), which is not followed")),
        (reply(None, "timeout"), ConsentRefused("it could not be asked (timeout)")),
        (reply(None, "tls-failed"), ConsentRefused("it could not be asked (tls-failed)")),
        (reply(None, "ssrf-blocked"), ConsentRefused("its address is not allowed")),
    ],
)
def test_what_an_answer_means(answer: Reply, result: Result) -> None:
    assert played(wish(rate=10), answer)[0] == result


def test_what_is_asked() -> None:
    _, (asked,) = played(wish(rate=10, callback="https://hub.example/confirm/x"), reply())
    assert (asked.method, asked.url, asked.timeout) == ("OPTIONS", "https://a.example/in?x=1", 10.0)
    assert asked.headers == {
        "webhook-request-origin": "Hub.example",
        "webhook-request-rate": "10",
        "webhook-request-callback": "https://hub.example/confirm/x",
    }
    assert played(wish(), reply())[1][0].headers == {"webhook-request-origin": "Hub.example"}


def test_without_a_rate_asked_for_or_given_there_is_no_limit() -> None:
    assert played(wish(), reply(200, **origin()))[0] == Agreed(None)


@pytest.mark.parametrize("answer", [reply(200), reply(404), reply(302), reply(None, "connect-failed")])
def test_warn_takes_whoever_does_not_know_handshakes_slowly(answer: Reply) -> None:
    result, _ = played(wish(policy=NoSupport.WARN), answer)
    assert isinstance(result, Unverified) and result.rate == 6


@pytest.mark.parametrize("policy", list(NoSupport))
@pytest.mark.parametrize(
    "answer", [reply(200, **origin("other.example")), reply(200, **rate("0")), reply(None, "ssrf-blocked")]
)
def test_a_clear_no_is_a_no_under_every_policy(policy: NoSupport, answer: Reply) -> None:
    assert isinstance(played(wish(policy=policy), answer)[0], ConsentRefused)


@pytest.mark.parametrize(
    ("status", "result"), [(200, Agreed), (204, Agreed), (302, ConsentRefused), (404, ConsentRefused), (None, ConsentRefused)]
)
def test_legacy_post_lets_a_test_event_decide(status: int | None, result: type) -> None:
    probed = wish(policy=NoSupport.LEGACY_POST, probe=({"content-type": "x"}, b"event"))
    found, asked = played(probed, reply(405), reply(status))
    assert isinstance(found, result)
    assert (asked[1].method, asked[1].url, asked[1].body) == ("POST", probed.sink, b"event")


def test_a_callback_may_consent_later_but_not_after_an_error() -> None:
    offered = wish(callback="https://hub.example/confirm/x")
    assert played(offered, reply(200))[0] == Later()
    assert played(offered, reply(200, **origin()))[0] == Agreed(None)
    assert isinstance(played(offered, reply(404))[0], ConsentRefused)


@pytest.mark.parametrize(
    ("asking", "consent"), [("a.example", True), ("A.Example", True), ("b.example", False), ("", False), ("*", False)]
)
def test_we_consent_to_listed_origins_only(asking: str, consent: bool) -> None:
    """WH-16."""
    assert bool(consent_to(asking, ("a.example",))) is consent
    assert not consent_to(asking, ())
