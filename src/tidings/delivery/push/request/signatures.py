"""Signatures of Standard Webhooks: `v1` (HMAC-SHA256) and `v1a` (ed25519) over id, time and the body exactly as sent. Pure."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tidings.clock import SECOND, Instant

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ID_DIGITS = 22


class HmacKey(msgspec.Struct, frozen=True):
    """A key that the receiver knows too."""

    secret: bytes

    def __repr__(self) -> str:
        return "HmacKey(***)"

    def sign(self, content: bytes) -> str:
        return f"v1,{base64.b64encode(hmac.digest(self.secret, content, hashlib.sha256)).decode()}"


class Ed25519Key:
    """A private key; the receiver knows the public one."""

    __slots__ = ("_private",)

    def __init__(self, seed: bytes) -> None:
        self._private = Ed25519PrivateKey.from_private_bytes(seed)

    def sign(self, content: bytes) -> str:
        return f"v1a,{base64.b64encode(self._private.sign(content)).decode()}"


Signer: TypeAlias = HmacKey | Ed25519Key


def signer_of(secret: str) -> Signer:
    """The signer of a secret as it is written, `whsec_…` or `whsk_…`. Raises ValueError, which does not tell the secret."""
    kind, _, text = secret.partition("_")
    try:
        raw = base64.b64decode(text, validate=True)
    except ValueError:
        raise ValueError("the signing secret is no base64") from None
    match kind:
        case "whsec":
            return HmacKey(raw)
        case "whsk":
            return Ed25519Key(raw)
        case _:
            raise ValueError("unknown kind of signing secret")


def sign(id: str, timestamp: int, body: bytes, keys: Sequence[Signer]) -> str:
    """The value of `webhook-signature`: one signature per key in their order, one space between (SW-02, SW-03)."""
    content = b"%b.%d.%b" % (id.encode(), timestamp, body)
    return " ".join(key.sign(content) for key in keys)


def signature_headers(id: str, now: Instant, body: bytes, keys: Sequence[Signer]) -> Mapping[str, str]:
    """The three headers of a signed delivery (SW-01)."""
    timestamp = now // SECOND
    return {"webhook-id": id, "webhook-timestamp": str(timestamp), "webhook-signature": sign(id, timestamp, body, keys)}


def message_id(delivery_id: str) -> str:
    """The `webhook-id` of a delivery: `msg_` and its id in base 62, so that it is the same at every try (SW-04)."""
    number = int(delivery_id.replace("-", ""), 16)
    digits = []
    for _ in range(_ID_DIGITS):
        number, digit = divmod(number, 62)
        digits.append(_DIGITS[digit])
    return f"msg_{''.join(reversed(digits))}"
