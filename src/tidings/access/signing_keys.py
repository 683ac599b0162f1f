"""Signing keys of subscriptions: made by the hub, rotated with a grace time in which the old key signs too (SW-05, SW-09)."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tidings.clock import Instant
from tidings.registry.credentials import SigningKey, SigningVersion, is_sealed

KEY_BYTES = 32

Random = Callable[[int], bytes]


def new_key(version: SigningVersion, random: Random) -> SigningKey:
    """A new key, its secret still to be sealed."""
    raw = random(KEY_BYTES)
    if version is SigningVersion.V1:
        return SigningKey(version=version, secret=f"whsec_{_text(raw)}")
    public = Ed25519PrivateKey.from_private_bytes(raw).public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return SigningKey(version=version, secret=f"whsk_{_text(raw)}", public=f"whpk_{_text(public)}")


def keys_for(version: SigningVersion | None, standing: Sequence[SigningKey], random: Random) -> tuple[SigningKey, ...]:
    """The keys of a subscription that wants this kind of signature: those it has, or a new one."""
    if version is None:
        return ()
    if standing and standing[0].version is version:
        return tuple(standing)
    return (new_key(version, random),)


def rotated(keys: Sequence[SigningKey], fresh: SigningKey, now: Instant, until: Instant) -> tuple[SigningKey, ...]:
    """The fresh key first, and the old ones until their grace is over; one that ends earlier anyway keeps its end."""
    kept = [key for key in keys if key.until is None or key.until > now] if until > now else []
    return (fresh, *(msgspec.structs.replace(key, until=min(until, key.until or until)) for key in kept))


def shown_once(keys: Sequence[SigningKey]) -> str | None:
    """The secret to tell its owner: that of a shared key that was just made. A private key never leaves the hub."""
    fresh = keys and keys[0].version is SigningVersion.V1 and not is_sealed(keys[0].secret)
    return keys[0].secret if fresh else None


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
