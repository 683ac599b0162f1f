"""`GET /feeds`: which feeds there are, and what each promises (FEED-04)."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from tidings.access.principals import Principal, Right
from tidings.delivery.feeds.partitions import opened
from tidings.doors.api_parts import ApiParts
from tidings.doors.feeds.feed_lookup import Feeds, OpenFeed, reads
from tidings.doors.feeds.query import LARGEST_PAGE, LONGEST_WAIT, PAGE
from tidings.registry.feeds import LONGEST_LINE
from tidings.registry.model import Pull, Subscription, Topic
from tidings.registry.rules.approvals import sourced


def listing(parts: ApiParts, feeds: Feeds, by: Principal) -> dict[str, Any]:
    """Every feed that the caller may read."""
    topics = [topic for name, topic in sorted(parts.snapshot.topics.items()) if by.may(Right.READ, name)]
    mine = [one for _, one in sorted(parts.snapshot.subscriptions.items()) if isinstance(one.delivery, Pull) and reads(by, one)]
    return {
        "feeds": [
            *({"topic": str(topic.name), **_of_topic(parts, feeds, topic)} for topic in topics),
            *({"subscription": str(one.name), **_of_lane(parts, feeds, one)} for one in mine),
        ]
    }


def _of_topic(parts: ApiParts, feeds: Feeds, topic: Topic) -> dict[str, Any]:
    defaults, largest = parts.settings.topics, topic.max_event_bytes
    retention = defaults.retention if topic.retention is None else topic.retention
    return _promises(feeds.of_topic(topic), retention, defaults.max_event_bytes if largest is None else largest)


def _of_lane(parts: ApiParts, feeds: Feeds, subscription: Subscription) -> dict[str, Any]:
    topics, default = parts.snapshot.topics, parts.settings.topics.max_event_bytes
    limits = [topics[name].max_event_bytes for name in sourced(subscription, topics)]
    largest = max((default if limit is None else limit for limit in limits), default=default)
    return _promises(feeds.of_lane(subscription), feeds.kept_by(subscription).seconds, largest)


def _promises(feed: OpenFeed, retention: float, largest: int) -> dict[str, Any]:
    settings = feed.settings
    return {
        "url": f"/feeds/{quote(feed.label, safe='~:')}",
        "aliases": list(settings.aliases),
        "versions": settings.versions,
        "partitions": len(opened(feed.layout)),
        "exactlyOnce": feed.identity.exactly_once,
        "consistent": feed.consistent,
        "retention": retention,
        "pageSize": {"default": PAGE, "max": LARGEST_PAGE},
        "maxWait": LONGEST_WAIT,
        "lineLimit": {"bytes": LONGEST_LINE, "over": settings.line_limit},
        "maxEventBytes": largest,
        "v1Data": settings.v1_data,
    }
