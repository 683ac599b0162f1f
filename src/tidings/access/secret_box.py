"""Secrets at rest: a text and its place become `sealed:…`, which opens again only with the same key and in the same place.

Deterministic (AES-SIV): the same secret in the same place is the same text, so that putting a document again changes nothing.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from tidings.access.secrets import Secret, hub_key
from tidings.config import AccessSettings
from tidings.errors import Misconfigured
from tidings.registry.credentials import SEALED
from tidings.registry.port import Document
from tidings.registry.rules.credentials import sealed
from tidings.registry.rules.keys import key_of

KEY_CHARACTERS = 24
REMEMBERED = 50_000


class Unreadable(Exception):
    """A sealed value does not open: it was sealed with another key, or for another place. Says nothing of its content."""


class Box:
    """Seals and opens under one key. Safe to share between threads."""

    def __init__(self, key: Secret) -> None:
        self._cipher = AESSIV(derived(key, b"tidings: secrets at rest", 64))
        self._opened: dict[tuple[str, str], str] = {}

    def seal(self, place: str, text: str) -> str:
        """The text sealed for a place. What is sealed for this place already stays as it is."""
        if text.startswith(SEALED) and self._readable(place, text):
            return text
        raw = self._cipher.encrypt(text.encode(), [place.encode()]) if text else b""
        return SEALED + base64.urlsafe_b64encode(raw).rstrip(b"=").decode()

    def open(self, place: str, text: str) -> str:
        """The text behind a sealed value. One that was never sealed, from before, is the text itself. Raises Unreadable."""
        if not text.startswith(SEALED):
            return text
        known = self._opened.get((place, text))
        return self._open(place, text) if known is None else known

    def _open(self, place: str, text: str) -> str:
        body = text.removeprefix(SEALED)
        if not body:
            return ""
        try:
            raw = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
            plain = self._cipher.decrypt(raw, [place.encode()]).decode()
        except (InvalidTag, ValueError) as error:
            raise Unreadable(f"the secret at {place} does not open with this hub's key") from error
        if len(self._opened) >= REMEMBERED:
            self._opened.clear()
        self._opened[place, text] = plain
        return plain

    def _readable(self, place: str, text: str) -> bool:
        try:
            self.open(place, text)
        except Unreadable:
            return False
        return True


def unreadable(documents: Iterable[Document], box: Box) -> list[str]:
    """Which of these documents hold a secret that the box cannot open."""
    found: list[str] = []
    for document in documents:

        def look(place: str, text: str, document: Document = document) -> str:
            try:
                box.open(place, text)
            except Unreadable:
                found.append(str(key_of(document)))
            return text

        sealed(document, look)
    return list(dict.fromkeys(found))


def derived(key: Secret, purpose: bytes, length: int) -> bytes:
    """A key for one purpose only, from the hub's key."""
    return HKDF(hashes.SHA512(), length, salt=None, info=purpose).derive(key.reveal())


def sealing_key(settings: AccessSettings, data: Path) -> Secret:
    """The key from the settings, or the hub's own in its data folder. Raises Misconfigured for one that is easily guessed."""
    if not settings.key:
        return hub_key(data)
    if len(settings.key) < KEY_CHARACTERS:
        raise Misconfigured(
            "the key for secrets is too short", at="access.key", expected=f"at least {KEY_CHARACTERS} random characters"
        )
    return Secret(settings.key.encode())
