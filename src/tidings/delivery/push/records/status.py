"""The status of one event of one subscription, from the lane's state and the newest fact. Pure.

word            means
processed       it is in the lane and nothing was tried yet
waiting         the same, or parked, while the lane sends nothing (breaker open, suspended, disabled)
sending         it is on its way for the first time
retrying        attempts failed, and there will be another
redelivering    it was final and is sent again, or waited behind the breaker and goes out now that it closes
delivered       the subscriber has it
dead            given up: a dead letter
expired         its retention ended first
skipped         the subscription was moved past it
deleted         the subscription was deleted before it was final
unrecorded      it is final, and what came of it is no longer recorded
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidings.clock import Instant
from tidings.delivery.push.lane.entries import Item
from tidings.delivery.push.reader import DeliveryRecord
from tidings.delivery.push.records.causes import DELETED, sentence
from tidings.delivery.push.records.port import LaneStanding, Last
from tidings.lanes.port import Mark
from tidings.log.position import LaneNumber, Position, at_or_before

OPEN = frozenset(("processed", "waiting", "sending", "retrying", "redelivering"))
FINAL = frozenset(("delivered", "dead", "expired", "skipped", "deleted", "unrecorded"))
STATES = OPEN | FINAL
STOPPED = frozenset(("suspended", "disabled", "open"))
REPUBLISHING = "republishing"


class DeliveryStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one event for one subscription.

    `attempts` are those that were made, as far back as records go; `at` is when it changed last; `history` is given, newest
    first, when one event is asked for.
    `upto`: it stands for all of the lane's events up to there, of which nothing more is known.
    """

    lane: LaneNumber
    position: Position
    state: str
    attempts: int = 0
    first_at: Instant | None = None
    at: Instant | None = None
    status: int | None = None
    duration_ms: float | None = None
    target: str = ""
    cause: str = ""
    next_due: Instant | None = None
    upto: Position | None = None
    history: tuple[DeliveryRecord, ...] = ()

    @property
    def message(self) -> str:
        """The cause in words."""
        return sentence(self.cause)


def status_of(
    lane: LaneNumber, mark: Mark, standing: LaneStanding, last: Last | None, ranges: Iterable[DeliveryRecord] = ()
) -> DeliveryStatus:
    """The status of an event of the lane; `ranges` are the records about ranges, newest first.

    Number 0 stands for what has left the lane: it is final, unless it is open.
    """
    position = mark.position
    item, word = _in_lane(mark, standing, last)
    if not word:
        return _final(lane, position, last, ranges)
    waits = word in ("retrying", "redelivering") and item is not None and bool(item.due)
    cause = DELETED if word == "deleted" else item.cause if item is not None else ""
    made = _from(lane, position, word, last)
    return msgspec.structs.replace(
        made,
        attempts=(last.ended if last is not None else 0) + item.tries if item is not None else made.attempts,
        first_at=made.first_at or (item.since or None if item is not None else None),
        cause=cause or made.cause,
        next_due=item.due if item is not None and waits else None,
    )


def _in_lane(mark: Mark, standing: LaneStanding, last: Last | None) -> tuple[Item | None, str]:
    """The open item, if it is one, and the word for it; "" when the event is final."""
    state, stopped = standing.state, standing.word in STOPPED
    item = state.item_of(mark.position)
    if item is not None:
        again = item.again or state.in_waited(item) or (_republished(mark.number, standing) and not item.tries)
        word = "redelivering" if again else "retrying" if item.tries else "sending"
    elif state.waits(mark.number):
        word = "redelivering" if standing.word == REPUBLISHING else "waiting"
    elif mark.number > state.live.cursor:
        # What was final before and lies ahead again was rewound.
        known = last is not None and last.record.state in FINAL
        word = "redelivering" if known or _republished(mark.number, standing) else "processed"
    else:
        word = ""
    if word and standing.word == "deleted":
        return item, "deleted"
    return item, "waiting" if word and stopped else word


def _republished(number: int, standing: LaneStanding) -> bool:
    """Whether an event waited behind the breaker of a lane with an order, which has one window for all of its events."""
    return standing.word == REPUBLISHING and 0 < number <= standing.state.breaker.until


def _final(lane: LaneNumber, position: Position, last: Last | None, ranges: Iterable[DeliveryRecord]) -> DeliveryStatus:
    since = last.record.at if last is not None else Instant(0)
    for one in ranges:
        if one.at >= since and covers(one, position):
            made = _from(lane, position, one.state, last)
            return msgspec.structs.replace(made, at=one.at, cause=one.cause)
    if last is None or last.record.state not in FINAL:
        return _from(lane, position, "unrecorded", last)
    return _from(lane, position, last.record.state, last)


def covers(record: DeliveryRecord, position: Position) -> bool:
    """Whether a record is about a range that an event is in."""
    first, upto = record.position, record.upto
    return upto is not None and at_or_before(first, position) and at_or_before(position, upto)


def _from(lane: LaneNumber, position: Position, word: str, last: Last | None) -> DeliveryStatus:
    if last is None:
        return DeliveryStatus(lane=lane, position=position, state=word)
    record = last.record
    return DeliveryStatus(
        lane=lane,
        position=position,
        state=word,
        attempts=last.attempts,
        first_at=last.first_at,
        at=record.at,
        status=record.status,
        duration_ms=record.duration_ms,
        target=record.target,
        cause=record.cause,
    )
