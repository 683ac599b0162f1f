"""What became of messages, as Hermes tells it: traces and undelivered messages (HER-143 to HER-148). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tidings.clock import Instant
from tidings.delivery.push.reader import DeadLetter, DeliveryRecord
from tidings.delivery.push.records.status import DeliveryStatus
from tidings.doors.hermes.views.reasons import reason_of
from tidings.errors import Malformed
from tidings.events.stored import event_from
from tidings.log.position import Position

INFLIGHT, SUCCESS, FAILED, DISCARDED, FILTERED = "INFLIGHT", "SUCCESS", "FAILED", "DISCARDED", "FILTERED"
_STATUSES = {"delivered": SUCCESS, "dead": DISCARDED, "expired": DISCARDED, "retrying": FAILED, "waiting": FAILED}
_OPEN = ("processed", "waiting", "sending", "retrying", "redelivering")


@dataclass(frozen=True, slots=True)
class TracedSubscription:
    """Whose deliveries are told, and where."""

    topic: str
    subscription: str
    cluster: str

    def entry(self, message: str, at: Instant, status: str, position: Position | None, reason: str = "") -> dict[str, Any]:
        """One line of a trace."""
        told: dict[str, Any] = {
            "messageId": message,
            "timestamp": at // 1000,
            "subscription": self.subscription,
            "topicName": self.topic,
            "status": status,
            "cluster": self.cluster,
        }
        if reason:
            told["reason"] = reason
        if position is not None:
            told |= {"partition": position.partition, "offset": position.offset}
        return told


def published(topic: str, cluster: str, message: str, at: Instant) -> list[dict[str, Any]]:
    """The publish part: it is told only of what was stored."""
    line = {"messageId": message, "timestamp": at // 1000, "topicName": topic, "cluster": cluster}
    return [{**line, "status": INFLIGHT}, {**line, "status": SUCCESS}]


def delivered(who: TracedSubscription, message: str, found: DeliveryStatus) -> list[dict[str, Any]]:
    """The delivery part: one line for each attempt that is known, and where it stands now."""
    history = list(reversed(found.history))
    lines = list(_lines(who, message, history))
    if not history and found.state not in _OPEN:
        status = _STATUSES.get(found.state, found.state.upper())
        lines.append(who.entry(message, found.at or Instant(0), status, found.position, reason_of(found.cause)))
    if found.state in _OPEN and not lines:
        lines.append(who.entry(message, found.first_at or found.at or Instant(0), INFLIGHT, found.position))
    return lines


def _lines(who: TracedSubscription, message: str, history: Sequence[DeliveryRecord]) -> Iterator[dict[str, Any]]:
    for number, fact in enumerate(history):
        began = Instant(fact.at - round((fact.duration_ms or 0.0) * 1000))
        if number == 0:
            yield who.entry(message, began, INFLIGHT, fact.position)
        status = _STATUSES.get(fact.state, fact.state.upper())
        yield who.entry(message, fact.at, status, fact.position, "" if status == SUCCESS else reason_of(fact.cause))


def undelivered(who: TracedSubscription, letter: DeadLetter, *, with_message: bool) -> dict[str, Any]:
    """One discarded message."""
    try:
        message = event_from(letter.head, letter.data).id
    except Malformed:
        message = ""
    told = who.entry(message, letter.last_at, DISCARDED, letter.position, reason_of(letter.reason))
    if with_message:
        told["message"] = text_of(letter.data)
    return told


def dead_letter_shown(letter: DeadLetter, *, with_message: bool) -> dict[str, Any]:
    """An entry of the dead-letter lane (HER-149, HER-150)."""
    told: dict[str, Any] = {
        "id": str(letter.number),
        "reason": reason_of(letter.reason),
        "attempts": letter.tries,
        "firstAttempt": letter.first_at // 1000,
        "lastAttempt": letter.last_at // 1000,
        "partition": letter.position.partition,
        "offset": letter.position.offset,
    }
    try:
        event = event_from(letter.head, letter.data)
    except Malformed:
        return told
    told |= {"messageId": event.id, "headers": dict(event.transport)}
    if with_message:
        told["message"] = text_of(letter.data)
    return told


def text_of(data: bytes | None) -> str:
    """A body as text; bytes that are none are replaced."""
    return (data or b"").decode("utf-8", "replace")
