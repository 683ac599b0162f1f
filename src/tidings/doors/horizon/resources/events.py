"""What became of events, and sending them again: below a subscription and below an event type (HOR-154, HOR-155, HOR-161)."""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import AsyncIterator, Sequence
from http import HTTPStatus
from typing import Any, Literal

import msgspec
from fastapi import APIRouter, Query, Request

from tidings.clock import SECOND, Instant
from tidings.delivery.push.records.status import FINAL
from tidings.doors.deliveries.commands import command
from tidings.doors.deliveries.newest_first import newest
from tidings.doors.deliveries.start_points import between_times, instant_of
from tidings.doors.deliveries.statuses import EventStatus, EventStatuses
from tidings.doors.deliveries.statuses import EventStatusQuery as Wanted
from tidings.doors.horizon.door import WEEK
from tidings.doors.horizon.names import PUBLISHER, topic_name
from tidings.doors.horizon.resources.request import AskedBy, HorizonRequest, json_of
from tidings.doors.horizon.resources.subscriptions import subscription_of
from tidings.doors.horizon.views.breakers import time_of
from tidings.doors.horizon.views.dropped_events import Dropped, Droppings
from tidings.doors.horizon.views.states import require_active, topic_of
from tidings.doors.horizon.views.statuses import DROPPED, Showing, states_of
from tidings.errors import Forbidden, Malformed, NotFound
from tidings.events.stored import event_from, note_in
from tidings.log.commands import Redeliver
from tidings.log.cursor import feed_position
from tidings.log.port import Entry
from tidings.log.position import Position
from tidings.registry.model import Exposure, Subscription, Topic
from tidings.registry.rules.retention import Retentions

router = APIRouter(tags=["events"])

Status = Literal["PROCESSED", "DELIVERING", "DELIVERED", "WAITING", "REDELIVERING", "FAILED", "DROPPED", "DUPLICATE"]
SCANNED = 10_000
"""Events of a type that are looked through at the most, where only their filters tell what became of them (HOR-177)."""

MOST_AGAIN = 10_000
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_STATUS = Query(default_factory=list, description="Only those in one of these; DROPPED only alone or with eventId.")
_FROM = Query(None, alias="from", description="Only events published at this time or later.")
_TO = Query(None, alias="to", description="Only events published before this time.")
_EVENT = Query(None, alias="eventId", description="The id that the publisher gave.")
_LIMIT = Query(100, ge=1, le=1000)
_CURSOR = Query(None, pattern=r"^[0-9]{1,18}$", description="`next` of the page before.")
_REDELIVER = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "properties": {
                        "ids": {"type": "array", "items": {"type": "string", "format": "uuid"}, "maxItems": MOST_AGAIN},
                        "status": {"type": "array", "items": {"enum": ["FAILED", "DELIVERED"]}},
                        "from": {"type": "string", "format": "date-time"},
                        "to": {"type": "string", "format": "date-time"},
                    },
                }
            }
        },
    }
}


class TimeSpan(msgspec.Struct, frozen=True):
    """Which events: published between two times, with this id, before an event, at most so many."""

    since: Instant | None
    until: Instant | None
    event: str | None
    below: Position | None
    limit: int


class Again(msgspec.Struct, frozen=True):
    """What is to be sent again: these deliveries, or all in one of these states."""

    ids: list[str] = []
    status: list[Literal["FAILED", "DELIVERED"]] = []
    since: str | None = msgspec.field(default=None, name="from")
    until: str | None = msgspec.field(default=None, name="to")


def _span(since: str | None, until: str | None, event: str | None, cursor: str | None, limit: int) -> TimeSpan:
    return TimeSpan(
        None if since is None else instant_of(since),
        None if until is None else instant_of(until),
        event,
        None if cursor is None else feed_position(int(cursor)),
        limit,
    )


@router.get("/v1/{environment}/subscriptions/{subscription}/events")
async def events(
    subscription: str,
    asked: AskedBy,
    status: list[Status] = _STATUS,
    since: str | None = _FROM,
    until: str | None = _TO,
    event: str | None = _EVENT,
    limit: int = _LIMIT,
    cursor: str | None = _CURSOR,
) -> dict[str, Any]:
    """What became of a subscription's events, newest first; for the subscriber and administrators."""
    found = subscription_of(asked, subscription)
    span = _span(since, until, event, cursor, limit)
    return await _listed(asked, found, list(status), span)


async def _listed(asked: HorizonRequest, subscription: Subscription, statuses: list[str], span: TimeSpan) -> dict[str, Any]:
    derived = DROPPED in statuses
    if derived and len(set(statuses)) > 1 and not span.event:
        raise Malformed("DROPPED is looked for by itself, or with an eventId", at="status", expected="status=DROPPED")
    page: dict[str, Any] = {"items": [], "next": None}
    if not derived or len(set(statuses)) > 1:
        page = await _delivered(asked, subscription, [one for one in statuses if one != DROPPED], span)
    if derived or (span.event and not page["items"] and not statuses):
        scan = await _dropped(asked, subscription, span)
        page = {**scan, "items": [*page["items"], *scan["items"]]}
    return page


async def _delivered(asked: HorizonRequest, subscription: Subscription, statuses: list[str], span: TimeSpan) -> dict[str, Any]:
    states = states_of(subscription, statuses)
    if statuses and not states:
        return {"items": [], "next": None}
    fates = EventStatuses(asked.parts)
    wanted = Wanted(states, span.since, span.until, span.event or "", span.below, span.limit)
    found = await fates.page(subscription, wanted)
    showing = Showing(asked.parts, subscription)
    complete = await fates.complete(subscription.lane)
    return {
        "items": [showing.fate(fate) for fate in found.fates],
        "next": None if found.before is None else str(found.before.offset),
        "records": {"since": time_of(complete.since), "limitedBy": complete.limited_by},
    }


async def _dropped(asked: HorizonRequest, subscription: Subscription, span: TimeSpan) -> dict[str, Any]:
    """Events of the type that did not pass: looked for from the newest down, a bounded number of them."""
    topic = asked.parts.snapshot.topics[topic_of(subscription)]
    showing, fates = Showing(asked.parts, subscription), EventStatuses(asked.parts)
    items: list[dict[str, Any]] = []
    scanned = 0
    async for entries in _entries(asked, topic, span):
        judged = await asyncio.to_thread(_judged, asked, subscription, span, entries)
        for number, (entry, why) in enumerate(judged, scanned + 1):
            if why is not None and await fates.of(subscription, entry.position) is None:
                items.append(showing.dropped(entry, why))
            if len(items) == span.limit:
                return {"items": items, "next": str(entry.position.offset), "scanned": number}
        scanned += len(entries)
        if scanned >= SCANNED:
            return {"items": items, "next": str(entries[-1].position.offset), "scanned": scanned}
    return {"items": items, "next": None, "scanned": scanned}


def _judged(
    asked: HorizonRequest, subscription: Subscription, span: TimeSpan, entries: Sequence[Entry]
) -> list[tuple[Entry, Dropped | None]]:
    """Why each of these was dropped, if it was. Works in a thread: filters take their time."""
    droppings = Droppings(asked.parts, subscription, entries[-1].position, all_told=asked.client.admin)
    meant = (not span.event or event_from(entry.head, None).id == span.event for entry in entries)
    return [(entry, droppings.of(entry) if wanted else None) for entry, wanted in zip(entries, meant, strict=True)]


async def _entries(asked: HorizonRequest, topic: Topic, span: TimeSpan) -> AsyncIterator[Sequence[Entry]]:
    """The entries of a topic in this span, newest first, page by page."""
    events = asked.parts.events
    async for page in newest(events, topic.number, await between_times(events, span.since, span.until, span.below)):
        yield page


@router.get("/v1/{environment}/subscriptions/{subscription}/events/{message}")
async def one_event(subscription: str, message: str, asked: AskedBy) -> dict[str, Any]:
    """What became of one event, with its history; `message` is the id of the delivery."""
    found = subscription_of(asked, subscription)
    shown = await _one(asked, found, message)
    if shown is None:
        raise NotFound(f"there is no delivery {message[:80]} of this subscription")
    return shown


async def _one(asked: HorizonRequest, subscription: Subscription, message: str) -> dict[str, Any] | None:
    fates = EventStatuses(asked.parts)
    position = _position(fates, subscription, message)
    if position is None:
        return None
    fate, showing = await fates.of(subscription, position), Showing(asked.parts, subscription)
    if fate is not None:
        return showing.fate(fate, history=True)
    entry = (await asked.parts.events.fetch([position])).get(position)
    if entry is None or entry.topic != asked.parts.snapshot.topics[topic_of(subscription)].number:
        return None
    why = Droppings(asked.parts, subscription, position, all_told=asked.client.admin).of(entry)
    return None if why is None else showing.dropped(entry, why)


def _position(fates: EventStatuses, subscription: Subscription, message: str) -> Position | None:
    named = fates.named(uuid.UUID(message)) if _UUID.fullmatch(message) else None
    return named[1] if named is not None and named[0] == subscription.lane else None


@router.post(
    "/v1/{environment}/subscriptions/{subscription}/redeliver", status_code=HTTPStatus.ACCEPTED, openapi_extra=_REDELIVER
)
async def redeliver(subscription: str, request: Request, asked: AskedBy) -> dict[str, Any]:
    """Send deliveries again that are final: by their ids, or all that failed or were delivered."""
    again = await json_of(request, Again)
    found = subscription_of(asked, subscription)
    if bool(again.ids) == bool(again.status) or len(again.ids) > MOST_AGAIN:
        raise Malformed("say what to send again", expected=f"ids (at most {MOST_AGAIN}), or status with from and to")
    require_active(asked.parts.snapshot, found)
    positions, skipped = await _again(asked, found, again)
    if positions:
        await command(asked.parts, found.lane, asked.client.id, Redeliver(tuple(positions)))
    return {"accepted": len(positions), "skipped": skipped}


async def _again(
    asked: HorizonRequest, subscription: Subscription, again: Again
) -> tuple[list[Position], list[dict[str, str]]]:
    fates, positions, skipped = EventStatuses(asked.parts), list[Position](), list[dict[str, str]]()
    async for message, fate in _named(asked, subscription, fates, again):
        reason = fate if isinstance(fate, str) else _not_again(asked, subscription, fate)
        if reason:
            skipped.append({"id": message, "reason": reason})
        elif not isinstance(fate, str):
            positions.append(fate.status.position)
    return positions, skipped


async def _named(
    asked: HorizonRequest, subscription: Subscription, fates: EventStatuses, again: Again
) -> AsyncIterator[tuple[str, EventStatus | str]]:
    """The deliveries that are meant, each with its fate, or with the reason why there is none."""
    for message in dict.fromkeys(again.ids):
        position = _position(fates, subscription, message)
        fate = None if position is None else await fates.of(subscription, position)
        if fate is None and position is not None and position in await asked.parts.events.fetch([position]):
            yield message, DROPPED
        else:
            yield message, fate or "UNKNOWN"
    below: Position | None = None
    span = _span(again.since, again.until, None, None, 1000)
    states = states_of(subscription, list(again.status))
    for _ in range(MOST_AGAIN // 1000 if again.status else 0):
        page = await fates.page(subscription, Wanted(states, span.since, span.until, "", below, 1000))
        for fate in page.fates:
            yield fate.id, fate
        below = page.before
        if below is None:
            return


def _not_again(asked: HorizonRequest, subscription: Subscription, fate: EventStatus) -> str:
    """Why a delivery cannot be sent again; "" when it can."""
    if fate.status.state == "expired" or fate.entry is None:
        return "EXPIRED"
    kept = Retentions(asked.parts.snapshot, asked.parts.settings.topics.retention).of(subscription)
    if kept.until(fate.status.position, fate.entry.at) <= asked.parts.clock.now():
        return "EXPIRED"
    return "" if fate.status.state in FINAL else "NOT_FINAL"


@router.get("/v1/{environment}/event-types/{event_type}/events")
async def published(
    event_type: str,
    asked: AskedBy,
    since: str | None = _FROM,
    until: str | None = _TO,
    event: str | None = _EVENT,
    limit: int = _LIMIT,
    cursor: str | None = _CURSOR,
) -> dict[str, Any]:
    """The events that were published to a type, newest first; for its owner and administrators."""
    name = topic_name(asked.environment, event_type)
    topic, exposure = asked.parts.snapshot.topics.get(name), asked.parts.snapshot.exposures.get(name)
    if topic is None or exposure is None:
        raise asked.client.absent(f"the event type {event_type[:80]}")
    _require_owner(asked, exposure)
    span = _span(since, until, event, cursor, limit)
    return await _published(asked, topic, span)


def _require_owner(asked: HorizonRequest, exposure: Exposure) -> None:
    """The owner may look; additional publishers may not, not even of the same team (HOR-161)."""
    client = asked.client
    additional = client.id in exposure.publishers and client.id != exposure.owner
    if not client.acts_for(exposure.owner) or (additional and not client.admin and not client.unchecked):
        raise Forbidden(f"the event type {exposure.topic.name[:80]} does not belong to {client.id}, or there is none")


async def _published(asked: HorizonRequest, topic: Topic, span: TimeSpan) -> dict[str, Any]:
    items: list[dict[str, Any]] = []
    kept_from = asked.parts.clock.now() - round(WEEK * SECOND)
    scanned = 0
    async for page in _entries(asked, topic, span):
        for entry in page:
            scanned += 1
            event = event_from(entry.head, None)
            if span.event in (None, event.id):
                payload = "kept" if entry.at > kept_from else "expired"
                shown = {"id": event.id, "time": event.attributes.get("time"), "published": time_of(entry.at)}
                items.append({**shown, "publisher": note_in(entry.head, PUBLISHER) or None, "payload": payload})
            if len(items) == span.limit or scanned == SCANNED:
                return {"items": items, "next": str(entry.position.offset)}
    return {"items": items, "next": None}
