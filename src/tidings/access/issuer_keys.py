"""The signing keys of an issuer: what is held, when to fetch again, and the fetching itself.

`KeyRing` is a value and decides; `fetch` reads an https address or a file and blocks, so it runs in a thread.
"""

from __future__ import annotations

import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

import msgspec

from tidings.access.settings_checks import is_loopback
from tidings.errors import Unavailable

ALGORITHMS: Mapping[str, tuple[str, ...]] = {
    "RSA": ("RS256", "RS384", "RS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}
"""What may sign, by the type of key. Shared secrets (HS…) and `none` are not among it."""

ALLOWED = tuple(name for names in ALGORITHMS.values() for name in names)

FRESH = 600.0
"""Keys older than this are fetched again, so that a withdrawn key is not trusted for ever."""
PAUSE_FIRST, PAUSE_MAX = 5.0, 300.0
FETCH_TIMEOUT = 5.0
FETCH_BYTES = 1 << 20

Key = Mapping[str, Any]


class KeyRing(msgspec.Struct, frozen=True):
    """The keys held. `due` is the earliest time for another fetch: a stranger's made-up key ids must not cause one each."""

    keys: tuple[Key, ...] = ()
    fetched: float | None = None
    due: float = 0.0
    pause: float = PAUSE_FIRST

    def find(self, kid: str | None) -> Key | None:
        """The key of this id. A token that names none is taken to mean the only key, if there is only one."""
        if kid is None:
            return self.keys[0] if len(self.keys) == 1 else None
        return next((key for key in self.keys if key.get("kid") == kid), None)

    def wants_fetch(self, kid: str | None, now: float) -> bool:
        """Whether to fetch before this id is judged: never fetched, unknown or grown old, and the pause is over."""
        stale = self.fetched is None or self.find(kid) is None or now - self.fetched >= FRESH
        return stale and now >= self.due

    def renewed(self, keys: tuple[Key, ...], now: float) -> KeyRing:
        """After a fetch."""
        return KeyRing(keys=keys, fetched=now, due=now + PAUSE_FIRST)

    def failed(self, now: float) -> KeyRing:
        """After a fetch that failed: what is held stays good, and the pauses grow."""
        return msgspec.structs.replace(self, due=now + self.pause, pause=min(self.pause * 2, PAUSE_MAX))


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Keys come from the address that the operator named, and from nowhere else."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def fetch(place: str) -> tuple[Key, ...]:
    """The usable keys at an https address or in a file; blocks. Raises Unavailable."""
    try:
        raw = _download(place) if "://" in place else Path(place).read_bytes()
        held = msgspec.json.decode(raw, type=dict[str, Any]).get("keys")
    except (OSError, ValueError, RecursionError) as error:
        raise Unavailable(f"the signing keys cannot be fetched: {error}", at=place, retry_after=5) from error
    if not isinstance(held, list):
        raise Unavailable(
            "the signing keys cannot be read", at=place, expected='a JSON object with the list "keys"', retry_after=5
        )
    return tuple(key for key in held if isinstance(key, dict) and _usable(key))


def _download(url: str) -> bytes:
    handlers: list[urllib.request.BaseHandler] = [_NoRedirect()]
    if is_loopback(urlsplit(url).hostname or ""):
        handlers.append(urllib.request.ProxyHandler({}))
    answer: IO[bytes]
    with urllib.request.build_opener(*handlers).open(url, timeout=FETCH_TIMEOUT) as answer:
        raw = answer.read(FETCH_BYTES + 1)
    if len(raw) > FETCH_BYTES:
        raise ValueError(f"more than {FETCH_BYTES} bytes")
    return raw


def _usable(key: Key) -> bool:
    return key.get("kty") in tuple(ALGORITHMS) and key.get("use", "sig") == "sig" and key.get("alg", ALLOWED[0]) in ALLOWED
