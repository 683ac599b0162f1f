"""The same client for programs without an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Self

from tidings.client.feeds.client import FeedClient
from tidings.client.feeds.discovery import Discovery
from tidings.client.feeds.lines import Checkpoint, FeedEvent
from tidings.client.feeds.reader import Handler
from tidings.client.feeds.start_plan import FIRST


class SyncFeedClient:
    """`FeedClient` with plain calls; takes the same arguments. For one thread; Ctrl-C ends `run` in order."""

    def __init__(self, url: str, *args: Any, **options: Any) -> None:
        self.client = FeedClient(url, *args, **options)
        self._runner = asyncio.Runner()

    def discover(self) -> Discovery:
        """See FeedClient.discover."""
        return self._runner.run(self.client.discover())

    def fetch(self, partition: str | int, cursor: str = FIRST) -> Iterator[FeedEvent | Checkpoint]:
        """See FeedClient.fetch."""
        page = self.client.fetch(partition, cursor)
        try:
            while (one := self._runner.run(_next(page))) is not None:
                yield one
        finally:
            self._runner.run(page.aclose())

    def run(self, handler: Handler, *, follow: bool = True) -> None:
        """See FeedClient.run."""
        self._runner.run(self.client.run(handler, follow=follow))

    def close(self) -> None:
        """Let go of connections. The store is the caller's."""
        self._runner.run(self.client.close())
        self._runner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


async def _next(page: Any) -> FeedEvent | Checkpoint | None:
    return await anext(page, None)
