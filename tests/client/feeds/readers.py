"""What the tests of reading share: a table that a handler fills, and readers that do not wait."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.client.feeds.foreign import Foreign
from tidings.client.feeds import Backoff, Batch, FeedClient, SqliteStore

SOON = Backoff(0.01, 0.05)


class Table:
    """The consumer's database: every applied event with its key, in the order of applying, and the cursors beside it."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.store = SqliteStore(file)
        self.store.connection.execute("CREATE TABLE IF NOT EXISTS applied (at INTEGER PRIMARY KEY, n INTEGER, key TEXT)")

    def apply(self, tx: Any, batch: Batch) -> None:
        for event in batch:
            tx.execute("INSERT INTO applied (n, key) VALUES (?, ?)", (event.data["data"]["n"], event.data["data"]["key"]))

    @property
    def numbers(self) -> list[int]:
        return [n for (n,) in self.store.connection.execute("SELECT n FROM applied ORDER BY at")]

    def by_key(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for key, n in self.store.connection.execute("SELECT key, n FROM applied ORDER BY at"):
            found.setdefault(key, []).append(n)
        return found


def a_client(feed: Foreign, store: Any = None, **options: Any) -> FeedClient:
    return FeedClient(feed.url, store=store, **{"backoff": SOON, "poll_interval": 0.01, **options})


def read_all(feed: Foreign, table: Table, **options: Any) -> None:
    """Read everything there is now."""

    async def go() -> None:
        async with a_client(feed, table.store, **options) as client:
            await client.run(table.apply, follow=False)

    asyncio.run(asyncio.wait_for(go(), 240))


def published(feed: Foreign, count: int, keys: int = 5, since: int = 0) -> list[int]:
    numbers = list(range(since, since + count))
    for n in numbers:
        feed.cloudevent(f"k{n % keys}", n)
    return numbers


def in_order_of_keys(table: Table) -> bool:
    return all(numbers == sorted(numbers) for numbers in table.by_key().values())
