"""Webhook handshakes for doors: ask a callback for its consent before it is stored, and take consent that comes later."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from typing import assert_never

import msgspec

from tidings.clock import SECOND, Instant
from tidings.config import Settings
from tidings.delivery.push.egress.address_guard import AddressBlocked, Unresolved, rules_of
from tidings.delivery.push.egress.exchange import GuardedExchange, run
from tidings.delivery.push.egress.urls import RequestUrl
from tidings.delivery.push.request.handshake import (
    Agreed,
    ConsentRefused,
    HandshakeRequest,
    Later,
    NoSupport,
    Unverified,
    allowed_rate,
    shaking,
)
from tidings.doors import registry_changes
from tidings.doors.api_parts import ApiParts
from tidings.errors import HandshakeRefused, Malformed, NotFound, SinkForbidden
from tidings.events.attribute_rules import checked
from tidings.events.http_binding import encode_structured
from tidings.ids import random_id
from tidings.registry.credentials import Consent, Webhook
from tidings.registry.model import Push, Snapshot, Subscription
from tidings.registry.rules.callback_addresses import SinkRules, sink_fault

PATIENCE = 24 * 3600
"""Seconds in which a callback secret is good (WH-13)."""

CONFIRM = "/api/webhooks/confirm/"
"""Where a target consents later; doors may offer another path."""

BY = "webhook"

LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
EVERY_ADDRESS = ("0.0.0.0", "::")


async def check_sink(parts: ApiParts, url: str, rules: SinkRules, *, must_resolve: bool = True) -> None:
    """Refuse an address that this door does not take. Raises Malformed or SinkForbidden; says nothing of addresses (SSRF-09).

    `must_resolve`: a name without an address is refused now; else deliveries try it again and again (SSRF-10).
    """
    reach = parts.reach()
    fault = sink_fault(url, rules, reach.rules.names)
    if fault is not None:
        raise Malformed(fault, at="sink")
    if rules.looked_up:
        host, port = _host_and_port(url)
        try:
            await reach.guard.addresses_of(host, port)
        except AddressBlocked as error:
            raise SinkForbidden(f"callbacks may not go to {host}", at="sink") from error
        except Unresolved as error:
            if not must_resolve:
                return
            raise SinkForbidden(f"{host} cannot be resolved now", at="sink") from error


def warnings_about(parts: ApiParts, subscription: Subscription) -> list[str]:
    """What will keep its deliveries from arriving although it was taken: nothing is looked up here (SSRF-11)."""
    push = subscription.delivery
    if not isinstance(push, Push):
        return []
    try:
        host, port = _host_and_port(push.url)
    except ValueError:
        return []
    found = []
    if rules_of(parts.settings.push, parts.settings.server, parts.settings.access).blocks(host):
        found.append(f"callbacks may not go to {host}: every delivery will fail with ssrf-blocked until push.allow names it")
    if (host, port) in own_places(parts.settings):
        found.append(
            f"{push.url} is an address of this hub itself: what is delivered there is published again, and goes round for ever "
            "where it leads back to the same subscription"
        )
    return found


def own_places(settings: Settings) -> set[tuple[str, int]]:
    """Host and port of every address at which this hub answers, as far as it knows."""
    server = settings.server
    hosts = {server.host, *(LOCAL_NAMES if server.host in (*LOCAL_NAMES, *EVERY_ADDRESS) else ())}
    # The common port, and those that doors have of their own.
    ports = {getattr(getattr(settings, section.name), "port", 0) for section in fields(settings)} - {0}
    places = {(_bracketed(host), port) for host in hosts for port in ports}
    for address in (settings.hub_url, settings.push.callback_url):
        with suppress(ValueError):
            places.add(_host_and_port(address))
    return places


def _host_and_port(url: str) -> tuple[str, int]:
    """As deliveries read the address. Raises ValueError."""
    origin = RequestUrl.parse(url).origin
    return origin.host, origin.port


def _bracketed(host: str) -> str:
    """The host as an address names it."""
    return f"[{host}]" if ":" in host else host


def kept(url: str, policy: NoSupport | None, standing: Subscription | None) -> Webhook | None:
    """What was agreed on before and still holds: consent is for an address (WH-08)."""
    held = standing.delivery if standing is not None else None
    if policy is None or not isinstance(held, Push) or held.url != url or held.webhook is None:
        return None
    return msgspec.structs.replace(held.webhook, policy=policy.value)


async def shaken(parts: ApiParts, wanted: Subscription, policy: NoSupport | None, confirm: str = CONFIRM) -> Subscription:
    """The subscription with what its callback agreed to; asked unless it has agreed before. Raises HandshakeRefused."""
    push = wanted.delivery
    if not isinstance(push, Push) or policy is None or push.webhook is not None:
        return wanted
    return _with(wanted, push, await _agreed(parts, push, policy, confirm))


async def _agreed(parts: ApiParts, push: Push, policy: NoSupport, confirm: str) -> Webhook:
    settings, secret = parts.settings.push, secrets.token_urlsafe(32)
    wish = HandshakeRequest(
        sink=push.url,
        origin=settings.public_dns_name,
        rate=push.rate_per_minute,
        callback=f"{settings.callback_url.rstrip('/')}{confirm}{secret}" if settings.callback_url else "",
        policy=policy,
        probe=_test_event(),
    )
    result = await run(shaking(wish), GuardedExchange(parts.reach().ways))
    webhook = Webhook(origin=wish.origin, policy=policy.value)
    match result:
        case Agreed(rate):
            return msgspec.structs.replace(webhook, rate=rate)
        case Unverified(rate=rate):
            return msgspec.structs.replace(webhook, consent=Consent.UNVERIFIED, rate=rate)
        case Later():
            until = Instant(parts.clock.now() + PATIENCE * SECOND)
            pending = {"consent": Consent.PENDING, "secret_digest": digest(secret), "until": until, "rate": wish.rate}
            return msgspec.structs.replace(webhook, **pending)
        case ConsentRefused(reason):
            raise HandshakeRefused(f"the callback does not want deliveries: {reason}", at="sink")
        case _:
            assert_never(result)


async def confirmed(parts: ApiParts, secret: str, headers: Mapping[str, str]) -> Subscription:
    """Consent came: the secret is used up, deliveries begin. Header names in lower case. Raises NotFound, HandshakeRefused."""
    wanted = digest(secret)
    standing = waiting_for(parts.snapshot, wanted, parts.clock.now())
    push = standing.delivery
    assert isinstance(push, Push) and push.webhook is not None
    agreed = allowed_rate(headers, push.webhook.rate)
    if isinstance(agreed, ConsentRefused):
        raise HandshakeRefused(agreed.reason, at="webhook-allowed-rate")
    webhook = msgspec.structs.replace(push.webhook, consent=Consent.GIVEN, secret_digest="", until=None, rate=agreed.rate)

    def still(now: Snapshot) -> None:
        waiting_for(now, wanted, parts.clock.now())

    (stored,) = await registry_changes.put(parts, [_with(standing, push, webhook)], BY, still)
    assert isinstance(stored, Subscription)
    return stored


def waiting_for(snapshot: Snapshot, wanted: str, now: Instant) -> Subscription:
    """The subscription that waits for the consent with this digest. Raises NotFound: used up, expired and made up look the same."""
    for subscription in snapshot.subscriptions.values():
        push = subscription.delivery
        webhook = push.webhook if isinstance(push, Push) else None
        if webhook is None or webhook.consent is not Consent.PENDING:
            continue
        if secrets.compare_digest(webhook.secret_digest, wanted) and webhook.until is not None and now < webhook.until:
            return subscription
    raise NotFound("nobody waits for this consent")


def digest(secret: str) -> str:
    """What is stored of a callback secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _with(subscription: Subscription, push: Push, webhook: Webhook) -> Subscription:
    return msgspec.structs.replace(subscription, delivery=msgspec.structs.replace(push, webhook=webhook))


def _test_event() -> tuple[Mapping[str, str], bytes]:
    event = checked({"specversion": "1.0", "id": random_id(), "source": "/tidings", "type": "tidings.handshake"}, None)
    headers, body = encode_structured(event)
    return dict(headers), body
