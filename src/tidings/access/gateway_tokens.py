"""The hub's own tokens to endpoints (HOR-110, HOR-165): signed with the hub's own key, which is shown as JWKS.

RS256, since that is what verifiers accept without being told.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import jwt

from tidings.access.key_file import ALGORITHM, KeyFile, Pair


class GatewayKey:
    """Signs claims. Safe to share between threads; every call may block for a while, the first one longest."""

    def __init__(self, file: KeyFile) -> None:
        self._file = file
        self._turn = threading.Lock()
        self._held: Pair | None = None
        self._stamp: object = None

    @property
    def jwks(self) -> dict[str, Any]:
        """The public key as a set of keys, with those that were in use shortly before. Raises Unavailable."""
        with self._turn:
            self._pair()
            return {"keys": self._file.public()}

    def signed(self, claims: Mapping[str, object]) -> str:
        """The claims as a JWT. Raises Unavailable."""
        with self._turn:
            pair = self._pair()
        return jwt.encode(dict(claims), pair.private, ALGORITHM, headers={"kid": pair.public["kid"]})

    def _pair(self) -> Pair:
        """The key in use; looked for again when another process has changed the file."""
        if self._held is None or self._stamp is None or self._stamp != self._file.stamp:
            self._held = self._file.pair(self._held)
            self._stamp = self._file.stamp
        return self._held
