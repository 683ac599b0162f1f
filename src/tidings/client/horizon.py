"""Receiving Horizon callbacks: `verify_horizon_token` makes the six checks that its handbook asks of every consumer (HOR-165)."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from tidings.client.webhooks import NotVerified

CLIENTS = ("eventstore", "gateway")
LEEWAY = 30.0
"""Seconds by which two clocks may differ."""


@dataclass(frozen=True, slots=True)
class ExpectedToken:
    """What a callback's token must say. `zone`: the subscriber's own, where the request path is to be checked as well."""

    issuers: Collection[str]
    publishers: Collection[str]
    subscriber: str
    zone: str | None = None
    clients: Collection[str] = CLIENTS


def verify_horizon_token(
    authorization: str | None, keys: Mapping[str, Any], expected: ExpectedToken, now: float | None = None
) -> Mapping[str, Any]:
    """The claims of a callback's token; raises NotVerified unless issuer, signature, time, client, publisher and subscriber hold.

    `authorization` is the header as it came, None where there is none; `keys` the set of keys (JWKS) that the issuer shows.
    """
    _check(authorization, "there is no token")
    token = (authorization or "").removeprefix("Bearer ").strip()
    claims = _signed(token, keys)
    _check(claims.get("iss") in expected.issuers, "the issuer is not trusted")
    expires = claims.get("exp")
    in_time = isinstance(expires, (int, float)) and (time.time() if now is None else now) < expires + LEEWAY
    _check(in_time, "the token has expired")
    _check(claims.get("clientId") in expected.clients, "the token is of another client")
    if expected.zone is not None:
        path = f"/horizon-{expected.zone.lower()}/callback/v1"
        _check(claims.get("requestPath") == path, "the token is for another path")
    _check(claims.get("publisherId") in expected.publishers, "the publisher is not trusted")
    _check(claims.get("subscriberId") == expected.subscriber, "the token is for another subscriber")
    return claims


def _signed(token: str, keys: Mapping[str, Any]) -> Mapping[str, Any]:
    """The claims, once one of the keys signed them."""
    import jwt

    try:
        kid = jwt.get_unverified_header(token).get("kid")
        key = next((one for one in keys.get("keys", ()) if one.get("kid") == kid), None)
        _check(key is not None and key.get("kty") in ("RSA", "EC", "OKP"), "the key of the token is not known")
        made = jwt.PyJWK(dict(key or {}))
        claims: Mapping[str, Any] = jwt.decode(
            token,
            made,
            algorithms=[made.algorithm_name],
            options={"verify_exp": False, "verify_aud": False, "verify_iat": False, "verify_nbf": False},
        )
    except (jwt.PyJWTError, RecursionError, AttributeError) as error:
        raise NotVerified("the token is not signed by its issuer") from error
    return claims


def _check(holds: object, otherwise: str) -> None:
    if not holds:
        raise NotVerified(otherwise)
