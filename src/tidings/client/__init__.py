"""A small client of the hub's HTTP API, readers of feeds, and `verify` for who receives deliveries.

Imports nothing of the hub but its errors, and nothing heavy before it is used, so that a command starts quickly.
"""

from typing import TYPE_CHECKING, Any

from tidings.client.horizon import ExpectedToken, verify_horizon_token
from tidings.client.webhooks import NotVerified, verify

if TYPE_CHECKING:
    from tidings.client.feeds import (
        Batch,
        DbApiStore,
        FeedClient,
        FeedEvent,
        HttpxHttp,
        MemoryStore,
        SqliteStore,
        SyncFeedClient,
    )
    from tidings.errors import CursorExpired, CursorMoved

_OF_FEEDS = ("Batch", "DbApiStore", "FeedEvent", "FeedClient", "HttpxHttp", "MemoryStore", "SqliteStore", "SyncFeedClient")
_ERRORS = ("CursorExpired", "CursorMoved")

__all__ = [
    "Batch",
    "CursorExpired",
    "CursorMoved",
    "DbApiStore",
    "ExpectedToken",
    "FeedClient",
    "FeedEvent",
    "HttpxHttp",
    "MemoryStore",
    "NotVerified",
    "SqliteStore",
    "SyncFeedClient",
    "verify",
    "verify_horizon_token",
]


def __getattr__(name: str) -> Any:
    if name in _OF_FEEDS:
        from tidings.client import feeds

        return getattr(feeds, name)
    if name in _ERRORS:
        from tidings import errors

        return getattr(errors, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
