"""Signed tokens: a JWT and a key become a principal, or a refusal that says why. No I/O; the time comes in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import jwt
import msgspec

from tidings.access.issuer_keys import ALGORITHMS, Key
from tidings.access.principals import Principal, rights_in
from tidings.errors import Unauthenticated

LEEWAY = 30.0
"""Seconds by which two clocks may differ."""

_NAMES = ("sub", "client_id", "azp")
_CLIENTS = ("clientId", "azp")
_REALM = re.compile(r"https?://[^/]+/auth/realms/([^/]+)/?")
DEFAULT_REALM = "default"


class Expectations(msgspec.Struct, frozen=True):
    """What a JWT must say besides being signed. An empty issuer or audience is not checked. `scopes`: other words for rights."""

    issuer: str = ""
    audience: str = ""
    rights_claim: str = "scope"
    scopes: Mapping[str, str] = {}


class Verified(msgspec.Struct, frozen=True):
    """A JWT that holds, and until when (Unix seconds)."""

    principal: Principal
    expires: float


def key_id(token: str) -> str | None:
    """The key that a token says it was signed with. Raises Unauthenticated when it is no JWT."""
    try:
        kid = jwt.get_unverified_header(token).get("kid")
    except (jwt.PyJWTError, RecursionError) as error:
        # A stranger's header may be nested as deep as its length allows.
        raise _refused("the token is neither known nor a JWT") from error
    return kid if isinstance(kid, str) else None


def verified(token: str, key: Key, expected: Expectations, now: float) -> Verified:
    """The principal of a token signed with this key. Raises Unauthenticated."""
    claims = _claims(token, key, expected)
    expires = _number(claims, "exp")
    if now >= expires + LEEWAY:
        raise _refused("the token has expired")
    if "nbf" in claims and now < _number(claims, "nbf") - LEEWAY:
        raise _refused("the token is not valid yet")
    client = _first(claims, _CLIENTS)
    name = _first(claims, _NAMES) or client
    if not name:
        raise _refused("the token does not say whose it is")
    rights = rights_in(claims.get(expected.rights_claim), expected.scopes)
    return Verified(Principal(name, rights, client_id=client, realm=realm_of(claims.get("iss"))), expires)


def issuer_in(token: str) -> str:
    """The issuer that a token names, not yet checked: only to know whose keys to check it with."""
    try:
        claims = jwt.decode(token, options={"verify_signature": False})
    except (jwt.PyJWTError, RecursionError) as error:
        raise _refused("the token is neither known nor a JWT") from error
    return str(claims.get("iss", ""))


def realm_of(issuer: object) -> str:
    """The realm of an issuer such as `https://iris.example/auth/realms/prod` (HOR-06)."""
    found = _REALM.fullmatch(issuer) if isinstance(issuer, str) else None
    return found[1] if found else DEFAULT_REALM


def _first(claims: dict[str, Any], names: tuple[str, ...]) -> str:
    return next((claims[name] for name in names if isinstance(claims.get(name), str) and claims[name]), "")


def _claims(token: str, key: Key, expected: Expectations) -> dict[str, Any]:
    """The claims, once signature, issuer and audience are right. Times are left to `verified`, which is given the time."""
    allowed = ALGORITHMS[key["kty"]]
    try:
        # An RSA key that names no algorithm may be used with any of its family; the token then chooses among those only.
        stated = key.get("alg") or (jwt.get_unverified_header(token).get("alg") if key["kty"] == "RSA" else None)
        if stated is not None and stated not in allowed:
            raise _refused("the token is signed in a way that is not accepted")
        claims: dict[str, Any] = jwt.decode(
            token,
            jwt.PyJWK(dict(key), algorithm=stated),
            algorithms=list(allowed),
            issuer=expected.issuer or None,
            audience=expected.audience or None,
            options={
                "require": ["exp", *(["iss"] if expected.issuer else []), *(["aud"] if expected.audience else [])],
                "verify_exp": False,
                "verify_nbf": False,
                "verify_iat": False,
                "verify_aud": bool(expected.audience),
                "enforce_minimum_key_length": True,
            },
        )
    except jwt.PyJWTError as error:
        raise _refused(f"the token is not accepted: {error}") from error
    return claims


def _number(claims: dict[str, Any], claim: str) -> float:
    value = claims[claim]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _refused(f"the token's {claim} is no time")
    return float(value)


def _refused(why: str) -> Unauthenticated:
    return Unauthenticated(why, expected="a bearer token in the Authorization header")
