"""Committing to log.db: the synchronous heart of the writer. It knows offsets, the disk guard and recovery, but no threads."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from tidings.clock import Clock
from tidings.config import LogSettings
from tidings.data_files import remedy
from tidings.errors import DataFolderUnusable, LogUnavailable, TidingsError, tolerating
from tidings.log.port import Draft
from tidings.log.position import Offset
from tidings.log.sqlite.entries import LOG, insert, last_offset, log_file, rewrite_version
from tidings.log.sqlite.identity import OpenedFile, damage_of
from tidings.log.sqlite.retention import TopicSweep
from tidings.sqlite.files import open_writer, roll_back, translating, translation
from tidings.sqlite.lock import FileLock
from tidings.sqlite.write_ahead_log import Wal

_GUARD_SECONDS = 1.0
_CONTENT_ERRORS = (sqlite3.ProgrammingError, sqlite3.InterfaceError, sqlite3.DataError, sqlite3.IntegrityError)

Free = Callable[[Path], int]


def free_bytes(folder: Path) -> int:
    """The room that is left on the disk of a folder."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


class DiskGuard:
    """Refuses appends while the disk has less room than the reserve. Looks at most once a second."""

    def __init__(self, folder: Path, reserve: int, clock: Clock, free: Free = free_bytes) -> None:
        self._folder = folder
        self._reserve = reserve
        self._clock = clock
        self._free = free
        self._next_look = clock.monotonic()
        self._room = reserve

    def check(self) -> None:
        """Raise LogUnavailable when there is too little room."""
        now = self._clock.monotonic()
        if now >= self._next_look:
            self._next_look = now + _GUARD_SECONDS
            with translating(self._folder):
                self._room = self._free(self._folder)
        if self._room < self._reserve:
            raise LogUnavailable(
                "the disk is almost full",
                at=str(self._folder),
                found=self._room,
                expected=f"{self._reserve} bytes free",
                retry_after=5,
            )

    def refusal(self) -> str | None:
        """What `check` would raise, as a sentence. Any thread may ask."""
        try:
            self.check()
        except LogUnavailable as error:
            return str(error)
        return None


class Committer:
    """The only writer of log.db. Used by one thread at a time. After any failed commit nothing of it is kept.

    One exception is in no program's hands: when syncing fails and the machine stops right then, the group may be found in the
    file later. Nobody was told that it is there, and its offsets are not given again.
    A commit counts only while the path leads to the file that was opened first, and nobody has met damage in it.
    `failure` says what the last commit met that failed for what the disk did, until one succeeds.
    """

    def __init__(self, folder: Path, settings: LogSettings, guard: DiskGuard) -> None:
        self.path = log_file(folder)
        self._wal_bytes = settings.wal_bytes
        self._guard = guard
        self._last: int | None = None
        self._acknowledged = 0
        self.failure: str | None = None
        self._hold = FileLock(self.path)
        try:
            self._connect(create=True)
            self._file = OpenedFile(self.path)
        except BaseException:
            self._hold.release()
            raise

    @property
    def unsettled(self) -> bool:
        """Whether there is a write-ahead file that `rest` could cut."""
        return self._wal.dirty

    def commit(self, drafts: Sequence[Draft]) -> Offset:
        """Commit all drafts or none and return the first one's offset. Durable and visible when it returns.

        Raises LogUnavailable for what the disk did, and the original error for a draft that cannot be stored at all.
        """
        self._guard.check()
        first = self.end() + 1
        self._change(lambda connection: insert(connection, drafts, first))
        self._last = self._acknowledged = first + len(drafts) - 1
        return Offset(first)

    def try_again(self) -> None:
        """After a failure: find out whether commits work again, by one that changes nothing."""
        with suppress(LogUnavailable, DataFolderUnusable):
            self.end()
            self._change(rewrite_version)

    def refusal(self) -> str | None:
        """Why a commit would be refused, as far as it can be told without one. Any thread may ask."""
        return self.failure or self._file.fault() or damage_of(self.path) or self._guard.refusal()

    def settled(self, size: int) -> None:
        """The commit was acknowledged: now there is time for the write-ahead file."""
        self._wal.committed(size)

    def end(self) -> Offset:
        """The newest committed offset. Raises LogUnavailable while the file cannot be read."""
        if self._last is None:
            self._reopen()
        return Offset(self._last or 0)

    def sweep(self, sweep: TopicSweep) -> bool:
        """One step of retention; whether there may be more to do."""
        with translating(self.path):
            more = sweep.step(self._connection)
        self._wal.committed(0)
        return more

    def rest(self) -> None:
        """Nothing happens now: cut the write-ahead file."""
        self._wal.rest()

    def close(self) -> None:
        """Release the files."""
        self._wal.rest()
        with tolerating(sqlite3.Error, doing="closing the log"):
            self._connection.close()
        self._hold.release()

    def _change(self, change: Callable[[sqlite3.Connection], None]) -> None:
        try:
            change(self._connection)
        except BaseException as error:
            self._recover()
            if isinstance(error, sqlite3.Error) and (self._last is None or not isinstance(error, _CONTENT_ERRORS)):
                raise self._failed(translation(error, self.path)) from error
            raise
        self._check_file()
        self.failure = None

    def _check_file(self) -> None:
        """After every commit: only then it is certain into which file it went. Two looks at names cost far less than a sync."""
        fault = self._file.fault() or damage_of(self.path)
        if fault:
            self._last = None
            raise self._failed(LogUnavailable(fault, retry_after=10))

    def _failed(self, error: TidingsError) -> TidingsError:
        self.failure = str(error)
        return error

    def _connect(self, *, create: bool) -> None:
        self._connection = open_writer(self.path, LOG, self._wal_bytes, create=create)
        self._wal = Wal(self._connection, self._wal_bytes)
        with translating(self.path, opening=True):
            self._last = last_offset(self._connection)

    def _reopen(self) -> None:
        """Open the same file again; never another one, and never an empty one in its place."""
        with tolerating(sqlite3.Error, doing="closing the log"):
            self._connection.close()
        fault = self._file.fault() or damage_of(self.path)
        if fault:
            raise self._failed(LogUnavailable(fault, retry_after=10))
        try:
            self._connect(create=False)
        except DataFolderUnusable as error:
            raise self._failed(LogUnavailable(f"the log is unavailable: {error}")) from error
        if (self._last or 0) < self._acknowledged:
            found, self._last = self._last, None
            lost = f"log.db ends at {found}, but events up to {self._acknowledged} were acknowledged; {remedy(self.path.name)}"
            raise self._failed(LogUnavailable(lost))

    def _recover(self) -> None:
        """Forget the failed group and ask the file for the newest offset: it alone knows what was committed.

        When even that fails, the next commit opens the file again.
        """
        self._last = None
        with tolerating(sqlite3.Error, doing="undoing a failed commit"):
            roll_back(self._connection)
            self._last = last_offset(self._connection)
