"""What became of an event: `GET /api/topics/{name}/events/{cursor}/trace` joins when it was published with what every
subscription of the caller got of it; `GET /api/topics/{name}/find` gives the cursor of an event by its id.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from fastapi import APIRouter, Query
from pydantic import Field

from tidings.access.principals import Right
from tidings.doors.api_parts import ApiParts
from tidings.doors.deliveries.start_points import FIRST, marks_at_any
from tidings.doors.deliveries.statuses import EventStatuses
from tidings.doors.native.bodies.wire import Wire, time_of
from tidings.doors.native.callers import Caller, PartsOf, owns, topic_of
from tidings.doors.native.delivery.deliveries import DeliveryHistory, shown
from tidings.errors import Expired
from tidings.events.stored import event_from
from tidings.log.cursor import cursor_at, cursor_of, position_of
from tidings.log.port import Entry, Limit
from tidings.log.position import Position, reached
from tidings.registry.model import Topic
from tidings.registry.rules.approvals import sourced

router = APIRouter(tags=["events"])

PAGES = 40
PAGE = Limit(entries=500)
"""An event is looked for by its id in so many pages for one answer."""


class PublishedView(Wire):
    """The event as it was published."""

    id: str
    source: str
    type: str
    time: str = Field(description="When it was acknowledged.")
    bytes: int = Field(description="Of its data.")


class TracedDelivery(Wire):
    """What one subscription got of it."""

    subscription: str
    delivery: DeliveryHistory


class TraceView(Wire):
    """One event and what became of it. `published` is null when the log has it no more; `routed`: it is in its lanes."""

    topic: str
    cursor: str
    published: PublishedView | None
    routed: bool
    deliveries: list[TracedDelivery] = Field(description="Of subscriptions that the caller may see. Others: see explain.")


class FoundView(Wire):
    """Where an event is; `cursor` is null when it was not found up to `reached`. `end`: that is the end of the topic."""

    cursor: str | None
    reached: str
    end: bool


@router.get("/api/topics/{name:path}/events/{cursor}/trace")
async def trace(name: str, cursor: str, parts: PartsOf, caller: Caller) -> TraceView:
    """What became of a published event: when it was accepted, and each delivery with every attempt."""
    topic, position = topic_of(parts, caller, name), position_of(cursor)
    found = await _trace(parts, caller, topic, position)
    if not found.deliveries and not caller.may(Right.PUBLISH, topic.name):
        caller.require(Right.READ, topic.name)
    return found


async def _trace(parts: ApiParts, caller: Caller, topic: Topic, position: Position) -> TraceView:
    entry = (await parts.events.fetch([position])).get(position)
    traced = [one async for one in _deliveries(parts, caller, topic, position)]
    if (entry is None and not traced) or (entry is not None and entry.topic != topic.number):
        raise Expired(f"there is no event of {topic.name} at this cursor, or it was removed", found=cursor_at(position))
    return TraceView(
        topic=str(topic.name),
        cursor=cursor_at(position),
        published=None if entry is None else _published(entry),
        routed=reached(await parts.lanes.routed(), position),
        deliveries=traced,
    )


async def _deliveries(parts: ApiParts, caller: Caller, topic: Topic, position: Position) -> AsyncIterator[TracedDelivery]:
    fates = EventStatuses(parts)
    for name, subscription in sorted(parts.snapshot.subscriptions.items()):
        # One that takes other topics now may have got it before.
        if owns(caller, subscription) and (sourced(subscription, (topic.name,)) or await fates.holds(subscription, position)):
            fate = await fates.of(subscription, position)
            if fate is not None:
                yield TracedDelivery(subscription=str(name), delivery=shown(fate))


def _published(entry: Entry) -> PublishedView:
    event = event_from(entry.head, entry.data)
    return PublishedView(
        id=event.id, source=event.source, type=event.type, time=time_of(entry.at) or "", bytes=len(entry.data or b"")
    )


@router.get("/api/topics/{name:path}/find")
async def find(
    name: str,
    parts: PartsOf,
    caller: Caller,
    id: str = Query(description="The event's own id."),
    after: str = Query(FIRST, description="A cursor, `_first`, or a time such as 2030-01-31T12:00:00Z."),
) -> FoundView:
    """Look for an event by its id, oldest first. An answer that is not the end says from where to go on."""
    topic = topic_of(parts, caller, name)
    caller.require(Right.READ, topic.name)
    return await _found(parts, topic, id, after)


async def _found(parts: ApiParts, topic: Topic, event_id: str, after: str) -> FoundView:
    marks = await marks_at_any(parts.events, after)
    for _ in range(PAGES):
        page = await parts.events.read(topic.number, marks, PAGE)
        for entry in page.entries:
            if event_from(entry.head, None).id == event_id:
                cursor = cursor_at(entry.position)
                return FoundView(cursor=cursor, reached=cursor, end=False)
        marks = page.reached
        if not page.entries:
            return FoundView(cursor=None, reached=cursor_of(marks), end=True)
    return FoundView(cursor=None, reached=cursor_of(marks), end=False)
