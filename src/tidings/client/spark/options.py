"""What can be said after `format("tidings-feed")`, and the client that is made of it.

| option | means | default |
|---|---|---|
| `url` | address of the feed | needed |
| `start` | `_first`, `_last` or a cursor, for a new query | `_first` |
| `eventTypes` | types to read, `a;b` | all |
| `partitionCount` | number of partitions of a feed of version 1 | asked of the feed |
| `ordered` | a closed partition is read before those that followed it; without, redistributed events may come twice | true |
| `maxEventsPerBatch` | events of one micro-batch | 10000 |
| `pageSize` | events asked for in one request | 1000 |
| `pollInterval` | seconds between two looks at a feed without news | 1 |
| `patience` | seconds for which a server may be away while a batch is read | 300 |
| `token` | bearer token | none |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidings.client.feeds.backoff import Backoff
from tidings.client.feeds.client import FeedClient
from tidings.client.feeds.requests import FeedAddress, Wishes
from tidings.client.feeds.start_plan import FIRST
from tidings.errors import Misconfigured

_KNOWN = {
    name.lower(): name
    for name in (
        *("url", "start", "eventTypes", "partitionCount", "ordered", "maxEventsPerBatch"),
        *("pageSize", "pollInterval", "patience", "token"),
    )
}


@dataclass(frozen=True, slots=True)
class Options:
    """The options, read and checked. Travels to the executors; shows no token."""

    url: str
    start: str = FIRST
    event_types: tuple[str, ...] | None = None
    partition_count: int | None = None
    ordered: bool = True
    max_events: int = 10_000
    page_size: int = 1000
    poll_interval: float = 1.0
    patience: float = 300.0
    token: str | None = None

    def __repr__(self) -> str:
        return f"Options({self.url!r})"

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Options:
        """From what Spark passes on. Raises Misconfigured."""
        named = {name.lower(): value for name, value in given.items()}
        unknown = sorted(set(named) - set(_KNOWN))
        if unknown:
            raise Misconfigured("there is no such option", found=unknown[0], expected=f"one of {', '.join(_KNOWN.values())}")
        if not named.get("url"):
            raise Misconfigured("the address of the feed is missing", expected='.option("url", "http://…/feeds/orders")')
        FeedAddress(named["url"])
        types = named.get("eventtypes")
        count = _number(named, "partitioncount", 1, int, None)
        return cls(
            named["url"],
            named.get("start", FIRST),
            None if types is None else tuple(one.strip() for one in types.split(";") if one.strip()),
            count,
            _yes(named, "ordered"),
            _number(named, "maxeventsperbatch", 1, int, 10_000),
            _number(named, "pagesize", 1, int, 1000),
            _number(named, "pollinterval", 0, float, 1.0),
            _number(named, "patience", 0, float, 300.0),
            named.get("token"),
        )

    @property
    def wishes(self) -> Wishes:
        """What is asked of every page."""
        return Wishes(page_size=min(self.page_size, self.max_events), event_types=self.event_types)

    @property
    def backoff(self) -> Backoff:
        """Waits that fit the patience."""
        return Backoff(min(0.2, self.patience / 100), min(5.0, self.patience / 10))

    def client(self) -> FeedClient:
        """A client of the feed, for one event loop."""
        return FeedClient(self.url, self.partition_count, event_types=self.event_types, token=self.token)


def _number(given: Mapping[str, str], name: str, least: float, kind: Any, otherwise: Any) -> Any:
    text = given.get(name)
    if text is None:
        return otherwise
    try:
        value = kind(text)
    except ValueError:
        value = None
    if value is None or not value >= least:
        raise Misconfigured("this is no such number", at=_KNOWN[name], found=text, expected=f"at least {least:g}")
    return value


def _yes(given: Mapping[str, str], name: str) -> bool:
    text = given.get(name, "true").lower()
    if text not in ("true", "false"):
        raise Misconfigured("this is neither true nor false", at=_KNOWN[name], found=text)
    return text == "true"
