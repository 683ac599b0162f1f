"""`GET /feeds`: which feeds there are, and what each promises (FEED-04)."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from tidings.access.principals import Principal, Right
from tidings.delivery.feeds.layout import opened
from tidings.facades.feeds.finding import Feeds, OpenFeed, reads
from tidings.facades.feeds.query import LARGEST_PAGE, LONGEST_WAIT, PAGE
from tidings.facades.parts import Parts
from tidings.registry.feeds import LONGEST_LINE
from tidings.registry.model import Pull, Topic


def listing(parts: Parts, feeds: Feeds, by: Principal) -> dict[str, Any]:
    """Every feed that the caller may read."""
    topics = [topic for name, topic in sorted(parts.snapshot.topics.items()) if by.may(Right.READ, name)]
    mine = [one for _, one in sorted(parts.snapshot.subscriptions.items()) if isinstance(one.delivery, Pull) and reads(by, one)]
    return {
        "feeds": [
            *({"topic": str(topic.name), **_promises(parts, feeds.of_topic(topic), topic)} for topic in topics),
            *({"subscription": str(one.name), **_promises(parts, feeds.of_lane(one), None)} for one in mine),
        ]
    }


def _promises(parts: Parts, feed: OpenFeed, topic: Topic | None) -> dict[str, Any]:
    defaults, settings = parts.settings.topics, feed.settings
    retention = topic.retention if topic is not None else None
    largest = topic.max_event_bytes if topic is not None else None
    return {
        "url": f"/feeds/{quote(feed.label, safe='~:')}",
        "aliases": list(settings.aliases),
        "versions": settings.versions,
        "partitions": len(opened(feed.layout)),
        "exactlyOnce": feed.exactly_once,
        "consistent": feed.consistent,
        "retention": defaults.retention if retention is None else retention,
        "pageSize": {"default": PAGE, "max": LARGEST_PAGE},
        "maxWait": LONGEST_WAIT,
        "lineLimit": {"bytes": LONGEST_LINE, "over": settings.line_limit},
        "maxEventBytes": defaults.max_event_bytes if largest is None else largest,
        "v1Data": settings.v1_data,
    }
