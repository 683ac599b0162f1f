"""What became of events, as doors tell it: a subscription's statuses together with what the log and the registry know.

An event that is still open when its retention has passed reads as expired, whether or not delivery has come to it yet (HOR-152).
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from tidings.clock import SECOND, Instant
from tidings.delivery.push.reader import DeliveryRecord
from tidings.delivery.push.records.status import OPEN, DeliveryStatus
from tidings.delivery.push.records.statuses import LaneSources, Statuses, StatusQuestion
from tidings.doors.api_parts import ApiParts
from tidings.doors.deliveries.start_points import between_times
from tidings.events.stored import event_from
from tidings.log.port import Entry
from tidings.log.position import LaneNumber, Offset, Partition, Position, marks_below
from tidings.registry.delivery_options import Tracking
from tidings.registry.model import Push, Subscription
from tidings.registry.rules.retention import FOREVER, RetentionPeriod, Retentions

STEPS, STEP = 20, 500
"""Pages, and events of each, that are looked through for one answer when events are chosen by what only the log knows."""

EXPIRED = "expired"
DISCARDED = frozenset(("dead", EXPIRED))


@dataclass(frozen=True, slots=True)
class EventStatus:
    """What became of one event for one subscription. `entry` is what the log has of it, None when it is gone."""

    id: str
    status: DeliveryStatus
    entry: Entry | None

    @property
    def published(self) -> Instant | None:
        return None if self.entry is None else self.entry.at


@dataclass(frozen=True, slots=True)
class EventStatusQuery:
    """Which fates: states (none: any), published from `since` and before `until`, the event's own id, before an event."""

    states: frozenset[str] = frozenset()
    since: Instant | None = None
    until: Instant | None = None
    event: str = ""
    below: Position | None = None
    limit: int = 100


@dataclass(frozen=True, slots=True)
class EventStatusPage:
    """Newest event first. `before`: go on before this event; None at the end. A page may be short and yet not the last."""

    fates: Sequence[EventStatus]
    before: Position | None


@dataclass(frozen=True, slots=True)
class RecordsComplete:
    """Since when records are complete, and whether time or the bytes that they may take ended what was before."""

    since: Instant
    limited_by: str


class EventStatuses:
    """Tells fates of one subscription's events, or of any lane's."""

    def __init__(self, parts: ApiParts) -> None:
        self._parts = parts
        self._statuses = Statuses(LaneSources(parts.lanes, parts.lane_index, parts.records))
        self._now = parts.clock.now()

    async def of(self, subscription: Subscription, position: Position) -> EventStatus | None:
        """One event's fate with its history; None when the subscription never got it."""
        fate = await self.in_lane(subscription.lane, position, self._kept(subscription))
        if fate is None:
            return None
        history = tracked(subscription, fate.status.history)
        return EventStatus(fate.id, msgspec.structs.replace(fate.status, history=history), fate.entry)

    async def holds(self, subscription: Subscription, position: Position) -> bool:
        """Whether the event is in the subscription's lane now."""
        return await self._statuses.holds(subscription.lane, position)

    async def in_lane(self, lane: LaneNumber, position: Position, kept: RetentionPeriod = FOREVER) -> EventStatus | None:
        """As `of`, for a lane whose subscription may be gone."""
        status = await self._statuses.of(lane, position)
        if status is None:
            return None
        entries = await self._parts.events.fetch([position])
        if position in entries and not status.history and not await self._statuses.holds(lane, position):
            # The lane forgets nothing that the log still has: it never had this one, whatever expired around it.
            return None
        return self._fate(status, entries, kept)

    def named(self, delivery_id: uuid.UUID) -> tuple[LaneNumber, Position] | None:
        """The lane and position that a delivery id stands for; None for an id that no delivery has."""
        name = self._parts.ids.name_of(delivery_id)
        if self._parts.ids.id_of(name) != delivery_id:
            return None
        return LaneNumber(name.lane), Position(Partition(name.partition), Offset(name.offset))

    async def page(self, subscription: Subscription, asked: EventStatusQuery) -> EventStatusPage:
        """The next fates that were asked for."""
        kept = self._kept(subscription)
        between = await between_times(self._parts.events, asked.since, asked.until, asked.below)
        states = await self._asked_states(subscription, asked.states, kept)
        chosen = bool(asked.event) or states != asked.states
        found: list[EventStatus] = []
        before: Position | None = None
        for _ in range(STEPS if chosen else 1):
            question = StatusQuestion(
                states=states, above=between.above, upto=between.upto, limit=STEP if chosen else asked.limit
            )
            page = await self._statuses.page(subscription.lane, question)
            entries = await self._parts.events.fetch([status.position for status in page.found])
            fates = [self._fate(status, entries, kept) for status in page.found]
            found += [fate for fate in fates if _is_asked(fate, asked)]
            before = page.before
            if len(found) >= asked.limit:
                return EventStatusPage(found[: asked.limit], found[asked.limit - 1].status.position)
            if before is None:
                break
            between = between._replace(upto=marks_below(before))
        return EventStatusPage(found, before)

    async def complete(self, lane: LaneNumber) -> RecordsComplete:
        """Since when the records of a lane are complete. Today all lanes share the room that records may take."""
        since = Instant(self._now - round(self._parts.settings.push.records * SECOND))
        cut = (await self._parts.records.kept()).cut
        return RecordsComplete(max(since, cut), "bytes" if cut > since else "time")

    def _kept(self, subscription: Subscription) -> RetentionPeriod:
        return Retentions(self._parts.snapshot, self._parts.settings.topics.retention).of(subscription)

    async def _asked_states(self, subscription: Subscription, states: frozenset[str], kept: RetentionPeriod) -> frozenset[str]:
        """States to look for: an expired event may be an open one that nobody has come to yet, if the oldest open one is old.

        Which of the open ones expires first is not known where retention was changed: newer ones may count for less.
        """
        if EXPIRED not in states:
            return states
        low = (await asyncio.to_thread(self._parts.delivery.lane, subscription.lane)).low_water
        first = (await self._parts.lane_index.backlogs({subscription.lane: low}))[subscription.lane].first
        if first is None:
            return states
        for entry in (await self._parts.events.fetch([first])).values():
            return states | OPEN if entry.at + kept.shortest * SECOND <= self._now else states
        return states | OPEN

    def _fate(self, status: DeliveryStatus, entries: Mapping[Position, Entry], kept: RetentionPeriod) -> EventStatus:
        entry = entries.get(status.position)
        over = entry is not None and kept.until(status.position, entry.at) <= self._now
        if over and status.state in OPEN and status.state != "redelivering":
            status = msgspec.structs.replace(status, state=EXPIRED, cause=EXPIRED, next_due=None)
        return EventStatus(self._parts.ids.text_of(status.lane, *status.position), status, entry)


def tracked(subscription: Subscription, history: tuple[DeliveryRecord, ...]) -> tuple[DeliveryRecord, ...]:
    """The facts that the subscription wants to be kept."""
    delivery = subscription.delivery
    if not isinstance(delivery, Push) or delivery.tracking is not Tracking.DISCARDED:
        return history
    return tuple(fact for fact in history if fact.state in DISCARDED)


def _is_asked(fate: EventStatus, asked: EventStatusQuery) -> bool:
    if asked.states and fate.status.state not in asked.states:
        return False
    time = fate.published or fate.status.first_at or fate.status.at
    if time is not None and not ((asked.since or 0) <= time < (asked.until or time + 1)):
        return False
    return not asked.event or (fate.entry is not None and event_from(fate.entry.head, None).id == asked.event)
