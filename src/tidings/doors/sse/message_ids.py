"""Ids as clients of streams know them: which entry of a lane one stands for."""

from __future__ import annotations

import asyncio
import uuid

from tidings.doors.api_parts import ApiParts
from tidings.doors.delivery_statuses import EventStatuses, EventStatusQuery
from tidings.log.position import EMBEDDED, START, LaneNumber, Offset, Position
from tidings.registry.model import Subscription

SAME_ID = 1000
"""Events with one id that are looked at."""


def position_of(parts: ApiParts, lane: LaneNumber, text: str) -> Position | None:
    """The place of the entry that a message id of this lane stands for, kept or not; None: it is no id of this lane."""
    try:
        name = parts.ids.name_of(uuid.UUID(text))
    except ValueError:
        return None
    known = name.lane == lane and name.partition == EMBEDDED and name.offset <= parts.lanes.routed().get(EMBEDDED, START)
    return Position(EMBEDDED, Offset(name.offset)) if known else None


async def last_seen(parts: ApiParts, subscription: Subscription, text: str) -> Offset | None:
    """The place of the event that a client saw last: by its message id or, among the last thousands, by the event's own id.

    None: the subscription has no such event.
    """
    if not text:
        return None
    named = position_of(parts, subscription.lane, text)
    return await asyncio.to_thread(_own, parts, subscription, text) if named is None else named.offset


def _own(parts: ApiParts, subscription: Subscription, event_id: str) -> Offset | None:
    found = EventStatuses(parts).page(subscription, EventStatusQuery(event=event_id, limit=SAME_ID)).fates
    # The oldest of those that share an id: an event too many is better than one too few.
    return found[-1].status.position.offset if found else None
