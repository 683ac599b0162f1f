"""Secrets: a value that never shows itself, the hub's own key, and headers with their secrets covered."""

from __future__ import annotations

import errno
import hmac
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from tidings.errors import DataFolderUnusable, LogUnavailable, tolerating
from tidings.registry.credentials import SEALED

KEY_FILE = "hub.key"
KEY_BYTES = 32
COVER = "***"

_SECRET_WORDS = ("authorization", "cookie", "token", "secret", "password", "key", "signature")


class Secret:
    """Bytes that show only when asked for. Printing, logging, comparing and pickling give nothing away."""

    __slots__ = ("_value",)

    def __init__(self, value: bytes) -> None:
        self._value = value

    def reveal(self) -> bytes:
        """The bytes themselves."""
        return self._value

    def __repr__(self) -> str:
        return f"Secret({COVER})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and hmac.compare_digest(self._value, other._value)

    def __hash__(self) -> int:
        return hash(self._value)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not pickled")


def covered(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers as they may be shown: the values of those that carry secrets are covered."""
    return {name: COVER if _tells_secret(name) else value for name, value in headers.items()}


def without_secrets(document: Any) -> Any:
    """A document in plain values as it may be shown: sealed values are covered, and so are headers from before there were any."""
    match document:
        case str() if document.startswith(SEALED):
            return COVER
        case {"headers": dict() as headers, **rest}:
            return {**without_secrets(rest), "headers": without_secrets(covered(headers))}
        case dict():
            return {name: without_secrets(value) for name, value in document.items()}
        case list() | tuple():
            return [without_secrets(value) for value in document]
        case _:
            return document


def _tells_secret(name: str) -> bool:
    return any(word in name.lower() for word in _SECRET_WORDS)


def hub_key(data: Path) -> Secret:
    """The hub's key in its data folder, made at the first start. Two processes that start together get the same one.

    Raises DataFolderUnusable when it is damaged: delivery ids made with it could not be told any more.
    """
    path = data / KEY_FILE
    try:
        if not path.exists():
            _create(path)
        key = path.read_bytes()
        if path.stat().st_mode & 0o077:
            path.chmod(0o600)
    except OSError as error:
        what = f"the hub's key cannot be read or made: {error.strerror}"
        if error.errno == errno.ENOSPC:
            raise LogUnavailable(what, at=str(path)) from error
        raise DataFolderUnusable(what, at=str(path)) from error
    if len(key) != KEY_BYTES:
        raise DataFolderUnusable(
            "the hub's key is damaged; restore it from a backup",
            at=str(path),
            found=f"{len(key)} bytes",
            expected=f"{KEY_BYTES} bytes",
        )
    return Secret(key)


def _create(path: Path) -> None:
    """Write a new key beside, then link it into place: nobody ever sees half a key, and the first one stays."""
    beside = path.with_name(f"{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(os.urandom(KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        with tolerating(FileExistsError, doing="the making of the hub's key, another process was first"):
            os.link(beside, path)
    finally:
        beside.unlink()
    _sync(path.parent)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
