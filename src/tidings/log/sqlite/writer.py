"""The one writer of the embedded log: a thread that commits what waits, in groups.

Appends hand their drafts to the thread and sleep. While one commit is being synced to disk the next group gathers, so
many publishers share one fsync and a lone one waits for no one. The event loop is woken once per group.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import queue
import threading
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from tidings.clock import Clock, SystemClock
from tidings.config import LogSettings
from tidings.errors import LogUnavailable, Overloaded, TidingsError
from tidings.log.port import Draft, Retention
from tidings.log.position import EMBEDDED, START, Marks, Offset, Position, PositionRange, embedded
from tidings.log.sqlite.committer import Committer, DiskGuard, Free, free_bytes
from tidings.log.sqlite.entries import size_of
from tidings.log.sqlite.retention import TopicSweep
from tidings.log.wake import Bell

T = TypeVar("T")

_IDLE_SECONDS = 5.0
_TRY_AGAIN_SECONDS = 1.0

_lines = logging.getLogger("tidings.log")


class _Append:
    """Drafts that wait for their commit, and who waits."""

    __slots__ = ("drafts", "future", "loop", "size")

    def __init__(self, drafts: Sequence[Draft], size: int, loop: asyncio.AbstractEventLoop) -> None:
        self.drafts = drafts
        self.size = size
        self.loop = loop
        self.future: asyncio.Future[Sequence[Position]] = loop.create_future()


class _Job:
    """Something to be done on the writer's thread between two commits."""

    __slots__ = ("call", "future", "loop")

    def __init__(self, call: Callable[[], Any], loop: asyncio.AbstractEventLoop) -> None:
        self.call = call
        self.loop = loop
        self.future: asyncio.Future[Any] = loop.create_future()


class _Stop:
    """The last thing in the queue."""


_Item: TypeAlias = _Append | _Job | _Stop


class SqliteLogWriter:
    """`LogWriter` on log.db. Its methods are called from one event loop at a time; the thread is its own.

    `commits` counts the group commits that succeeded.
    """

    def __init__(self, folder: Path, settings: LogSettings, *, clock: Clock | None = None, free: Free = free_bytes) -> None:
        guard = DiskGuard(folder, settings.disk_reserve, clock or SystemClock(), free)
        self._committer = Committer(folder, settings, guard)
        self._bell = Bell(folder, "log")
        self._queue: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        self._queue_bytes = settings.queue_bytes
        self._group_events = settings.group_events
        self._group_bytes = settings.wal_bytes // 4
        self._held = 0
        self._closing = False
        self._broken = False
        self.commits = 0
        self._thread = threading.Thread(target=self._run, name="tidings-log-writer", daemon=True)
        self._thread.start()

    async def append(self, drafts: Sequence[Draft]) -> Sequence[Position]:
        """See `LogWriter.append`. A caller that is cancelled while it waits cannot know whether its drafts were kept."""
        self._refuse_when_closing()
        if not drafts:
            return ()
        size = sum(map(size_of, drafts))
        if self._held and self._held + size > self._queue_bytes:
            raise Overloaded(
                "too much is waiting to be written", found=self._held, expected=f"at most {self._queue_bytes} bytes"
            )
        self._held += size
        waiting = _Append(drafts, size, asyncio.get_running_loop())
        self._queue.put(waiting)
        return await waiting.future

    async def fence(self, settle: Callable[[Marks], T]) -> T:
        """See `LogWriter.fence`."""
        return await self._between_commits(lambda: settle(embedded(self._committer.end())))

    async def trim(self, retentions: Sequence[Retention], routed: Marks) -> int:
        """See `LogWriter.trim`."""
        sweep = TopicSweep(retentions, routed.get(EMBEDDED, START))
        while await self._between_commits(partial(self._committer.sweep, sweep)):
            pass
        return sweep.gone

    def busy(self) -> bool:
        """See `LogWriter.busy`."""
        return self._held > 0

    def refusal(self) -> str | None:
        """See `LogWriter.refusal`. The disk is looked at, at most once a second, and only its free room."""
        if self._closing:
            return "the writer of the log has stopped: start the hub again" if self._broken else "the log is closed"
        return self._committer.refusal()

    async def close(self) -> None:
        """See `LogWriter.close`."""
        if not self._closing:
            self._closing = True
            self._queue.put(_Stop())
        await asyncio.to_thread(self._thread.join)

    async def _between_commits(self, call: Callable[[], T]) -> T:
        self._refuse_when_closing()
        job = _Job(call, asyncio.get_running_loop())
        self._queue.put(job)
        result: T = await job.future
        return result

    def _refuse_when_closing(self) -> None:
        if self._closing:
            raise LogUnavailable("the log is closed", at=str(self._committer.path))

    def _resolve(self, group: Sequence[_Append], outcome: Offset | Exception) -> None:
        """On the event loop: tell everyone of a group at once."""
        for waiting in group:
            self._held -= waiting.size
            if isinstance(outcome, Exception):
                _fail(waiting.future, _own(outcome))
                continue
            after = outcome + len(waiting.drafts)
            if not waiting.future.done():
                waiting.future.set_result(PositionRange(EMBEDDED, range(outcome, after)))
            outcome = Offset(after)

    # From here on everything runs on the writer's thread.

    def _run(self) -> None:
        """Work until told to stop. Should the work itself break, nobody waits for ever."""
        try:
            self._work()
        except Exception:
            self._broken = True
            _lines.exception("the writer of the log has stopped")
        finally:
            self._closing = True
            self._refuse_the_rest()
            self._committer.close()
            self._bell.close()

    def _work(self) -> None:
        item: _Item | None = None
        while not isinstance(item, _Stop):
            item = self._next()
            while isinstance(item, _Append):
                group, item = self._gather(item)
                self._write(group)
            if isinstance(item, _Job):
                self._do(item)

    def _refuse_the_rest(self) -> None:
        closed = LogUnavailable("the log is closed", at=str(self._committer.path))
        while not self._queue.empty():
            item = self._queue.get_nowait()
            if not isinstance(item, _Stop):
                _call(item.loop, partial(_fail, item.future, _own(closed)))

    def _next(self) -> _Item | None:
        """The next item; None after a while in which nothing came and there was something to do about it."""
        failed = self._committer.failure is not None
        patience = _TRY_AGAIN_SECONDS if failed else _IDLE_SECONDS if self._committer.unsettled else None
        try:
            return self._queue.get(timeout=patience)
        except queue.Empty:
            self._committer.try_again() if failed else self._committer.rest()
            return None

    def _gather(self, first: _Append) -> tuple[list[_Append], _Item | None]:
        """What waits now, as far as it fits into one commit, and the item that did not belong to it."""
        group, count, size = [first], len(first.drafts), first.size
        try:
            while True:
                item = self._queue.get_nowait()
                if not isinstance(item, _Append):
                    return group, item
                count, size = count + len(item.drafts), size + item.size
                if count > self._group_events or size > self._group_bytes:
                    return group, item
                group.append(item)
        except queue.Empty:
            return group, None

    def _write(self, group: Sequence[_Append]) -> None:
        """Commit a group and tell it. What cannot be stored at all fails alone: the others are written without it."""
        drafts = group[0].drafts if len(group) == 1 else list(chain.from_iterable(map(attrgetter("drafts"), group)))
        size = sum(map(attrgetter("size"), group))
        try:
            first = self._committer.commit(drafts)
        except TidingsError as error:
            self._tell(group, error)
        except Exception as error:
            if len(group) == 1:
                _lines.exception("an append cannot be stored")
                self._tell(group, error)
                return
            for waiting in group:
                self._write([waiting])
        else:
            self.commits += 1
            self._tell(group, first)
            self._bell.ring()
            self._committer.settled(size)

    def _tell(self, group: Sequence[_Append], outcome: Offset | Exception) -> None:
        """Wake the event loop once for the whole group."""
        for loop, waiting in groupby(group, attrgetter("loop")):
            members = list(waiting)
            _call(loop, partial(self._resolve, members, outcome))
            if not isinstance(outcome, Exception):
                outcome = Offset(outcome + sum(len(member.drafts) for member in members))

    def _do(self, job: _Job) -> None:
        try:
            result = job.call()
        except Exception as error:
            _call(job.loop, partial(_fail, job.future, error))
        else:
            _call(job.loop, partial(_succeed, job.future, result))


def _call(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(call)
    except RuntimeError:
        _lines.warning("the event loop ended before its appends were acknowledged")


def _own(error: Exception) -> Exception:
    """A copy for one of many waiters: raising one error many times would pile up all their tracebacks on it."""
    mine = copy.copy(error)
    mine.__cause__ = error.__cause__
    return mine


def _succeed(future: asyncio.Future[Any], result: object) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
