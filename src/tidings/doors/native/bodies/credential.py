"""The wire shape of credentials and signatures: secrets are written, never read; one put back as *** keeps what stands."""

from __future__ import annotations

import os
from typing import Annotated, Any, Literal, TypeAlias, assert_never

import msgspec
from pydantic import Field

from tidings.access.secrets import COVER
from tidings.access.signing_keys import keys_for
from tidings.clock import SECOND, Instant
from tidings.doors.deliveries.start_points import instant_of
from tidings.doors.native.bodies.wire import Wire, time_of
from tidings.errors import Malformed
from tidings.registry.credentials import (
    SECRETS,
    Basic,
    Credential,
    GatewayToken,
    GrantType,
    OAuth,
    Placement,
    SigningKey,
    SigningVersion,
    TokenCredential,
)
from tidings.registry.model import Push, Subscription

Signing: TypeAlias = Literal["v1", "v1a", "none"]


class BasicBody(Wire):
    """A user and a password, sent as `Authorization: Basic`."""

    kind: Literal["basic"]
    user: str
    password: str


class TokenBody(Wire):
    """A token of yours. With a refresh token, the hub fetches a new one a minute before it expires and when it is refused."""

    kind: Literal["token"]
    token: str
    token_type: str = "Bearer"
    expires: str | None = Field(default=None, description="A time such as 2030-01-31T12:00:00Z.")
    refresh: str | None = None
    refresh_at: str | None = Field(default=None, description="Address of the token endpoint.")
    placement: Literal["header", "query"] = "header"


class OAuthBody(Wire):
    """A token that the hub asks a provider for."""

    kind: Literal["oauth"]
    provider: str
    grant: Literal["client_credentials", "password"] = "client_credentials"
    scope: str = ""
    user: str | None = None
    password: str | None = None


class GatewayBody(Wire):
    """A token that the hub signs itself; its keys are at /api/.well-known/jwks.json."""

    kind: Literal["gateway"]
    request_path: str
    publisher: str
    subscriber: str
    client: str = ""
    environment: str = Field(default="", description="Where issuer and client of the hub's tokens depend on it.")


CredentialBody = Annotated[BasicBody | TokenBody | OAuthBody | GatewayBody, Field(discriminator="kind")]


class SigningView(Wire):
    """How deliveries are signed. The secret is shown once, in the answer that made it."""

    version: str
    public_key: str | None = None
    secret: str | None = None
    old_key_until: str | None = Field(default=None, description="Until then deliveries also carry a signature of the old key.")


def credential_from(body: CredentialBody | None, url: str, standing: Subscription | None) -> Credential | None:
    """The credential that a body describes. Raises Malformed when a covered secret stands for none, or for another endpoint."""
    if body is None:
        return None
    wanted = _credential(body)
    held = standing.delivery if standing is not None and isinstance(standing.delivery, Push) else None
    for member in SECRETS[type(wanted)]:
        if getattr(wanted, member) != COVER:
            continue
        if held is None or type(held.credential) is not type(wanted):
            raise Malformed("there is no secret yet that *** could stand for", at=f"delivery.credential.{member}")
        if held.url != url:
            # Whoever may change the address, but does not know the secret, must not have it sent elsewhere (HER-127).
            raise Malformed("a new address needs the secret again", at=f"delivery.credential.{member}", expected="the secret")
        wanted = msgspec.structs.replace(wanted, **{member: getattr(held.credential, member)})
    return wanted


def _credential(body: CredentialBody) -> Credential:
    match body:
        case BasicBody():
            return Basic(user=body.user, password=body.password)
        case TokenBody():
            return TokenCredential(
                token=body.token,
                token_type=body.token_type,
                expires=None if body.expires is None else instant_of(body.expires),
                refresh=body.refresh or "",
                refresh_at=body.refresh_at or "",
                placement=Placement(body.placement),
            )
        case OAuthBody():
            return OAuth(
                provider=body.provider,
                grant=GrantType(body.grant),
                scope=body.scope,
                user=body.user or "",
                password=body.password or "",
            )
        case GatewayBody():
            return GatewayToken(
                request_path=body.request_path,
                publisher=body.publisher,
                subscriber=body.subscriber,
                client=body.client,
                environment=body.environment,
            )
        case _:
            assert_never(body)


def credential_shown(credential: Credential | None) -> Any:
    """The credential as a body that could be put back, its secrets covered."""
    match credential:
        case None:
            return None
        case Basic():
            return BasicBody(kind="basic", user=credential.user, password=COVER)
        case TokenCredential():
            refresh = {"refresh": COVER, "refresh_at": credential.refresh_at} if credential.refresh else {}
            return TokenBody(
                kind="token",
                token=COVER,
                token_type=credential.token_type,
                expires=time_of(credential.expires),
                placement=credential.placement.value,
                **refresh,
            )
        case OAuth():
            user = {"user": credential.user, "password": COVER} if credential.password else {}
            return OAuthBody(
                kind="oauth", provider=credential.provider, grant=credential.grant.value, scope=credential.scope, **user
            )
        case GatewayToken():
            return GatewayBody(kind="gateway", **msgspec.structs.asdict(credential))
        case _:
            assert_never(credential)


def signing_from(wanted: Signing, standing: Subscription | None) -> tuple[SigningKey, ...]:
    """The keys to sign with: those that stand, or a new one that is still to be sealed."""
    held = standing.delivery.signing if standing is not None and isinstance(standing.delivery, Push) else ()
    return keys_for(None if wanted == "none" else SigningVersion(wanted), held, os.urandom)


def signing_shown(keys: tuple[SigningKey, ...], now: Instant, secret: str | None = None) -> SigningView | None:
    """How a subscription's deliveries are signed."""
    if not keys:
        return None
    ends = [key.until for key in keys if key.until is not None and key.until > now]
    return SigningView(
        version=keys[0].version.value,
        public_key=keys[0].public or None,
        secret=secret,
        old_key_until=time_of(max(ends, default=None)),
    )


def grace_end(now: Instant, seconds: float) -> Instant:
    """When old keys stop signing."""
    return Instant(now + round(seconds * SECOND))
