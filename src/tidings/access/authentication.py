"""The gate: who is behind a request. Static tokens are known by their SHA-256 only; JWTs by their issuer's keys.

A token that was found good is remembered by its digest for a short time, so that the hot path costs one hash and one look-up.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from tidings.access.issuer_keys import Key, KeyRing, fetch
from tidings.access.jwts import DEFAULT_REALM, Expectations, issuer_in, key_id, verified
from tidings.access.principals import EVERYONE, Principal, Right
from tidings.access.refused_tokens import RefusedTokens
from tidings.access.settings_checks import OPEN, uses_jwt, uses_tokens
from tidings.clock import SECOND, Clock
from tidings.config import AccessSettings, IssuerSettings, TokenSettings
from tidings.errors import Unauthenticated, Unavailable

REMEMBERED = 10_000
REMEMBER_FOR = 60.0
TOKEN_BYTES = 16 << 10

Headers = Iterable[tuple[bytes, bytes]]
"""As ASGI gives them: names in lower case."""

Fetch = Callable[[str], tuple[Key, ...]]

_NOBODY = "nobody knows who asks"
_EXPECTED = "a bearer token in the Authorization header"

log = logging.getLogger("tidings.access")


class _Known(NamedTuple):
    principal: Principal
    until: float


class Authenticator:
    """Tells who asks. For one event loop; `identify_cached` never waits, `identify` may wait for signing keys."""

    def __init__(
        self,
        settings: AccessSettings,
        clock: Clock,
        fetch: Fetch = fetch,
        refused: RefusedTokens | None = None,
        own_realm: str = DEFAULT_REALM,
        divided: tuple[str, ...] = (),
    ) -> None:
        """`own_realm`: another name of the realm `default`. `divided`: see `Principal`."""
        self._refused = refused or RefusedTokens(clock)
        self._open = settings.mode == OPEN
        self._jwt = uses_jwt(settings.mode)
        self._issuers = [_Issuer(one, settings, clock, fetch) for one in _issuers(settings)] if self._jwt else []
        self._table = [_entry(token) for token in settings.tokens] if uses_tokens(settings.mode) else []
        self._clock = clock
        self._own_realm, self._divided = own_realm, divided
        self._known: dict[bytes, _Known] = {}

    def identify_cached(self, headers: Headers) -> Principal | None:
        """The principal, if that can be told at once; None means: ask `identify`."""
        if self._open:
            return EVERYONE
        try:
            token = bearer(headers)
        except Unauthenticated:
            return None
        return None if token is None else self._remembered(_digest(token))

    async def identify(self, headers: Headers, address: str = "") -> Principal:
        """The principal. Raises Unauthenticated, or Unavailable when the signing keys were never to be had.

        A token that is refused is counted and logged with the `address` of the client.
        """
        if self._open:
            return EVERYONE
        try:
            token = bearer(headers)
            if token is not None:
                digest = _digest(token)
                return self._remembered(digest) or self._in_table(digest) or await self._signed(token, digest)
        except Unauthenticated as error:
            self._refused.note(error.what, address)
            raise
        raise Unauthenticated(_NOBODY, expected=_EXPECTED)

    def _remembered(self, digest: bytes) -> Principal | None:
        known = self._known.get(digest)
        if known is None or known.until <= self._clock.monotonic():
            return None
        return known.principal

    def _remember(self, digest: bytes, principal: Principal, seconds: float) -> Principal:
        self._known.pop(digest, None)
        if principal.realm:
            realm = DEFAULT_REALM if principal.realm == self._own_realm else principal.realm
            principal = msgspec.structs.replace(principal, realm=realm, divided=self._divided)
        if len(self._known) >= REMEMBERED:
            del self._known[next(iter(self._known))]
        self._known[digest] = _Known(principal, self._clock.monotonic() + min(seconds, REMEMBER_FOR))
        return principal

    def _in_table(self, digest: bytes) -> Principal | None:
        found = None
        # Every entry is compared, in constant time each: how long it takes says nothing about what is in the table.
        for known, principal in self._table:
            if hmac.compare_digest(known, digest):
                found = principal
        return None if found is None else self._remember(digest, found, REMEMBER_FOR)

    async def _signed(self, token: bytes, digest: bytes) -> Principal:
        if not self._jwt:
            raise Unauthenticated("the token is not known", expected=_EXPECTED)
        text = token.decode("ascii", "replace")
        issuer = self._issuer(text)
        key = await issuer.key(key_id(text))
        now = self._clock.now() / SECOND
        found = verified(text, key, issuer.expected, now)
        return self._remember(digest, found.principal, found.expires - now)

    def _issuer(self, token: str) -> _Issuer:
        """Whose keys to check a token with. With one issuer it is always that one, which then says what is wrong."""
        if len(self._issuers) == 1:
            return self._issuers[0]
        named = issuer_in(token)
        found = next((one for one in self._issuers if one.expected.issuer == named), None)
        if found is None:
            raise Unauthenticated("the token's issuer is not trusted", expected=_EXPECTED)
        return found


class _Issuer:
    """One trusted issuer: what its tokens must say, and its keys."""

    def __init__(self, named: IssuerSettings, settings: AccessSettings, clock: Clock, fetch: Fetch) -> None:
        self.expected = Expectations(
            named.issuer, settings.audience, settings.rights_claim, {one.scope: one.right for one in settings.scopes}
        )
        self._jwks = named.jwks
        self._clock = clock
        self._fetch = fetch
        self._ring = KeyRing()
        self._fetching = asyncio.Lock()

    async def key(self, kid: str | None) -> Key:
        """The key of this id. Raises Unauthenticated or Unavailable."""
        if self._ring.wants_fetch(kid, self._clock.monotonic()):
            async with self._fetching:
                # Whoever waited here may find it done.
                if self._ring.wants_fetch(kid, self._clock.monotonic()):
                    await self._refresh()
        key = self._ring.find(kid)
        if key is None and self._ring.fetched is None:
            raise Unavailable("the signing keys could not be fetched yet", retry_after=5)
        if key is None:
            raise Unauthenticated("the token is signed with a key that its issuer does not show", expected=_EXPECTED)
        return key

    async def _refresh(self) -> None:
        try:
            keys = await asyncio.to_thread(self._fetch, self._jwks)
        except Unavailable as error:
            log.warning("%s", error)
            self._ring = self._ring.failed(self._clock.monotonic())
        else:
            self._ring = self._ring.renewed(keys, self._clock.monotonic())


def address_of(scope: Mapping[str, Any]) -> str:
    """The address that a request came from, as ASGI tells it; empty where it is not known."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def bearer(headers: Headers) -> bytes | None:
    """The token of the Authorization header; None when there is none. Raises Unauthenticated when it cannot be one."""
    for name, value in headers:
        if name == b"authorization":
            scheme, _, token = value.partition(b" ")
            token = token.strip()
            if scheme.lower() != b"bearer" or not token or len(token) > TOKEN_BYTES:
                raise Unauthenticated("the Authorization header holds no token", expected="Bearer and the token")
            return token
    return None


def token_digest(token: str) -> str:
    """What stands in the settings for a token: its SHA-256 in hex."""
    return _digest(token.encode()).hex()


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()


def _entry(token: TokenSettings) -> tuple[bytes, Principal]:
    rights = frozenset(Right(right) for right in token.rights)
    return bytes.fromhex(token.sha256), Principal(token.name, rights, token.topics, token.client_id, token.realm)


def _issuers(settings: AccessSettings) -> Iterator[IssuerSettings]:
    if settings.jwks:
        yield IssuerSettings(settings.issuer, settings.jwks)
    yield from settings.issuers
