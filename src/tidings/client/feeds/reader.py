"""Reading for good: one task per partition, batches that end at a checkpoint, and starting over when partitions change.

Nothing is acknowledged in part: handler and cursor are one transaction, and what came after the last checkpoint is read again.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Protocol

from tidings.client.feeds import answers
from tidings.client.feeds.backoff import Backoff
from tidings.client.feeds.discovery import V1, Discovery
from tidings.client.feeds.lines import Batch, Checkpoint, FeedEvent
from tidings.client.feeds.page import AnswerPage, without_cursor
from tidings.client.feeds.requests import RESUME, Wishes
from tidings.client.feeds.start_plan import FIRST, LAST, PartitionStart, plan
from tidings.client.feeds.store import Store, StoredCursor
from tidings.errors import HubProblem, HubUnreachable, TokenStale

Handler = Callable[[Any, Batch], Awaitable[None] | None]

_HOLD = 0.1
"""Batches that are not full wait so long for more of the same answer, in seconds."""

_QUICK_PAGES = 20
_STEP = 0.01
"""Pages that only move the cursor are asked for at once so many times, then with this pause: never a tight loop (FCL-19)."""


@dataclass(frozen=True, slots=True)
class ReaderParts:
    """How a feed is followed."""

    start: str
    ordered: bool
    multi: bool
    poll_interval: float
    max_batch: int
    backoff: Backoff
    patience: float


class ReadingOptions(Protocol):
    """What a run needs of the client."""

    async def discover(self) -> Discovery: ...
    def feed_name(self, found: Discovery) -> str: ...
    def pages(
        self, known: Discovery, cursors: Mapping[str, str], wishes: Wishes
    ) -> AsyncGenerator[list[FeedEvent | Checkpoint], None]: ...
    def wanted(self, events: Sequence[FeedEvent]) -> tuple[FeedEvent, ...]: ...
    async def keep_at_publisher(self, known: Discovery, partition: str, cursor: str) -> None: ...
    def warn_once(self, what: str) -> None: ...


class _ByHandler(Exception):
    """Raised where batches are handled. What looks like trouble with the feed may be another server's, and is not tried again."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


class FeedRun:
    """One call of `run`: discover, read, and again when the partitions have changed."""

    def __init__(
        self, client: ReadingOptions, store: Store, ways: ReaderParts, wishes: Wishes, handler: Handler, follow: bool
    ) -> None:
        self.client, self.store, self.ways, self.handler, self.follow = client, store, ways, handler, follow
        # Without following there is nothing to wait for.
        self.wishes = wishes if follow else replace(wishes, wait=None)
        self.turn = asyncio.Lock()
        self.progress = False
        self._progressed = time.monotonic()

    async def run(self) -> None:
        stale = 0
        while True:
            known = await self._discovered()
            self.progress = False
            try:
                await self._read(known)
                if not self.follow:
                    return
            except TokenStale as error:
                self.give_up(error)
            except _ByHandler as failed:
                raise failed.error from failed.error.__cause__
            # All is closed and finished, or the token has changed: look again, but give a server that cannot decide some peace.
            stale = 0 if self.progress else stale + 1
            await asyncio.sleep(self.ways.backoff.plain(stale))

    async def _discovered(self) -> Discovery:
        tries = 0
        while True:
            try:
                return await self.client.discover()
            except HubUnreachable as error:
                self.give_up(error)
                self.client.warn_once(f"{error}; it is tried again")
                await self.pause(tries, error.retry_after)
                tries += 1

    async def _read(self, known: Discovery) -> None:
        feed = self.client.feed_name(known)
        kept = dict(self.store.load(feed))
        start = RESUME if self.wishes.cursorset is not None else self.ways.start
        planned = plan(known, kept, start, ordered=self.ways.ordered)
        if not kept and start not in (FIRST, LAST, RESUME):
            await all_of([self._try(known, place) for place in planned.places if place.cursor == start])
        if planned.saves:
            with self.store.transaction() as tx:
                for partition, row in planned.saves.items():
                    self.store.save(tx, feed, partition, row, kept.get(partition))
        kept |= planned.saves
        together = self.ways.multi and known.version == V1
        groups = [planned.places] if together else [(place,) for place in planned.places]
        finished = {place.partition.id: asyncio.Event() for place in planned.places}
        await all_of([_Reader(self, known, feed, group, kept, finished).run() for group in groups if group])

    async def _try(self, known: Discovery, place: PartitionStart) -> None:
        """Ask once with a cursor that a person gave: one that the feed refuses is not to be kept."""
        wishes = replace(self.wishes, page_size=1, wait=None, cursorset=None)
        tries = 0
        while True:
            try:
                async with aclosing(self.client.pages(known, {place.partition.id: place.cursor}, wishes)) as chunks:
                    async for _ in chunks:
                        pass
                return
            except HubUnreachable as error:
                self.give_up(error)
                await self.pause(tries, error.retry_after)
                tries += 1

    def progressed(self) -> None:
        """Something was read."""
        self.progress, self._progressed = True, time.monotonic()

    def give_up(self, error: Exception) -> None:
        """Raise the error when reading is to end some time and nothing was read for as long as patience lasts."""
        if not self.follow and time.monotonic() - self._progressed > self.ways.patience:
            raise error

    async def pause(self, tries: int, retry_after: float = 0.0) -> None:
        """Wait before the next try."""
        await asyncio.sleep(self.ways.backoff.jittered(tries, random.random(), retry_after))


class _Reader:
    """Reads some partitions with one request after the other: mostly one partition."""

    def __init__(
        self,
        run: FeedRun,
        known: Discovery,
        feed: str,
        places: Sequence[PartitionStart],
        kept: Mapping[str, StoredCursor],
        finished: Mapping[str, asyncio.Event],
    ) -> None:
        self._run, self._known, self._feed, self._places = run, known, feed, places
        self._rows = {place.partition.id: kept.get(place.partition.id) for place in places}
        self._cursors = {place.partition.id: place.cursor for place in places}
        self._finished = finished
        self._failures = 0
        self._idle_steps = 0

    async def run(self) -> None:
        for place in self._places:
            if place.after is not None and place.after in self._finished:
                await self._finished[place.after].wait()
        while self._cursors:
            began = time.monotonic()
            try:
                page = await self._page()
            except HubUnreachable as error:
                self._run.give_up(error)
                await self._run.pause(self._failures, error.retry_after)
                self._failures += 1
                continue
            except HubProblem as error:
                if not answers.is_unknown_resume(error) or RESUME not in self._cursors.values():
                    raise
                start = self._run.ways.start
                self._cursors = {id: cursor if cursor != RESUME else start for id, cursor in self._cursors.items()}
                continue
            if await self._is_over(page):
                return
            await self._rest(page, time.monotonic() - began)

    async def _page(self) -> AnswerPage:
        """Read one page and apply what it says. Raises what went wrong; what was applied until then stays applied."""
        run, page, applied = self._run, AnswerPage(self._cursors), time.monotonic()
        # After trouble it is asked without waiting: there may be no seat left, or a proxy that ends whatever takes long.
        wishes = replace(run.wishes, wait=None) if self._failures else run.wishes
        try:
            async with aclosing(run.client.pages(self._known, dict(self._cursors), wishes)) as chunks:
                async for chunk in chunks:
                    for batch in page.take(chunk, run.ways.max_batch):
                        await self._apply(batch)
                    if time.monotonic() - applied > _HOLD:
                        await self._apply_rest(page)
                        applied = time.monotonic()
        except HubUnreachable:
            # What has its checkpoint is not read again, or a server that always breaks off would never be read to its end.
            await self._apply_rest(page)
            raise
        await self._apply_rest(page)
        return page

    async def _apply_rest(self, page: AnswerPage) -> None:
        for batch in page.rest():
            await self._apply(batch)

    async def _apply(self, batch: Batch) -> None:
        """One transaction: what the handler does, and the cursor."""
        run, id = self._run, batch.partition
        row = StoredCursor(batch.cursor)
        events = run.client.wanted(batch.events)
        if row != self._rows[id] or events:
            try:
                await self._transact(replace(batch, events=events, exactly_once=self._is_exactly_once(id)), row)
            except Exception as error:
                raise _ByHandler(error) from error
        self._rows[id], self._cursors[id] = row, batch.cursor
        run.progressed()
        self._failures = 0

    def _is_exactly_once(self, id: str) -> bool:
        """Read without order, a partition may go back to a farther ancestor that was not read to its end, and repeat (FCL-12)."""
        partition = self._known.get(id)
        may_go_back = not self._run.ways.ordered and partition is not None and len(partition.cursors_of) > 1
        return self._known.exactly_once and not may_go_back

    async def _transact(self, batch: Batch, row: StoredCursor) -> None:
        run = self._run
        async with run.turn:
            with run.store.transaction() as tx:
                if batch.events:
                    done = run.handler(tx, batch)
                    if done is not None:
                        await done
                run.store.save(tx, self._feed, batch.partition, row, self._rows[batch.partition])

    async def _is_over(self, page: AnswerPage) -> bool:
        """Mark finished partitions (FCL-11); say whether there is nothing left to do here.

        A complete answer without any cursor counts as the end of a closed partition: some servers end them so.
        """
        for id in (*page.at_the_end(), *page.unmentioned()):
            partition = self._known.get(id)
            if partition is not None and partition.closed:
                await self._finish(id)
        if self._run.follow or not (page.is_at_the_end or page.is_silent):
            return not self._cursors
        for id, cursor in self._cursors.items():
            await self._run.client.keep_at_publisher(self._known, id, cursor)
        return True

    async def _finish(self, id: str) -> None:
        row = StoredCursor(self._cursors.pop(id), finished=True)
        async with self._run.turn:
            with self._run.store.transaction() as tx:
                self._run.store.save(tx, self._feed, id, row, self._rows[id])
        self._rows[id] = row
        self._finished[id].set()

    async def _rest(self, page: AnswerPage, took: float) -> None:
        """Wait as long as the page suggests: not at all while there is more (FCL-17, FCL-19)."""
        run = self._run
        if not page.said_anything:
            if page.has_lost_events:
                run.give_up(without_cursor())
            run.client.warn_once("an answer came without any cursor; it is asked again from the same place")
            await run.pause(self._failures)
            self._failures += 1
        elif page.events:
            self._idle_steps = 0
        elif page.is_at_the_end:
            # A server that does not know `wait` answers at once: then it is asked no more often than without.
            await asyncio.sleep(max(0.0, run.ways.poll_interval - (took if run.wishes.wait else 0.0)))
        else:
            self._idle_steps += 1
            await asyncio.sleep(0 if self._idle_steps < _QUICK_PAGES else min(_STEP, run.ways.poll_interval))


async def all_of(work: Sequence[Any]) -> None:
    """Do everything at the same time. The first error ends all of it and is raised as it is."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION) if tasks else (set(), set())
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        if (error := task.exception()) is not None:
            raise error
