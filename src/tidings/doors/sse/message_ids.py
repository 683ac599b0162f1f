"""Ids as clients of streams know them: which entry of a lane one stands for."""

from __future__ import annotations

import uuid

from tidings.doors.api_parts import ApiParts
from tidings.doors.deliveries.statuses import EventStatuses, EventStatusQuery
from tidings.log.position import LaneNumber, Offset, Partition, Position, reached
from tidings.registry.model import Subscription

SAME_ID = 1000
"""Events with one id that are looked at."""


async def position_of(parts: ApiParts, lane: LaneNumber, text: str) -> Position | None:
    """The place of the entry that a message id of this lane stands for, kept or not; None: it is no id of this lane."""
    try:
        name = parts.ids.name_of(uuid.UUID(text))
    except ValueError:
        return None
    position = Position(Partition(name.partition), Offset(name.offset))
    return position if name.lane == lane and reached(await parts.lanes.routed(), position) else None


async def last_seen(parts: ApiParts, subscription: Subscription, text: str) -> Position | None:
    """The place of the event that a client saw last: by its message id or, among the last thousands, by the event's own id.

    None: the subscription has no such event.
    """
    if not text:
        return None
    named = await position_of(parts, subscription.lane, text)
    return await _own(parts, subscription, text) if named is None else named


async def _own(parts: ApiParts, subscription: Subscription, event_id: str) -> Position | None:
    found = (await EventStatuses(parts).page(subscription, EventStatusQuery(event=event_id, limit=SAME_ID))).fates
    # The oldest of those that share an id: an event too many is better than one too few.
    return found[-1].status.position if found else None
