"""What a subscription shows its endpoint: sealed headers, a credential, signatures, the origin of its handshake.

A failure for our own reasons (an expired token, a key that does not open) is an outcome's cause, and no request is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from tidings.registry.credentials import Consent, Credential, SigningKey, is_sealed
from tidings.registry.model import Push, Subscription
from tidings.registry.rules.callbacks import is_reserved

EXPIRED = "credential-expired"
UNREADABLE = "credential-unreadable"
NO_PROVIDER = "credential-no-provider"
REFUSED = "credential-refused"
"""The endpoint answered 401 and no new token is to be had now: tried again later, whatever is thought of 4xx (HER-130)."""


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown, as it is stored. `owner` names the subscription; it is where its secrets open."""

    owner: str
    headers: Mapping[str, str] = {}
    credential: Credential | None = None
    signing: tuple[SigningKey, ...] = ()
    origin: str = ""


class Shown(msgspec.Struct, frozen=True):
    """What goes with one request. They are secrets: never log one.

    `usual` are headers of the subscription: those of the event have precedence. `headers` are credentials, which go over all.
    """

    headers: Mapping[str, str]
    query: tuple[tuple[str, str], ...] = ()
    usual: Mapping[str, str] = {}

    def __repr__(self) -> str:
        return "Shown(***)"


class Failure(msgspec.Struct, frozen=True):
    """Nothing can be shown, and why in a word that records and figures can count."""

    reason: str


class Credentials(Protocol):
    """Where what is shown comes from. One event loop."""

    async def headers_for(self, access: Access) -> Shown | Failure:
        """What to show with the next request. Called for every attempt; may ask for a token first."""

    async def renewed(self, access: Access, refused: Shown) -> Shown | Failure | None:
        """What to show instead of what a 401 answered to; None: there is nothing else. Called at most once an attempt."""

    def accepted(self, access: Access) -> None:
        """The endpoint took a delivery. Called often; cheap."""


def access_of(subscription: Subscription, otherwise: Credential | None = None) -> Access | None:
    """What this subscription shows its endpoint; None when it shows nothing. `otherwise`: the credential without one of its own."""
    push = subscription.delivery
    if not isinstance(push, Push):
        return None
    headers = {name.lower(): value for name, value in push.headers.items() if is_sealed(value) and not is_reserved(name)}
    origin = "" if push.webhook is None else push.webhook.origin
    credential = push.credential or otherwise
    if not (headers or credential or push.signing or origin):
        return None
    owner = f"subscription/{subscription.name}"
    return Access(owner=owner, headers=headers, credential=credential, signing=push.signing, origin=origin)


def awaits_consent(push: Push) -> bool:
    """Whether nothing may be sent yet, because the endpoint has not agreed."""
    return push.webhook is not None and push.webhook.consent is Consent.PENDING
