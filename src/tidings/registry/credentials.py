"""How the hub shows an endpoint who it is: credentials, signing keys, and what a webhook handshake agreed on. Plain values.

Members that hold a secret are sealed before they are stored; `SECRETS` says which they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import TypeAlias

import msgspec

from tidings.clock import Instant

SEALED = "sealed:"
"""How a sealed value begins."""

_SEALED = re.compile(r"sealed:[A-Za-z0-9_-]{0,8192}")


def is_sealed(text: str) -> bool:
    """Whether a text has the form of a sealed value. Whether it really is one, only its key can tell."""
    return _SEALED.fullmatch(text) is not None


class Placement(StrEnum):
    """Where a token goes: the Authorization header, or `?access_token=` of the address (WH-07)."""

    HEADER = "header"
    QUERY = "query"


class GrantType(StrEnum):
    """How a token is asked for."""

    CLIENT_CREDENTIALS = "client_credentials"
    PASSWORD = "password"


class Basic(msgspec.Struct, frozen=True, kw_only=True, tag="basic", tag_field="kind"):
    """A user and a password."""

    user: str
    password: str


class TokenCredential(msgspec.Struct, frozen=True, kw_only=True, tag="token", tag_field="kind"):
    """A token that was given to the hub. With `refresh`, a new one is fetched at `refresh_at` before it expires."""

    token: str
    token_type: str = "Bearer"
    expires: Instant | None = None
    refresh: str = ""
    refresh_at: str = ""
    placement: Placement = Placement.HEADER


class OAuth(msgspec.Struct, frozen=True, kw_only=True, tag="oauth", tag_field="kind"):
    """A token that the hub asks a provider for; `provider` is its name."""

    provider: str
    grant: GrantType = GrantType.CLIENT_CREDENTIALS
    scope: str = ""
    user: str = ""
    password: str = ""


class GatewayToken(msgspec.Struct, frozen=True, kw_only=True, tag="gateway", tag_field="kind"):
    """A token that the hub signs itself (HOR-110); what it says besides issuer and times.

    `environment`: where issuer and client depend on it; empty: the usual one.
    """

    request_path: str
    publisher: str
    subscriber: str
    client: str = ""
    environment: str = ""


Credential: TypeAlias = Basic | TokenCredential | OAuth | GatewayToken

SECRETS: Mapping[type, tuple[str, ...]] = {
    Basic: ("password",),
    TokenCredential: ("token", "refresh"),
    OAuth: ("password",),
    GatewayToken: (),
}
"""The members of each kind of credential that are secret."""


class SigningVersion(StrEnum):
    """The signatures of Standard Webhooks: HMAC-SHA256, or ed25519."""

    V1 = "v1"
    V1A = "v1a"


class SigningKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key that deliveries are signed with, until its time is over. `secret` is `whsec_…` or `whsk_…`, `public` is `whpk_…`."""

    version: SigningVersion
    secret: str
    public: str = ""
    until: Instant | None = None


class Consent(StrEnum):
    """Where a webhook handshake stands."""

    GIVEN = "given"
    PENDING = "pending"
    UNVERIFIED = "unverified"


class Webhook(msgspec.Struct, frozen=True, kw_only=True):
    """What a handshake came to. `origin` goes with every delivery (WH-12), at most `rate` a minute.

    While consent is pending nothing is sent; `secret_digest` is that of the secret in the callback address, good `until` then.
    """

    origin: str
    policy: str = "require"
    consent: Consent = Consent.GIVEN
    rate: int | None = None
    secret_digest: str = ""
    until: Instant | None = None
