"""A small file that is written once: whole or not at all, and the first one stays."""

from __future__ import annotations

import os
from pathlib import Path

from tidings.errors import tolerating


def create(path: Path, content: bytes) -> None:
    """Write it beside, then link it into place: nobody ever sees half of it, and whoever was first is kept. Raises OSError."""
    beside = path.with_name(f"{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        with tolerating(FileExistsError, doing=f"the making of {path.name}, another process was first"):
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
