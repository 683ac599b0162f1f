"""Circuit breakers in Horizon's words (HOR-129)."""

from __future__ import annotations

from typing import Any

from tidings.clock import Instant, rfc3339
from tidings.delivery.push.reader import BreakerView
from tidings.delivery.push.records.causes import without_query
from tidings.doors.api_parts import ApiParts
from tidings.doors.horizon.callers import Client
from tidings.doors.horizon.views.states import topic_of
from tidings.registry.model import Subscription

CLOSED = "CLOSED"


def shown_breaker(breaker: BreakerView | None, subscription: Subscription, parts: ApiParts) -> dict[str, Any]:
    """The entry of a subscription's breaker; one that never opened is closed."""
    topic = topic_of(subscription)
    shown: dict[str, Any] = {
        "subscriptionId": subscription.name.name,
        "eventType": topic.name,
        "environment": topic.namespace.partition("/")[2],
        "status": CLOSED if breaker is None else breaker.status.upper(),
    }
    if breaker is None:
        return shown
    probe = None
    if breaker.probed_at is not None:
        probe = {"time": time_of(breaker.probed_at), "code": breaker.probe}
    return {
        **shown,
        "originMessageId": parts.ids.text_of(subscription.lane, *breaker.origin) if breaker.origin else None,
        "lastOpened": time_of(breaker.last_opened),
        "lastModified": time_of(breaker.modified),
        "loopCounter": breaker.loops,
        "postponedUntil": time_of(breaker.postponed_until),
        "lastProbe": probe,
    }


def shown_callback(url: str, client: Client, subscription: Subscription) -> str:
    """A callback as somebody may see it: its query and user often hold a secret, which is the subscriber's own."""
    return url if client.subscribes_as(subscription.owner) else without_query(url)


def time_of(instant: Instant | None) -> str | None:
    """A moment as it is shown."""
    return None if instant is None else rfc3339(instant)
