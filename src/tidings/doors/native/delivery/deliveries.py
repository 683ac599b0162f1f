"""What became of a subscription's events: `GET /api/subscriptions/{name}/deliveries`, one of them with its whole history, and
`GET /api/deliveries/{id}` for the id that every delivery carries.
"""

from __future__ import annotations

import re
import uuid
from typing import Any, Literal, TypeAlias

from fastapi import APIRouter, Query
from pydantic import Field

from tidings.delivery.push.reader import DeliveryRecord
from tidings.doors.api_parts import ApiParts
from tidings.doors.deliveries.start_points import instant_of, positions_at
from tidings.doors.deliveries.statuses import EventStatus, EventStatuses, EventStatusPage, EventStatusQuery, RecordsComplete
from tidings.doors.native.bodies.wire import Wire, time_of
from tidings.doors.native.callers import Caller, PartsOf, is_admin, owns, subscription_of
from tidings.errors import Malformed, NotFound
from tidings.log.cursor import cursor_at, position_of
from tidings.registry.model import Subscription

router = APIRouter(tags=["lanes"])

State: TypeAlias = Literal[
    "processed",
    "waiting",
    "sending",
    "retrying",
    "redelivering",
    "delivered",
    "dead",
    "expired",
    "skipped",
    "deleted",
    "unrecorded",
]

_CURSOR = re.compile(r"[0-9]+-[0-9]+")
_UUID = re.compile(r"[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}")


class DeliveryView(Wire):
    """What became of one event. `cause` is for programs, `message` for people."""

    id: str = Field(description="The delivery's id, as every request with it carries it.")
    cursor: str
    state: State
    tries: int = Field(description="Attempts that were made, as far back as records go.")
    published: str | None = Field(description="When the event was published; null when the log has it no more.")
    first_at: str | None
    at: str | None = Field(description="When it changed last.")
    target: str = Field(description="Where it went, without user, password and query.")
    status: int | None
    duration_ms: float | None
    cause: str
    message: str
    next_due: str | None
    upto: str | None = Field(default=None, description="It stands for all up to there, of which nothing more is known.")


class FactView(Wire):
    """One attempt, or an end without one."""

    state: str
    tries: int
    at: str
    target: str
    status: int | None
    duration_ms: float | None
    cause: str


class DeliveryHistory(DeliveryView):
    """One event's fate with every fact that is kept about it, newest first."""

    history: list[FactView]


class RecordsView(Wire):
    """Since when records are complete, and what ended the ones before: their time, or the bytes that records may take."""

    since: str
    limited_by: str


class DeliveryList(Wire):
    """Newest event first; `before` goes on. A page may be short and yet not the last one."""

    deliveries: list[DeliveryView]
    records: RecordsView
    before: str | None = Field(default=None, description="Ask again with this to go on; absent at the end.")


@router.get("/api/subscriptions/{name:path}/deliveries")
async def deliveries(
    name: str,
    parts: PartsOf,
    caller: Caller,
    state: list[State] = Query(default_factory=list, description="Only events in one of these states."),
    since: str | None = Query(None, alias="from", description="Only events published at this time or later."),
    until: str | None = Query(None, alias="to", description="Only events published before this time."),
    event: str = Query("", description="The event's cursor, or its own id."),
    before: str | None = Query(None, description="From the last page: go on there."),
    limit: int = Query(100, ge=1, le=1000),
) -> DeliveryList:
    """What became of a subscription's events, newest first: each event once."""
    subscription = subscription_of(parts, caller, name)
    asked = EventStatusQuery(
        states=frozenset(state),
        since=None if since is None else instant_of(since),
        until=None if until is None else instant_of(until),
        event=event,
        below=None if before is None else (await positions_at(parts.events, [before]))[0],
        limit=limit,
    )
    return await _listed(parts, subscription, asked)


async def _listed(parts: ApiParts, subscription: Subscription, asked: EventStatusQuery) -> DeliveryList:
    fates = EventStatuses(parts)
    if _CURSOR.fullmatch(asked.event):
        one = await fates.of(subscription, position_of(asked.event))
        page = EventStatusPage([one] if one is not None else [], None)
    else:
        page = await fates.page(subscription, asked)
    return DeliveryList(
        deliveries=[DeliveryView(**_members(fate)) for fate in page.fates],
        records=_records(await fates.complete(subscription.lane)),
        before=None if page.before is None else cursor_at(page.before),
    )


def _records(complete: RecordsComplete) -> RecordsView:
    return RecordsView(since=time_of(complete.since) or "", limited_by=complete.limited_by)


@router.get("/api/subscriptions/{name:path}/deliveries/{delivery}")
async def delivery(name: str, delivery: str, parts: PartsOf, caller: Caller) -> DeliveryHistory:
    """What became of one event, with its history. `delivery` is the id of the delivery, or the cursor of the event."""
    subscription = subscription_of(parts, caller, name)
    fate = await _one(parts, subscription, delivery)
    if fate is None:
        raise NotFound(f"{subscription.name} has no delivery {delivery[:80]}")
    return shown(fate)


async def _one(parts: ApiParts, subscription: Subscription, text: str) -> EventStatus | None:
    fates = EventStatuses(parts)
    if _CURSOR.fullmatch(text):
        return await fates.of(subscription, position_of(text))
    named = fates.named(_delivery_id(text))
    return await fates.of(subscription, named[1]) if named is not None and named[0] == subscription.lane else None


def _delivery_id(text: str) -> uuid.UUID:
    if not _UUID.fullmatch(text):
        raise Malformed("this names no delivery", found=text[:80], expected="the id of a delivery, or the cursor of an event")
    return uuid.UUID(text)


@router.get("/api/deliveries/{delivery}")
async def any_delivery(delivery: str, parts: PartsOf, caller: Caller) -> DeliveryHistory:
    """What became of the delivery with this id, whichever subscription it is of. Of a deleted one: for administrators."""
    fate = await _anyones(parts, caller, _delivery_id(delivery))
    if fate is None:
        raise NotFound(f"there is no delivery {delivery[:80]}")
    return shown(fate)


async def _anyones(parts: ApiParts, caller: Caller, delivery_id: uuid.UUID) -> EventStatus | None:
    fates = EventStatuses(parts)
    named = fates.named(delivery_id)
    if named is None:
        return None
    lane, position = named
    standing = next((one for one in parts.snapshot.subscriptions.values() if one.lane == lane), None)
    if standing is None:
        return await fates.in_lane(lane, position) if is_admin(caller) else None
    return await fates.of(standing, position) if owns(caller, standing) else None


def shown(fate: EventStatus) -> DeliveryHistory:
    """A fate with its history as it is shown."""
    return DeliveryHistory(**_members(fate), history=[fact(one) for one in fate.status.history])


def _members(fate: EventStatus) -> dict[str, Any]:
    status = fate.status
    upto = None if status.upto is None else cursor_at(status.upto)
    return {
        "id": fate.id,
        "cursor": cursor_at(status.position),
        "state": status.state,
        "tries": status.attempts,
        "published": time_of(fate.published),
        "first_at": time_of(status.first_at),
        "at": time_of(status.at),
        "target": status.target,
        "status": status.status,
        "duration_ms": status.duration_ms,
        "cause": status.cause,
        "message": status.message,
        "next_due": time_of(status.next_due),
        "upto": upto,
    }


def fact(record: DeliveryRecord) -> FactView:
    """A fact as it is shown."""
    return FactView(
        state=record.state,
        tries=record.tries,
        at=time_of(record.at) or "",
        target=record.target,
        status=record.status,
        duration_ms=record.duration_ms,
        cause=record.cause,
    )
