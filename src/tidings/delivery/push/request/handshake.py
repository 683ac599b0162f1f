"""The webhook handshake (WH-08…15): may we send, and how often? A protocol without I/O; `exchange.run` drives it.

the target answers OPTIONS with                         means
Allowed-Origin = ours or `*`, any status but 3xx        consent; Allowed-Rate says how many a minute
Allowed-Origin = another, or a rate that is no rate     refusal, under every policy
2xx without it, where a callback was offered            consent may come later, by the callback
anything else, no answer                                no support: the policy decides
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from enum import StrEnum
from typing import TypeAlias

import msgspec

from tidings.delivery.push.egress.exchange import ExchangeRequest, Reply

TIMEOUT = 10.0
UNVERIFIED_RATE = 6
LARGEST_RATE = 6_000_000

ORIGIN, RATE, CALLBACK = "webhook-request-origin", "webhook-request-rate", "webhook-request-callback"
ALLOWED_ORIGIN, ALLOWED_RATE = "webhook-allowed-origin", "webhook-allowed-rate"


class NoSupport(StrEnum):
    """What to do with a target that knows no handshake (WH-14)."""

    REQUIRE = "require"
    WARN = "warn"
    LEGACY_POST = "legacy-post"


class HandshakeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of a target. `rate` in requests a minute; `callback` is where it may consent later, "" to offer none.

    `probe` is the test event for targets without handshake: headers and body of a POST.
    """

    sink: str
    origin: str
    rate: int | None = None
    callback: str = ""
    policy: NoSupport = NoSupport.REQUIRE
    probe: tuple[Mapping[str, str], bytes] = ({}, b"")


class Agreed(msgspec.Struct, frozen=True):
    """The target consents. `rate` None: as fast as we like."""

    rate: int | None = None


class Later(msgspec.Struct, frozen=True):
    """The target may consent by the callback; until then nothing is sent."""


class Unverified(msgspec.Struct, frozen=True):
    """Nobody consented and nobody refused; it is tried slowly."""

    reason: str
    rate: int = UNVERIFIED_RATE


class ConsentRefused(msgspec.Struct, frozen=True):
    """Nothing may be sent, and why."""

    reason: str


class NotSupported(msgspec.Struct, frozen=True):
    """The target said nothing of consent, and what it said instead."""

    reason: str


Result: TypeAlias = Agreed | Later | Unverified | ConsentRefused


def shaking(wish: HandshakeRequest) -> Generator[ExchangeRequest, Reply, Result]:
    """The protocol."""
    reply = yield ExchangeRequest(method="OPTIONS", url=wish.sink, headers=_headers(wish), timeout=TIMEOUT)
    verdict = judged(reply, wish)
    if not isinstance(verdict, NotSupported):
        return verdict
    match wish.policy:
        case NoSupport.REQUIRE:
            return ConsentRefused(verdict.reason)
        case NoSupport.WARN:
            return Unverified(verdict.reason)
        case NoSupport.LEGACY_POST:
            headers, body = wish.probe
            posted = yield ExchangeRequest(method="POST", url=wish.sink, headers=headers, body=body, timeout=TIMEOUT)
            if _class_of(posted) == 2:
                return Agreed(wish.rate)
            return ConsentRefused(f"{verdict.reason}, and it did not take a test event ({posted.reason})")


def judged(reply: Reply, wish: HandshakeRequest) -> Agreed | Later | ConsentRefused | NotSupported:
    """What an answer to OPTIONS means."""
    if reply.cause == "ssrf-blocked":
        return ConsentRefused("its address is not allowed")
    if reply.status is None:
        return NotSupported(f"it could not be asked ({reply.cause})")
    if _class_of(reply) == 3:
        return NotSupported(f"it redirects ({reply.reason}), which is not followed")
    origin = reply.headers.get(ALLOWED_ORIGIN, "").strip()
    if not origin:
        return Later() if wish.callback and _class_of(reply) == 2 else NotSupported(f"it did not consent ({reply.reason})")
    if origin != "*" and origin.lower() != wish.origin.lower():
        return ConsentRefused("it consents to another origin only")
    return allowed_rate(reply.headers, wish.rate)


def allowed_rate(headers: Mapping[str, str], requested: int | None) -> Agreed | ConsentRefused:
    """The rate that comes with a consent (WH-11). Names of headers in lower case."""
    text = headers.get(ALLOWED_RATE, "").strip()
    if not text:
        return Agreed(requested)
    if text == "*":
        return Agreed(None)
    if not (text.isascii() and text.isdigit() and len(text) < 12) or int(text) < 1:
        return ConsentRefused("it allows a rate that is none")
    return Agreed(min(int(text), LARGEST_RATE))


def consent_to(origin: str, origins: tuple[str, ...]) -> Mapping[str, str]:
    """The headers with which we as a target consent to an origin; none unless the operator lists it (WH-16)."""
    if not origin or origin.lower() not in {listed.lower() for listed in origins}:
        return {}
    return {ALLOWED_ORIGIN: origin, ALLOWED_RATE: "*"}


def _headers(wish: HandshakeRequest) -> dict[str, str]:
    headers = {ORIGIN: wish.origin}
    if wish.rate is not None:
        headers[RATE] = str(wish.rate)
    if wish.callback:
        headers[CALLBACK] = wish.callback
    return headers


def _class_of(reply: Reply) -> int:
    return 0 if reply.status is None else reply.status // 100
