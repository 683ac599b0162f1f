"""A file has one writer: the hold is a file lock beside it, gone with the process that has it."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from tidings.errors import DataFolderUnusable
from tidings.sqlite.files import translating


class FileLock:
    """The right to write one file. Taking it a second time, here or in another process, raises DataFolderUnusable."""

    def __init__(self, path: Path) -> None:
        lock = path.with_name(f"{path.name}.lock")
        with translating(lock, opening=True):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._descriptor, 32, 0).decode(errors="replace").strip()
            os.close(self._descriptor)
            raise DataFolderUnusable(
                f"another hub writes this file{f' (process {holder})' if holder else ''}",
                at=str(path),
                expected="that hub stopped, or another data folder",
            ) from error
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Give it up. Safe to call twice. The lock file stays: removing it could let two holders in."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
