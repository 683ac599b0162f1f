"""A time limit for many short waits at once: one timer for all of them, since a timer for each costs more than the wait."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


class Deadlines:
    """Ends waits that take longer than `limit` seconds, at most a quarter of it late. Belongs to one event loop."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._waiting: dict[asyncio.Task[object], float] = {}
        self._ended: set[asyncio.Task[object]] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def within(self, waiting: Awaitable[T]) -> T:
        """What is waited for. Raises TimeoutError when it takes too long."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        self._waiting[task] = loop.time() + self._limit
        if self._timer is None:
            self._timer = loop.call_later(self._limit / 4, self._look)
        try:
            return await waiting
        except asyncio.CancelledError:
            if task in self._ended:
                task.uncancel()
                raise TimeoutError from None
            raise
        finally:
            self._waiting.pop(task, None)
            self._ended.discard(task)

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._limit / 4, self._look) if self._waiting else None
        now = loop.time()
        for task, deadline in list(self._waiting.items()):
            if deadline > now:
                # They are in the order in which they began.
                break
            self._ended.add(task)
            del self._waiting[task]
            task.cancel()
