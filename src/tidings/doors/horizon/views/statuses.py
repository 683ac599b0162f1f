"""Status data of deliveries in Horizon's words (HOR-148, HOR-150)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidings.delivery.push.reader import DeliveryRecord
from tidings.delivery.push.records.causes import DELETED, sentence, target_of
from tidings.delivery.push.records.status import OPEN
from tidings.doors.api_parts import ApiParts
from tidings.doors.deliveries.statuses import EventStatus
from tidings.doors.horizon.documents.subscriptions import RETENTIONS
from tidings.doors.horizon.names import ENVIRONMENT
from tidings.doors.horizon.views.breakers import time_of
from tidings.doors.horizon.views.dropped_events import Dropped
from tidings.doors.horizon.views.states import topic_of
from tidings.events.stored import event_from, note_in
from tidings.log.cursor import cursor_at
from tidings.log.port import Entry
from tidings.log.position import Position
from tidings.registry.model import Push, Subscription
from tidings.registry.rules.retention import RetentionPeriod, Retentions

DROPPED = "DROPPED"
WORDS: Mapping[str, str] = {
    "processed": "PROCESSED",
    "waiting": "WAITING",
    "sending": "DELIVERING",
    "retrying": "DELIVERING",
    "redelivering": "REDELIVERING",
    "delivered": "DELIVERED",
    "dead": "FAILED",
    "expired": "FAILED",
    "skipped": "FAILED",
    "deleted": "FAILED",
    "unrecorded": "UNKNOWN",
}
"""The core's states. UNKNOWN: final, and what came of it was recorded longer ago than records are kept."""

STATUSES = ("PROCESSED", "DELIVERING", "DELIVERED", "WAITING", "REDELIVERING", "FAILED", DROPPED, "DUPLICATE")
_ERRORS: Mapping[str, str] = {
    "expired": "RetentionExpired",
    "skipped": "Skipped",
    DELETED: "SubscriptionDeleted",
    "timeout": "ReadTimeout",
    "connect-timeout": "ConnectTimeout",
    "connect-failed": "ConnectException",
    "connection-lost": "ConnectionLost",
    "dns-failed": "UnknownHost",
    "tls-failed": "SSLException",
    "bad-url": "CallbackUrlNotFound",
}


STREAMED: Mapping[str, str] = {**WORDS, **dict.fromkeys(OPEN, "PROCESSED")}
"""The same for a stream, which tries nothing by itself: what was tried before, as a callback, is there to be read (HOR-131)."""


def words_of(subscription: Subscription) -> Mapping[str, str]:
    """The words for the core's states."""
    return WORDS if isinstance(subscription.delivery, Push) else STREAMED


def states_of(subscription: Subscription, statuses: list[str]) -> frozenset[str]:
    """The core's states that these words stand for."""
    return frozenset(state for state, word in words_of(subscription).items() if word in statuses)


class Showing:
    """Shows the status data of one subscription's deliveries."""

    def __init__(self, parts: ApiParts, subscription: Subscription) -> None:
        self._parts = parts
        self._subscription = subscription
        self._kept: RetentionPeriod = Retentions(parts.snapshot, parts.settings.topics.retention).of(subscription)

    def fate(self, fate: EventStatus, *, history: bool = False) -> dict[str, Any]:
        """A delivery."""
        status = fate.status
        word = words_of(self._subscription)[status.state]
        shown = self._shared(fate.id, status.position, fate.entry)
        shown |= {
            "status": word,
            "timestamp": time_of(fate.published or status.first_at),
            "modified": time_of(status.at or fate.published),
            "attempts": status.attempts,
            "properties": self._properties(status.target),
        }
        if word != "DELIVERED" and status.cause:
            shown |= {"errorType": error_type(status.cause), "errorMessage": status.message}
        if history:
            shown["history"] = [_fact(one) for one in status.history]
        return {name: value for name, value in shown.items() if value is not None}

    def dropped(self, entry: Entry, why: Dropped) -> dict[str, Any]:
        """An event that did not pass."""
        shown = self._shared(self.message_id(entry.position), entry.position, entry)
        filtered: dict[str, Any] = {"selectionFilterResult": why.result}
        if why.trace is not None:
            filtered["selectionFilterTrace"] = why.trace
        at = time_of(entry.at)
        shown |= {"status": DROPPED, "timestamp": at, "modified": at, "attempts": 0}
        return {**shown, "properties": {**self._properties(""), **filtered}, "history": []}

    def message_id(self, position: Position) -> str:
        """The id of a delivery, the same for ever."""
        return self._parts.ids.text_of(self._subscription.lane, *position)

    def _shared(self, message: str, position: Position, entry: Entry | None) -> dict[str, Any]:
        topic, scopes = topic_of(self._subscription), list(self._subscription.scopes)
        exposure = self._parts.snapshot.exposures.get(topic)
        if not scopes and exposure is not None and "default" in exposure.scopes:
            scopes = ["default"]
        return {
            "id": message,
            "event": _event(entry, topic.name),
            "environment": (entry and note_in(entry.head, ENVIRONMENT)) or topic.namespace.partition("/")[2],
            "subscriptionId": self._subscription.name.name,
            "deliveryType": "callback" if isinstance(self._subscription.delivery, Push) else "server_sent_event",
            "eventRetentionTime": _retention(self._kept.at(position)),
            "multiplexedFrom": cursor_at(position),
            "appliedScopes": scopes,
        }

    def _properties(self, target: str) -> dict[str, Any]:
        delivery = self._subscription.delivery
        url = target or (target_of(delivery.url) if isinstance(delivery, Push) else "")
        return {"subscriber-id": self._subscription.owner, **({"callback-url": url} if url else {})}


def error_type(cause: str) -> str:
    """The cause of a failure as Horizon names it."""
    word = cause.partition(" ")[0]
    if word.startswith("status-"):
        return f"HttpStatus{word.removeprefix('status-')}"
    return _ERRORS.get(word, "DeliveryFailed")


def _event(entry: Entry | None, event_type: str) -> dict[str, Any]:
    if entry is None:
        return {"type": event_type}
    event = event_from(entry.head, None)
    return {"id": event.id, "type": event.type, "time": event.attributes.get("time")}


def _fact(record: DeliveryRecord) -> dict[str, Any]:
    shown: dict[str, Any] = {"status": WORDS.get(record.state, record.state), "timestamp": time_of(record.at)}
    shown |= {"attempt": record.tries, "code": record.status}
    if record.cause:
        shown |= {"errorType": error_type(record.cause), "errorMessage": sentence(record.cause)}
    return {name: value for name, value in shown.items() if value is not None}


def _retention(seconds: float) -> str:
    return next((word for word, long in RETENTIONS.items() if long == seconds), f"{round(seconds)}s")
