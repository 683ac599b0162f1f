"""The hub's own tokens to endpoints (HOR-110, HOR-165): signed with a key that is derived from the hub's key, shown as JWKS.

Deriving it means that every process of the hub has the same key without another file to keep. RS256, since that is what
verifiers accept without being told.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from typing import Any

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from jwt.algorithms import RSAAlgorithm

from tidings.access.former_keys import FormerKeys
from tidings.access.rsa_keys import rsa_key
from tidings.access.sealing import derived
from tidings.access.secrets import Secret

ALGORITHM = "RS256"


class GatewayKey:
    """Signs claims. Safe to share between threads. The key is made when it is first needed, which takes a moment."""

    def __init__(self, key: Secret, former: FormerKeys | None = None) -> None:
        self._former = former
        self._seed = derived(key, b"tidings: gateway tokens, RSA", 64)
        self._making = threading.Lock()
        self._made: tuple[RSAPrivateKey, dict[str, Any]] | None = None

    @property
    def jwks(self) -> dict[str, Any]:
        """The public key as a set of keys, with those that were in use shortly before. Blocks for a moment."""
        public = self._key()[1]
        return {"keys": [public] if self._former is None else self._former.noted(public)}

    def signed(self, claims: Mapping[str, object]) -> str:
        """The claims as a JWT."""
        private, public = self._key()
        return jwt.encode(dict(claims), private, ALGORITHM, headers={"kid": public["kid"]})

    def _key(self) -> tuple[RSAPrivateKey, dict[str, Any]]:
        with self._making:
            if self._made is None:
                private = rsa_key(self._seed)
                public: dict[str, Any] = RSAAlgorithm.to_jwk(private.public_key(), as_dict=True)
                public.pop("key_ops", None)
                self._made = private, {**public, "kid": _thumbprint(public), "use": "sig", "alg": ALGORITHM}
                if self._former is not None:
                    self._former.noted(self._made[1])
            return self._made


def _thumbprint(public: Mapping[str, Any]) -> str:
    """The name of a key by what it is (RFC 7638)."""
    members = {name: public[name] for name in ("e", "kty", "n")}
    return hashlib.sha256(msgspec.json.encode(members, order="sorted")).hexdigest()[:32]
