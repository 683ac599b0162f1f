"""Reading feeds: ZeroEventHub (v1) and FeedAPI (v2), from this hub or any other server, exactly once into your own database.

`FeedClient` is asynchronous, `SyncFeedClient` its plain form. Imports nothing of the hub but its errors.
"""

from tidings.client.feeds.backoff import Backoff
from tidings.client.feeds.client import FeedClient
from tidings.client.feeds.dbapi import DbApiStore
from tidings.client.feeds.discovery import Discovery, Partition
from tidings.client.feeds.http import Http
from tidings.client.feeds.lines import Batch, Checkpoint, Event
from tidings.client.feeds.plan import FIRST, LAST
from tidings.client.feeds.run import Handler
from tidings.client.feeds.sqlite import SqliteStore
from tidings.client.feeds.store import Kept, MemoryStore, Store
from tidings.client.feeds.sync import SyncFeedClient

__all__ = [
    "FIRST",
    "LAST",
    "Backoff",
    "Batch",
    "Checkpoint",
    "DbApiStore",
    "Discovery",
    "Event",
    "FeedClient",
    "Handler",
    "Http",
    "Kept",
    "MemoryStore",
    "Partition",
    "SqliteStore",
    "Store",
    "SyncFeedClient",
]
