"""Cursor sets: where readers said they were, kept for them by the hub under a name of their own (FEED-30 to FEED-38)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple, Protocol

from tidings.clock import Instant
from tidings.log.position import Offset


class SetKey(NamedTuple):
    """Which set of which reader of which feed. `n`: the number of partitions of v1, 0 for v2; `feed` is the feed's own key."""

    consumer: str
    feed: str
    name: str
    version: str
    n: int


class KeptCursor(NamedTuple):
    """One cursor that is kept, and when it was last used."""

    key: SetKey
    partition: int
    offset: Offset
    used: Instant


class CursorSets(Protocol):
    """Where cursor sets are kept. One writer."""

    def save(self, kept: Sequence[KeptCursor]) -> None:
        """Store these over what is there; durable when it returns."""

    def load(self, key: SetKey) -> Mapping[int, Offset]:
        """The cursors of a set by partition."""

    def held(self, consumer: str) -> AbstractSet[SetKey]:
        """The sets of a consumer. Very cheap: asked whenever a cursor is to be kept."""

    def feeds(self) -> AbstractSet[str]:
        """The feeds that any set belongs to."""

    def delete(self, feed: str, consumer: str, name: str) -> int:
        """Forget a set; how many cursors it had."""

    def forget(self, unused_since: Instant | None, feeds: AbstractSet[str]) -> int:
        """Forget the sets of which no cursor was used since then (None: none), and all of these feeds; how many cursors."""


class CursorOverview(Protocol):
    """What is kept, for whoever shows it."""

    def listed(self, feed: str | None = None) -> Sequence[KeptCursor]:
        """Every cursor, of one feed or of all."""

    def used_last(self, most: int) -> Sequence[KeptCursor]:
        """The cursors of all feeds that were used last, at most so many."""


class Keeper:
    """Saves cursors of many requests together: whoever asks while one save is synced to disk shares the next."""

    def __init__(self, sets: CursorSets) -> None:
        self._sets = sets
        self._waiting: list[tuple[Sequence[KeptCursor], asyncio.Future[None]]] = []
        self._task: asyncio.Task[None] | None = None

    async def keep(self, kept: Sequence[KeptCursor]) -> None:
        """Durable when it returns."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((kept, future))
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._work())
        await future

    async def _work(self) -> None:
        while self._waiting:
            group, self._waiting = self._waiting, []
            try:
                await asyncio.to_thread(self._sets.save, [one for kept, _ in group for one in kept])
            except Exception as error:
                outcome: Exception | None = error
            else:
                outcome = None
            for _, future in group:
                if not future.done():
                    future.set_result(None) if outcome is None else future.set_exception(outcome)
