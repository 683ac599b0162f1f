"""Attempts that show who they are, by a real sender against real receivers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from tests.access.signing import OneKey
from tests.builders import a_name, a_subscription
from tidings.access.gateway_tokens import GatewayKey
from tidings.access.secret_box import Box
from tidings.access.secrets import Secret
from tidings.clock import Clock, SystemClock
from tidings.config import load
from tidings.delivery.push.egress.address_guard import LOOPBACK, AddressRules, Guard
from tidings.delivery.push.egress.endpoints import Endpoints
from tidings.delivery.push.egress.exchange import GuardedExchange
from tidings.delivery.push.egress.name_lookup import SystemLookup
from tidings.delivery.push.egress.sender import SendTarget
from tidings.delivery.push.policy.decision import Outcome
from tidings.delivery.push.request.credential_cache import CredentialCache, Gateway
from tidings.delivery.push.request.credential_sender import CredentialSender
from tidings.delivery.push.request.credentials import access_of
from tidings.registry.model import Provider, Push, Snapshot, Subscription
from tidings.registry.rules.credentials import provider_of, sealed

KEY = Secret(b"k" * 32)
BOX = Box(KEY)
GATEWAY = GatewayKey(OneKey())
DELIVERY_ID = "5bd0eeb4-61b7-8abf-9e09-f5e4c1ee9a01"
LOCAL = AddressRules(tuple(LOOPBACK))


def a_provider(url: str, **fields: Any) -> Provider:
    plain = {"name": a_name("login"), "client_id": "hub", "client_secret": "shared-hush", "request_timeout": 5.0}
    return Provider(token_endpoint=url, **{**plain, **fields})


class Sending:
    """One subscription that is being sent to."""

    def __init__(self, url: str, *, provider: Provider | None = None, clock: Clock | None = None, **push: Any) -> None:
        self.clock = clock or SystemClock()
        plain = a_subscription("billing", delivery=Push(url=url, **push))
        self.subscription: Subscription = sealed(plain, BOX.seal)
        self.snapshot = Snapshot(revision=1)
        self.offer(provider)
        self._lookup = SystemLookup(2.0, self.clock)
        ways = Endpoints(Guard(LOCAL, self._lookup), self.clock, 2.0)
        gateway = Gateway(GATEWAY, load(environ={}).gateway, self.clock)
        held = CredentialCache(BOX, GuardedExchange(ways), lambda name: provider_of(name, self.snapshot), gateway, self.clock)
        self.sender = CredentialSender(ways, self.clock, held, BOX)
        self.target = SendTarget(url, 5.0, access=access_of(self.subscription))

    def offer(self, provider: Provider | None) -> None:
        """Put this provider into force."""
        hidden = {} if provider is None else {provider.name: sealed(provider, BOX.seal)}
        self.snapshot = Snapshot(revision=self.snapshot.revision + 1, providers=hidden)

    async def attempt(self, body: bytes = b"{}", headers: Mapping[str, str] | None = None) -> Outcome:
        return await self.sender.send(self.target, {"tidings-delivery-id": DELIVERY_ID, **(headers or {})}, body)


def sending(make: Callable[[], Sending], act: Callable[[Sending], Awaitable[Any]]) -> Any:
    """Make it inside a loop, act, close."""

    async def scenario() -> Any:
        made = make()
        try:
            return await act(made)
        finally:
            await made.sender.close()
            made._lookup.close()

    return asyncio.run(scenario())


def attempts(count: int, url: str, **fields: Any) -> list[Outcome]:
    """The outcomes of so many attempts, one after the other."""

    async def act(made: Sending) -> list[Outcome]:
        return [await made.attempt() for _ in range(count)]

    outcomes: list[Outcome] = sending(lambda: Sending(url, **fields), act)
    return outcomes
