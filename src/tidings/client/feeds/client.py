"""`FeedClient`: one feed of any ZeroEventHub or FeedAPI server, read by hand (`discover`, `fetch`) or for good (`run`)."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Self

import msgspec

from tidings.client.feeds import answers, discovery
from tidings.client.feeds.backoff import Backoff
from tidings.client.feeds.discovery import V1, Discovery
from tidings.client.feeds.http import Answer, Http, usual_http
from tidings.client.feeds.lines import Checkpoint, FeedEvent, Lines
from tidings.client.feeds.reader import FeedRun, Handler, ReaderParts
from tidings.client.feeds.requests import FeedAddress, Wishes
from tidings.client.feeds.start_plan import FIRST
from tidings.client.feeds.store import MemoryStore, Store
from tidings.errors import HubProblem, HubUnreachable, Misconfigured

_BODY_LIMIT = 4 << 20
_SILENCE = 60.0

log = logging.getLogger("tidings.feeds")


class FeedClient:
    """A reader of one feed, for one event loop. Both versions; which one is found out by asking (FCL-01).

    `partition_count` is needed for feeds of version 1 only. `start` (`_first`, `_last` or a cursor) counts when nothing is kept in
    `store` yet. `ordered` reads partitions that were closed before those that followed them. `wait` lets the server hold a request
    until there is an event, in seconds; without it an empty feed is asked every `poll_interval`. `multi` reads all partitions of
    version 1 in one request. `cursorset` keeps cursors at the publisher instead. `name` is what the feed is called in the store
    instead of its address, for feeds that move or have several addresses.
    `patience` is how long a server may be in trouble, in seconds, before a reading that does not follow ends with the error.
    """

    def __init__(
        self,
        url: str,
        partition_count: int | None = None,
        start: str = FIRST,
        *,
        page_size: int | None = None,
        wait: int | None = None,
        event_types: Sequence[str] | None = None,
        ordered: bool = True,
        store: Store | None = None,
        http: Http | None = None,
        poll_interval: float = 1.0,
        multi: bool = False,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        event_headers: str | None = None,
        cursorset: str | None = None,
        max_batch: int = 1000,
        backoff: Backoff | None = None,
        name: str | None = None,
        patience: float = 300.0,
    ) -> None:
        if partition_count is not None and partition_count < 1:
            raise Misconfigured("there is no such number of partitions", at="partition_count", found=partition_count)
        self.url = url
        self._feed = FeedAddress(url)
        self._count = partition_count
        self._wishes = Wishes(page_size, wait, event_types, event_headers, cursorset)
        self._store: Store = store if store is not None else MemoryStore()
        self._http: Http = http if http is not None else usual_http(url)
        self._headers = {**({"authorization": f"Bearer {token}"} if token else {}), **(headers or {})}
        self._ways = ReaderParts(start, ordered, multi, poll_interval, max_batch, backoff or Backoff(), patience)
        self._name = name or self._feed.name
        self._known: Discovery | None = None
        self._types = None if event_types is None else frozenset(one.strip().casefold() for one in event_types)
        self._warned: set[str] = set()

    @property
    def store(self) -> Store:
        """Where cursors are kept."""
        return self._store

    @property
    def name(self) -> str:
        """What the feed is called, by its address unless a name was given."""
        return self._name

    def feed_name(self, found: Discovery) -> str:
        """What the feed is called in the store. Cursors of version 1 belong to a number of partitions."""
        return f"{self._name}?n={len(found.partitions)}" if found.version == V1 else self._name

    async def discover(self) -> Discovery:
        """Ask the feed about itself; also says which version it speaks. Raises HubProblem, HubUnreachable, FeedUnreadable."""
        async with self._asked(self.url, _SILENCE) as answer:
            body = await _body(answer)
            if not answers.is_page(answer.status):
                error = answers.undiscovered(answers.refusal(answer.status, answer.headers, body, url=self.url), self.url)
                if not answers.is_version_1(answer.status) or not isinstance(error, HubProblem):
                    raise error
                if self._count is None:
                    raise answers.without_count(error)
                self._known = discovery.of_version_1(self._count)
            else:
                self._known = discovery.read(body)
        return self._known

    async def fetch(self, partition: str | int, cursor: str = FIRST) -> AsyncGenerator[FeedEvent | Checkpoint, None]:
        """One page: the events after a cursor, with checkpoints between them. Discovers the feed first if that was not done yet.

        Raises TokenStale when the partitions have changed (call `discover`), CursorExpired, HubProblem, HubUnreachable, BadLine.
        """
        known = self._known or await self.discover()
        async with aclosing(self.pages(known, {str(partition): cursor}, self._wishes)) as chunks:
            async for said in chunks:
                for one in said:
                    yield one

    async def run(self, handler: Handler, *, follow: bool = True) -> None:
        """Read the feed, call `handler(tx, batch)` for every batch that ends at a checkpoint, and save its cursor in the same
        transaction. The handler may be a coroutine function. With `follow` False, return when everything there is was read.
        """
        await FeedRun(self, self._store, self._ways, self._wishes, handler, follow).run()

    async def close(self) -> None:
        """Let go of connections. The store is the caller's."""
        await self._http.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def pages(
        self, known: Discovery, cursors: Mapping[str, str], wishes: Wishes
    ) -> AsyncGenerator[list[FeedEvent | Checkpoint], None]:
        """One page of some partitions as it comes in, without events of types that were not asked for (FCL-21)."""
        async with self._asked(self._feed.page(known, cursors, wishes), _SILENCE + (wishes.wait or 0)) as answer:
            await _check(answer, self.url)
            lines = Lines(next(iter(cursors)), version=known.version)
            try:
                async for chunk in answer.chunks:
                    if said := lines.feed(chunk):
                        yield said
            except OSError as error:
                raise self._unreachable(error) from error
            if said := lines.close():
                yield said

    def wanted(self, events: Sequence[FeedEvent]) -> tuple[FeedEvent, ...]:
        """The events of the types asked for: a server is free to send others as well (FCL-21)."""
        if self._types is None:
            return events if isinstance(events, tuple) else tuple(events)
        return tuple(event for event in events if self._is_wanted(event))

    async def keep_at_publisher(self, known: Discovery, partition: str, cursor: str) -> None:
        """Make the publisher keep a cursor under the name of the cursor set."""
        if self._wishes.cursorset is not None:
            url = self._feed.keeping(known, partition, cursor, self._wishes.cursorset)
            async with self._asked(url, _SILENCE) as answer:
                await _check(answer, self.url)

    def warn_once(self, what: str) -> None:
        """Say something about this feed, but not on every page."""
        if what not in self._warned:
            self._warned.add(what)
            log.warning("%s: %s", self.url, what)

    def _is_wanted(self, event: FeedEvent) -> bool:
        try:
            type = _typed.decode(event.raw).type
        except msgspec.MsgspecError:
            type = None
        if type is None:
            self.warn_once("events come without a type, so that types cannot be chosen; they are all delivered")
            return True
        return type.casefold() in (self._types or ())

    @asynccontextmanager
    async def _asked(self, url: str, silence: float) -> AsyncIterator[Answer]:
        reached = False
        try:
            async with self._http.get(url, self._headers, silence) as answer:
                reached = True
                yield answer
        except OSError as error:
            raise self._unreachable(error, reached) from error

    def _unreachable(self, error: Exception, reached: bool = True) -> HubUnreachable:
        what = "broke off its answer" if reached else "does not answer"
        why = str(error) or ("it took too long" if isinstance(error, TimeoutError) else type(error).__name__)
        unreachable = HubUnreachable(f"{self.url} {what} ({why})")
        unreachable.retry_after = 0
        return unreachable


class _Typed(msgspec.Struct):
    type: str | None = None


_typed = msgspec.json.Decoder(_Typed)


async def _check(answer: Answer, url: str) -> None:
    if not answers.is_page(answer.status):
        raise answers.refusal(answer.status, answer.headers, await _body(answer), url=url)


async def _body(answer: Answer) -> bytes:
    """A small answer as a whole; of a large one, which is no discovery and no problem, only the beginning."""
    body = bytearray()
    async for chunk in answer.chunks:
        body += chunk
        if len(body) > _BODY_LIMIT:
            break
    return bytes(body)
