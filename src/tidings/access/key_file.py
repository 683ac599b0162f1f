"""The keys of the hub's own tokens, in a small file: the private one in use, sealed, and former public ones (HOR-165).

Every process of the hub uses this file. Whoever needs a key first makes it; the others find it. A key that does not open, since the
hub's key was changed, gives way to a new one and stays listed until the tokens that it signed have ended.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from tidings.access.secret_box import Box, Unreadable
from tidings.clock import SECOND, Clock
from tidings.data_files import write_durably
from tidings.errors import Unavailable

FILE = "signing-keys.json"
LOCK = "signing-keys.lock"
PLACE = "signing-keys/private"
ALGORITHM = "RS256"
BITS, EXPONENT = 2048, 65537


class ListedKey(msgspec.Struct, frozen=True):
    """A public key (JWK), and the private one, sealed. `until`: in seconds since 1970; None: it is the one in use."""

    key: dict[str, Any]
    until: float | None = None
    private: str = ""


class Pair(msgspec.Struct, frozen=True):
    """A private key, and the public one as it is shown."""

    private: RSAPrivateKey
    public: dict[str, Any]


def new_pair() -> Pair:
    """A new key. Takes a good part of a second: not for an event loop."""
    return pair_of(generate_private_key(EXPONENT, BITS))


def pair_of(private: RSAPrivateKey) -> Pair:
    numbers = private.public_key().public_numbers()
    public = {"kty": "RSA", "n": _text(numbers.n), "e": _text(numbers.e)}
    return Pair(private, {**public, "kid": _thumbprint(public), "use": "sig", "alg": ALGORITHM})


def _text(number: int) -> str:
    """A number as keys are written (RFC 7518)."""
    raw = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def noted(listed: Sequence[ListedKey], in_use: ListedKey, now: float, life: float) -> list[ListedKey]:
    """What is listed when this key is in use: it first, and former ones until their tokens have ended."""
    others = (one for one in listed if one.key.get("kid") != in_use.key["kid"])
    former = [one if one.until is not None else ListedKey(one.key, now + life, one.private) for one in others]
    return [in_use, *(one for one in former if one.until is not None and one.until > now)]


class KeyFile:
    """The file in the data folder. `life`: seconds that a former key stays listed. Every call may block for a while."""

    def __init__(self, data: Path, box: Box, life: float, clock: Clock) -> None:
        self._data = data
        self._box = box
        self._life = life
        self._clock = clock

    @property
    def stamp(self) -> object:
        """Another one after every change of the file; None when there is none."""
        try:
            found = (self._data / FILE).stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino

    def pair(self, known: Pair | None = None) -> Pair:
        """The key in use. Where the file has none that opens, the `known` one, or a new one, is put there. Raises Unavailable."""
        try:
            with self._alone():
                listed = self._read()
                found = next((pair for one in listed if (pair := self._opened(one)) is not None), None)
                in_use = found or known or new_pair()
                kept = noted(listed, self._sealed(in_use), self._clock.now() / SECOND, self._life)
                if kept != listed:
                    write_durably(self._data / FILE, msgspec.json.encode(kept))
                return in_use
        except OSError as error:
            raise Unavailable(
                f"the signing keys cannot be kept: {error.strerror or error}", at=str(self._data / FILE)
            ) from error

    def public(self) -> list[dict[str, Any]]:
        """The keys to list, the one in use first."""
        now = self._clock.now() / SECOND
        return [one.key for one in self._read() if one.until is None or one.until > now]

    def _opened(self, one: ListedKey) -> Pair | None:
        try:
            private = load_pem_private_key(self._box.open(PLACE, one.private).encode(), None) if one.private else None
        except (Unreadable, ValueError):
            return None
        return pair_of(private) if isinstance(private, RSAPrivateKey) else None

    def _sealed(self, pair: Pair) -> ListedKey:
        plain = pair.private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        return ListedKey(pair.public, None, self._box.seal(PLACE, plain))

    def _read(self) -> list[ListedKey]:
        try:
            return msgspec.json.decode((self._data / FILE).read_bytes(), type=list[ListedKey])
        except (OSError, msgspec.MsgspecError):
            return []

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """No other process or thread changes the file meanwhile."""
        descriptor = os.open(self._data / LOCK, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _thumbprint(public: Mapping[str, Any]) -> str:
    """The name of a key by what it is (RFC 7638)."""
    members = {name: public[name] for name in ("e", "kty", "n")}
    return hashlib.sha256(msgspec.json.encode(members, order="sorted")).hexdigest()[:32]
