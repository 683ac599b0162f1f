"""The Credentials of a deliver worker: secrets opened once, tokens asked for and kept in memory, one per subscription."""

from __future__ import annotations

import asyncio
import base64
import logging
import math
from collections.abc import Callable
from typing import TypeAlias, assert_never

from tidings.access.gateway_tokens import GatewayKey
from tidings.access.secret_box import Box, Unreadable
from tidings.clock import SECOND, Clock
from tidings.config import GatewaySettings
from tidings.delivery.push.egress.exchange import Exchange, run
from tidings.delivery.push.request import oauth
from tidings.delivery.push.request.credentials import EXPIRED, NO_PROVIDER, REFUSED, UNREADABLE, Access, Failure, Shown
from tidings.errors import Unavailable
from tidings.registry.credentials import Basic, Credential, GatewayToken, GrantType, OAuth, Placement, TokenCredential
from tidings.registry.model import Provider
from tidings.registry.rules.credentials import secret_place

logger = logging.getLogger("tidings.delivery")

EARLY = 60.0
"""Seconds before its end at which a token is fetched anew (SUB-15)."""

HELD = 20_000
"""Subscriptions whose tokens are kept; the one that was held first goes first."""

Claims: TypeAlias = tuple[str, str, str, str, str]
"""Issuer, client, request path, publisher and subscriber of a token of the hub."""

Providers = Callable[[str], Provider | None]
"""The provider of a name that is in force now (HER-134)."""


class Secrets:
    """The secrets of one subscription, opened."""

    def __init__(self, box: Box, owner: str) -> None:
        self._box = box
        self._owner = owner

    def open(self, text: str, *path: str) -> str:
        """Raises Unreadable."""
        return self._box.open(secret_place(self._owner, *path), text)


class HeldToken:
    """A token that is fetched: held until shortly before its end, asked for again at the pace that its provider wants."""

    def __init__(self) -> None:
        self.token = ""
        self.ends: float | None = None
        self.refresh = ""
        self.pace = oauth.TokenPace()
        self.asking = asyncio.Lock()

    def good(self, now: float, early: float = 0.0) -> bool:
        return bool(self.token) and (self.ends is None or now < self.ends - early)


class CredentialCache:
    """The Credentials. One event loop."""

    def __init__(self, box: Box, exchange: Exchange, providers: Providers, gateway: Gateway, clock: Clock) -> None:
        self._box = box
        self._exchange = exchange
        self._providers = providers
        self._gateway = gateway
        self._clock = clock
        self._tokens: dict[str, tuple[Credential, HeldToken]] = {}
        self._troubled: dict[str, oauth.TokenPace] = {}

    async def headers_for(self, access: Access) -> Shown | Failure:
        """What to show with the next request."""
        secrets = Secrets(self._box, access.owner)
        try:
            return self._with_static(access, secrets, await self._shown(access, secrets))
        except Unreadable:
            return Failure(UNREADABLE)

    async def renewed(self, access: Access, refused: Shown) -> Shown | Failure | None:
        """A new token in the place of one that was refused; None: this kind has no other."""
        credential, secrets = access.credential, Secrets(self._box, access.owner)
        try:
            match credential:
                case OAuth():
                    held = self._held(access, credential)
                    await self._fetch_oauth(credential, secrets, held, refused=_bearer_in(refused))
                case TokenCredential(refresh=refresh) if refresh:
                    held = self._held(access, credential)
                    await self._fetch_refresh(credential, secrets, held, refused=_bearer_in(refused))
                case _:
                    return None
            if not held.token or held.token == _bearer_in(refused):
                return Failure(REFUSED)
            return self._with_static(access, secrets, _bearer(credential, held.token))
        except Unreadable:
            return Failure(UNREADABLE)

    def accepted(self, access: Access) -> None:
        """The endpoint is content: the next token may be asked for at once (HER-135)."""
        known = self._tokens.get(access.owner)
        if known is not None and known[1].pace.delay:
            known[1].pace = oauth.TokenPace()

    def _with_static(self, access: Access, secrets: Secrets, shown: Shown | Failure) -> Shown | Failure:
        """A credential beats an Authorization header that was given by hand (SUB-16)."""
        if isinstance(shown, Failure):
            return shown
        usual = {name: secrets.open(value, "headers", name) for name, value in access.headers.items()}
        origin = {"webhook-request-origin": access.origin} if access.origin else {}
        return Shown({**origin, **shown.headers}, shown.query, usual)

    async def _shown(self, access: Access, secrets: Secrets) -> Shown | Failure:
        credential = access.credential
        match credential:
            case None:
                return Shown({})
            case Basic():
                return _basic(credential.user, secrets.open(credential.password, "credential", "password"))
            case TokenCredential():
                return await self._shown_token(access, credential, secrets)
            case OAuth():
                return await self._shown_oauth(access, credential, secrets)
            case GatewayToken():
                return await self._shown_gateway(credential)
            case _:
                assert_never(credential)

    async def _shown_gateway(self, credential: GatewayToken) -> Shown | Failure:
        try:
            return Shown({"authorization": f"Bearer {await self._gateway.token(credential)}"})
        except Unavailable as error:
            logger.warning("%s", error)
            return Failure(UNREADABLE)

    async def _shown_token(self, access: Access, credential: TokenCredential, secrets: Secrets) -> Shown | Failure:
        if not credential.refresh:
            if credential.expires is not None and self._now() >= credential.expires / SECOND:
                return Failure(EXPIRED)
            return _bearer(credential, secrets.open(credential.token, "credential", "token"))
        held = self._held(access, credential)
        if not held.token:
            held.token = secrets.open(credential.token, "credential", "token")
            held.ends = None if credential.expires is None else credential.expires / SECOND
        if not held.good(self._now(), EARLY):
            await self._fetch_refresh(credential, secrets, held, refused=held.token)
        return _bearer(credential, held.token) if held.good(self._now()) else Failure(EXPIRED)

    async def _shown_oauth(self, access: Access, credential: OAuth, secrets: Secrets) -> Shown | Failure:
        held = self._held(access, credential)
        if not held.good(self._now()):
            failure = await self._fetch_oauth(credential, secrets, held, refused=held.token)
            if failure is not None:
                return failure
        # Without a token the request goes out all the same: perhaps none is wanted, else a 401 asks for one (HER-131).
        return _bearer(credential, held.token) if held.good(self._now()) else Shown({})

    async def _fetch_oauth(self, credential: OAuth, secrets: Secrets, held: HeldToken, refused: str) -> Failure | None:
        provider = self._providers(credential.provider)
        if provider is None:
            return Failure(NO_PROVIDER)
        hidden = Secrets(self._box, f"provider/{provider.name}").open(provider.client_secret, "client_secret")
        if credential.grant is GrantType.PASSWORD:
            word = secrets.open(credential.password, "credential", "password")
            parameters = oauth.password(provider.client_id, hidden, credential.user, word, credential.scope)
        else:
            parameters = oauth.client_credentials(provider.client_id, hidden, credential.scope)
        times = (provider.request_timeout, provider.socket_timeout or math.inf)
        grant = oauth.Grant(provider.token_endpoint, parameters, provider.parameters_in_query, *times)
        await self._ask(held, grant, refused, (provider.first_delay, provider.longest_delay))
        return None

    async def _fetch_refresh(self, credential: TokenCredential, secrets: Secrets, held: HeldToken, refused: str) -> None:
        hidden = held.refresh or secrets.open(credential.refresh, "credential", "refresh")
        await self._ask(held, oauth.Grant(credential.refresh_at, oauth.refresh(hidden)), refused, (1.0, EARLY))

    async def _ask(self, held: HeldToken, grant: oauth.Grant, refused: str, delays: tuple[float, float]) -> None:
        """Ask for a token unless somebody else just got one, or it is too early. Requests of one subscription share the answer.

        A provider in trouble is left alone by all subscriptions together, not by each at its own pace.
        """
        async with held.asking:
            now, trouble = self._clock.monotonic(), self._troubled.get(grant.url, oauth.TokenPace())
            if held.token != refused or now < max(held.pace.due, trouble.due):
                return
            held.pace = held.pace.asked(now, *delays)
            issued = await run(oauth.asking(grant), self._exchange)
            self._note(grant.url, issued, trouble.asked(self._clock.monotonic(), *delays))
            if isinstance(issued, oauth.Issued):
                held.token, held.refresh = issued.token, issued.refresh or held.refresh
                held.ends = None if issued.life is None else self._now() + issued.life

    def _note(self, url: str, issued: oauth.Issued | oauth.NotIssued, trouble: oauth.TokenPace) -> None:
        """How the provider at this address is doing."""
        if isinstance(issued, oauth.NotIssued) and issued.troubled:
            self._troubled[url] = trouble
        else:
            self._troubled.pop(url, None)

    def _held(self, access: Access, credential: Credential) -> HeldToken:
        known = self._tokens.get(access.owner)
        if known is not None and known[0] == credential:
            return known[1]
        self._tokens.pop(access.owner, None)
        while len(self._tokens) >= HELD:
            del self._tokens[next(iter(self._tokens))]
        held = HeldToken()
        self._tokens[access.owner] = (credential, held)
        return held

    def _now(self) -> float:
        return self._clock.now() / SECOND


class Gateway:
    """The hub's own tokens, each used again for most of its life."""

    def __init__(self, key: GatewayKey, settings: GatewaySettings, clock: Clock) -> None:
        self._key = key
        self._settings = settings
        self._clock = clock
        self._made: dict[Claims, tuple[str, float]] = {}
        self._signing = asyncio.Lock()

    async def token(self, credential: GatewayToken) -> str:
        """A token that is good for at least a fifth of its life (HOR-110). Raises Unavailable."""
        now, life = self._clock.now() / SECOND, self._settings.token_life
        claims = self._claims(credential)
        if (held := self._held(claims, now)) is not None:
            return held
        async with self._signing:
            # Whoever waited here may find it done.
            token = self._held(claims, now) or await self._signed(claims, now)
            if len(self._made) >= HELD:
                self._made.clear()
            self._made.setdefault(claims, (token, now + life))
        return token

    def _claims(self, credential: GatewayToken) -> Claims:
        environment = credential.environment or self._settings.environment
        issuer, client = self._settings.issuer_in(environment), credential.client or self._settings.client_in(environment)
        return issuer, client, credential.request_path, credential.publisher, credential.subscriber

    def _held(self, claims: Claims, now: float) -> str | None:
        token, ends = self._made.get(claims, ("", 0.0))
        if now < ends - self._settings.token_life / 5:
            return token
        self._made.pop(claims, None)
        return None

    async def _signed(self, claims: Claims, now: float) -> str:
        names = ("iss", "clientId", "requestPath", "publisherId", "subscriberId")
        times = {"iat": int(now), "exp": int(now + self._settings.token_life)}
        signed = {**times, **dict(zip(names, claims, strict=True))}
        # Making the key takes a while, and signing takes longer than an attempt may hold up the others.
        return await asyncio.to_thread(self._key.signed, signed)


def _basic(user: str, password: str) -> Shown:
    pair = base64.b64encode(f"{user}:{password}".encode()).decode()
    return Shown({"authorization": f"Basic {pair}"})


def _bearer(credential: TokenCredential | OAuth, token: str) -> Shown:
    if isinstance(credential, TokenCredential) and credential.placement is Placement.QUERY:
        return Shown({"cache-control": "no-store"}, (("access_token", token),))
    kind = credential.token_type if isinstance(credential, TokenCredential) else "Bearer"
    return Shown({"authorization": f"{'Bearer' if kind.lower() == 'bearer' else kind} {token}"})


def _bearer_in(shown: Shown) -> str:
    """The token that was shown; "" when none was."""
    if shown.query:
        return shown.query[0][1]
    return shown.headers.get("authorization", "").partition(" ")[2]
