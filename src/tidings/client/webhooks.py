"""Receiving signed deliveries: `verify` tells whether a request really came from the hub (Standard Webhooks 1.0).

Needs nothing of the hub, and for shared secrets (`whsec_…`) nothing but the standard library.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from collections.abc import Iterable, Mapping

TOLERANCE = 300
"""Seconds by which the time of a delivery may differ from ours."""


class NotVerified(ValueError):
    """The request cannot be trusted, and why. Never tells what would have been right."""


def verify(
    body: bytes,
    headers: Mapping[str, str],
    keys: str | Iterable[str],
    tolerance: float = TOLERANCE,
    now: float | None = None,
) -> None:
    """Return if one of the keys (`whsec_…`, `whpk_…`) made one of the signatures over this body; raise NotVerified otherwise.

    `body` is what was received, byte for byte. Also refuses a missing header and a time further away than `tolerance` seconds,
    so that an old delivery cannot be played again later.
    """
    given = {name.lower(): value for name, value in headers.items()}
    id, stamp, signatures = (_header(given, f"webhook-{name}") for name in ("id", "timestamp", "signature"))
    _check_time(stamp, tolerance, time.time() if now is None else now)
    content = b"%b.%b.%b" % (id.encode(), stamp.encode(), body)
    listed = [pair.partition(",")[::2] for pair in signatures.split(" ")]
    for key in [keys] if isinstance(keys, str) else keys:
        version, raw = _key(key)
        if any(_is_made_by(raw, version, content, text) for said, text in listed if said == version):
            return
    raise NotVerified("no signature of the request was made by one of the keys")


def _header(headers: Mapping[str, str], name: str) -> str:
    value = headers.get(name)
    if not value:
        raise NotVerified(f"the header {name} is missing")
    return value


def _check_time(stamp: str, tolerance: float, now: float) -> None:
    if not (stamp.isascii() and stamp.isdigit() and len(stamp) < 16):
        raise NotVerified("the header webhook-timestamp is no time")
    if abs(now - int(stamp)) > tolerance:
        raise NotVerified("the request was signed too long ago, or the clocks differ")


def _key(text: str) -> tuple[str, bytes]:
    """The kind of signature that a key makes, and the key itself."""
    kind, _, plain = text.rpartition("_")
    try:
        raw = base64.b64decode(plain, validate=True)
    except ValueError:
        raise NotVerified("a key cannot be read; expected whsec_ or whpk_ and base64") from None
    # Other libraries also write the shared secret without its prefix.
    versions = {"whsec": "v1", "": "v1", "whpk": "v1a"}
    if kind not in versions:
        raise NotVerified("a key cannot be read; expected whsec_ or whpk_ and base64")
    return versions[kind], raw


def _is_made_by(key: bytes, version: str, content: bytes, signature: str) -> bool:
    try:
        found = base64.b64decode(signature, validate=True)
    except ValueError:
        return False
    if version == "v1a":
        return _is_ed25519(key, content, found)
    wanted = hmac.digest(key, content, hashlib.sha256)
    return len(found) == len(wanted) and hmac.compare_digest(found, wanted)


def _is_ed25519(key: bytes, content: bytes, signature: bytes) -> bool:
    # Imported late: only who uses public keys needs the library.
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, content)
    except (InvalidSignature, ValueError):
        return False
    return True
