"""Waiting for the log to grow: many requests wait, one listener hears the hint."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tidings.log.wake import WakeListener

LOOK_AGAIN = 1.0


class Growth:
    """Wakes everyone who waits when the log has grown, and once a second in any case. Belongs to one event loop."""

    def __init__(self, listener: WakeListener) -> None:
        self._listener = listener
        self._hint: asyncio.Future[None] | None = None
        self._told: set[Callable[[], None]] = set()
        self.over = False

    def tell(self, stopping: Callable[[], None]) -> None:
        """Call this when the hub stops, unless `spare` was called before."""
        self._told.add(stopping)

    def spare(self, stopping: Callable[[], None]) -> None:
        """Do not call this any more. Safe to call twice."""
        self._told.discard(stopping)

    async def wait(self, timeout: float) -> None:
        """Wait for the next hint, at most `timeout` seconds and at most one. Look again afterwards in any case."""
        if self.over:
            return
        if self._hint is None:
            self._hint = asyncio.ensure_future(self._listen())
        await asyncio.wait([self._hint], timeout=min(timeout, LOOK_AGAIN))

    async def _listen(self) -> None:
        try:
            await self._listener.wait_async(LOOK_AGAIN)
        finally:
            self._hint = None

    def nudge(self) -> None:
        """Let everyone who waits look again now: something else has changed."""
        if self._hint is not None:
            self._hint.cancel()

    def end(self) -> None:
        """Let everyone go who waits: the hub is stopping. Nobody waits any more from now on."""
        self.over = True
        for stopping in list(self._told):
            stopping()
        self.nudge()

    def close(self) -> None:
        """Stop listening."""
        self.end()
        self._listener.close()
