"""Public keys that were in use, in a small file: when the hub's key changes, tokens signed before can still be checked (HOR-165).

Only public keys are kept. Every process that signs or lists keys notes the one in use; whoever comes first after a change says
until when the former one is listed. A lost file costs no more than that.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from tidings.clock import SECOND, Clock
from tidings.errors import tolerating

FILE = "signing-keys.json"


class Listed(msgspec.Struct, frozen=True):
    """A public key (JWK). `until`: in seconds since 1970; None: it is the one in use."""

    key: dict[str, Any]
    until: float | None = None


def noted(listed: Sequence[Listed], key: dict[str, Any], now: float, life: float) -> list[Listed]:
    """What is listed when this key is in use: it first, and former ones until their tokens have ended."""
    others = (one for one in listed if one.key.get("kid") != key["kid"])
    former = [one if one.until is not None else Listed(one.key, now + life) for one in others]
    return [Listed(key), *(one for one in former if one.until is not None and one.until > now)]


class FormerKeys:
    """The file in the data folder. `life`: seconds that a former key stays listed."""

    def __init__(self, data: Path, life: float, clock: Clock) -> None:
        self._path = data / FILE
        self._life = life
        self._clock = clock

    def noted(self, key: dict[str, Any]) -> list[dict[str, Any]]:
        """Note the key in use; the keys to list, it first. Blocks for a moment. Safe to repeat and to do at the same time."""
        listed = self._read()
        now = noted(listed, key, self._clock.now() / SECOND, self._life)
        if now != listed:
            with tolerating(OSError, doing="the noting of the signing key"):
                self._write(now)
        return [one.key for one in now]

    def _read(self) -> list[Listed]:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=list[Listed])
        except (OSError, msgspec.MsgspecError):
            return []

    def _write(self, listed: list[Listed]) -> None:
        beside = self._path.with_name(f"{FILE}.{os.getpid()}.{os.urandom(4).hex()}")
        beside.write_bytes(msgspec.json.encode(listed))
        beside.replace(self._path)
