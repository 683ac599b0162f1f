"""Reading feeds: ZeroEventHub (v1) and FeedAPI (v2), from this hub or any other server, exactly once into your own database.

`FeedClient` is asynchronous, `SyncFeedClient` its plain form. Imports nothing of the hub but its errors.
"""

from typing import TYPE_CHECKING, Any

from tidings.client.feeds.backoff import Backoff
from tidings.client.feeds.client import FeedClient
from tidings.client.feeds.dbapi import DbApiStore
from tidings.client.feeds.discovery import Discovery, Partition
from tidings.client.feeds.http import Http, PlainHttp
from tidings.client.feeds.lines import Batch, Checkpoint, FeedEvent
from tidings.client.feeds.reader import Handler
from tidings.client.feeds.sqlite import SqliteStore
from tidings.client.feeds.start_plan import FIRST, LAST
from tidings.client.feeds.store import MemoryStore, Store, StoredCursor
from tidings.client.feeds.sync import SyncFeedClient

if TYPE_CHECKING:
    from tidings.client.feeds.httpx import HttpxHttp

__all__ = [
    "FIRST",
    "LAST",
    "Backoff",
    "Batch",
    "Checkpoint",
    "DbApiStore",
    "Discovery",
    "FeedClient",
    "FeedEvent",
    "Handler",
    "Http",
    "HttpxHttp",
    "MemoryStore",
    "Partition",
    "PlainHttp",
    "SqliteStore",
    "Store",
    "StoredCursor",
    "SyncFeedClient",
]


def __getattr__(name: str) -> Any:
    # httpx takes long to import, and few need it.
    if name == "HttpxHttp":
        from tidings.client.feeds.httpx import HttpxHttp

        return HttpxHttp
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
