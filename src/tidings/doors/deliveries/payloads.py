"""The payload of one entry of a lane as its subscriber may see it: what projections left, for as long as retention allows."""

from __future__ import annotations

from typing import NamedTuple

from tidings.doors.api_parts import ApiParts
from tidings.errors import Expired, NotFound
from tidings.events.content_types import JSON
from tidings.events.stored import event_from
from tidings.lanes.port import Mark
from tidings.log.position import Position, reached
from tidings.registry.model import Subscription
from tidings.registry.rules.retention import Retentions


class LanePayload(NamedTuple):
    """A payload and its type."""

    content_type: str
    data: bytes


async def payload_at(parts: ApiParts, subscription: Subscription, position: Position) -> LanePayload:
    """The payload at this place of the subscription's lane. Raises NotFound or Expired."""
    found = (await parts.events.fetch([position])).get(position)
    if found is None:
        raise await _removed(parts, position)
    kept = Retentions(parts.snapshot, parts.settings.topics.retention).of(subscription)
    if kept.until(position, found.at) <= parts.clock.now():
        raise Expired("the retention of this event is over")
    (entry,) = await parts.lanes.fetch(subscription.lane, [Mark(0, position)])
    if entry.stored is None or entry.stored.data is None:
        raise NotFound("the subscription has no such payload")
    return LanePayload(event_from(entry.stored.head, None).datacontenttype or JSON, entry.stored.data)


async def _removed(parts: ApiParts, position: Position) -> Expired | NotFound:
    """Why the log has no such entry: it was there once, or it never was."""
    if reached(await parts.events.ends(), position):
        return Expired("the retention of this event is over")
    return NotFound("there is no such event")
