"""The hub's own tokens to endpoints (HOR-110): signed with a key that is derived from the hub's key, shown as JWKS.

Deriving it means that every process of the hub has the same key without another file to keep.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from tidings.access.sealing import derived
from tidings.access.secrets import Secret

ALGORITHM = "ES256"
_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""The order of the curve P-256: private keys are 1 to this less one."""


class GatewayKey:
    """Signs claims. Safe to share between threads."""

    def __init__(self, key: Secret) -> None:
        # 48 bytes for 32: taken modulo the order, no key is then likelier than another.
        number = int.from_bytes(derived(key, b"tidings: gateway tokens", 48), "big") % (_ORDER - 1) + 1
        self._private = ec.derive_private_key(number, ec.SECP256R1())
        public: dict[str, Any] = ECAlgorithm.to_jwk(self._private.public_key(), as_dict=True)
        self.kid = _thumbprint(public)
        self.jwks: dict[str, Any] = {"keys": [{**public, "kid": self.kid, "use": "sig", "alg": ALGORITHM}]}

    def signed(self, claims: Mapping[str, object]) -> str:
        """The claims as a JWT."""
        return jwt.encode(dict(claims), self._private, ALGORITHM, headers={"kid": self.kid})


def _thumbprint(public: Mapping[str, Any]) -> str:
    """The name of a key by what it is (RFC 7638)."""
    members = {name: public[name] for name in ("crv", "kty", "x", "y")}
    return hashlib.sha256(msgspec.json.encode(members, order="sorted")).hexdigest()[:32]
