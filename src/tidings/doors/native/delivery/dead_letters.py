"""Dead letters of a subscription: list, read, send again, forget; one, some or all of them."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from fastapi import APIRouter, Query, Response
from pydantic import Field

from tidings.delivery.push.reader import DeadLetter
from tidings.doors.api_parts import ApiParts
from tidings.doors.deliveries.start_points import positions_at
from tidings.doors.entitlement import is_entitled, require_entitled
from tidings.doors.native.bodies.wire import Number, Wire, time_of
from tidings.doors.native.callers import Caller, PartsOf, is_admin, subscription_of
from tidings.doors.native.delivery.lanes import LATER, CommandDone, order
from tidings.errors import Malformed, NotFound
from tidings.events.avro.payloads import SchemaBook, json_stored
from tidings.events.stored import event_from
from tidings.events.structured import structured_json
from tidings.log.commands import DropDeadLetters, Redeliver
from tidings.log.cursor import cursor_at
from tidings.registry.model import Subscription

router = APIRouter(tags=["lanes"])


class DeadLetterView(Wire):
    """An event that will not be tried again unless asked."""

    number: int
    cursor: str
    reason: str
    tries: int
    first_at: str
    last_at: str
    event: Any = Field(description="The event as JSON; null where no copy of it is left.")


class DeadLetterList(Wire):
    """Oldest first; `after` goes on."""

    dead_letters: list[DeadLetterView]
    after: int | None = Field(default=None, description="Ask again with this to go on; absent at the end.")


class RetryBody(Wire):
    """Which dead letters to send again: some by number, or all."""

    numbers: list[Number] = Field(default_factory=list, max_length=10_000)
    all: bool = False


@router.get("/api/subscriptions/{name:path}/dead-letters")
async def dead_letters(
    name: str,
    parts: PartsOf,
    caller: Caller,
    after: Number = 0,
    limit: int = Query(100, ge=1, le=1000),
    newest: bool = Query(False, description="The last ones, newest first, instead."),
) -> DeadLetterList:
    """Dead letters with their events."""
    subscription = subscription_of(parts, caller, name)
    schemas = _schemas(parts, caller, subscription)
    if newest:
        last = await asyncio.to_thread(parts.dead_letters.last_dead_letters, subscription.lane, limit)
        return DeadLetterList(dead_letters=[_dead_letter(one, schemas) for one in last])
    found = await asyncio.to_thread(parts.dead_letters.dead_letters, subscription.lane, after, limit)
    after_this = found[-1].number if len(found) == limit else None
    return DeadLetterList(dead_letters=[_dead_letter(one, schemas) for one in found], after=after_this)


def _schemas(parts: ApiParts, caller: Caller, subscription: Subscription) -> SchemaBook | None:
    """By what events are shown; None: whoever may not be given events does not read them here."""
    return parts.current.schemas if is_admin(caller) or is_entitled(parts, subscription) else None


def _dead_letter(letter: DeadLetter, schemas: SchemaBook | None) -> DeadLetterView:
    """`schemas`: by which Avro payloads are shown as JSON; None: the event itself is not shown."""
    return DeadLetterView(
        number=letter.number,
        cursor=cursor_at(letter.position),
        reason=letter.reason,
        tries=letter.tries,
        first_at=time_of(letter.first_at) or "",
        last_at=time_of(letter.last_at) or "",
        event=None if schemas is None else _event_of(letter, schemas),
    )


def _event_of(letter: DeadLetter, schemas: SchemaBook) -> Any:
    """The event as JSON; None when its copy cannot be read, or its retention ended before one could be made."""
    try:
        return msgspec.json.decode(structured_json(event_from(*json_stored(letter.head, letter.data, schemas))))
    except Malformed:
        return None


@router.delete("/api/subscriptions/{name:path}/dead-letters", responses=LATER)
async def drop_dead_letters(
    name: str,
    parts: PartsOf,
    caller: Caller,
    response: Response,
    position: list[str] = Query(default_factory=list, description="Cursors of single events; all when none is given."),
) -> CommandDone:
    """Forget dead letters."""
    subscription = subscription_of(parts, caller, name)
    positions = await positions_at(parts.events, position)
    return await order(parts, subscription, caller, DropDeadLetters(tuple(positions)), response)


@router.get("/api/subscriptions/{name:path}/dead-letters/{number}")
async def dead_letter(name: str, number: Number, parts: PartsOf, caller: Caller) -> DeadLetterView:
    """One dead letter with its event."""
    subscription = subscription_of(parts, caller, name)
    return _dead_letter(await _one(parts, subscription, number), _schemas(parts, caller, subscription))


@router.post("/api/subscriptions/{name:path}/dead-letters/retry", responses=LATER)
async def retry_dead_letters(name: str, body: RetryBody, parts: PartsOf, caller: Caller, response: Response) -> CommandDone:
    """Send dead letters again, with all their tries and time, whatever the filter says now."""
    subscription = subscription_of(parts, caller, name)
    require_entitled(parts, subscription)
    letters = [await _one(parts, subscription, number) for number in body.numbers]
    act = Redeliver(tuple(letter.position for letter in letters), dead_letters=body.all)
    if not letters and not body.all:
        raise NotFound("no dead letter is named", expected="numbers, or all")
    return await order(parts, subscription, caller, act, response)


@router.post("/api/subscriptions/{name:path}/dead-letters/{number}/retry", responses=LATER)
async def retry_dead_letter(name: str, number: Number, parts: PartsOf, caller: Caller, response: Response) -> CommandDone:
    """Send one dead letter again."""
    return await retry_dead_letters(name, RetryBody(numbers=[number]), parts, caller, response)


@router.delete("/api/subscriptions/{name:path}/dead-letters/{number}", responses=LATER)
async def drop_dead_letter(name: str, number: Number, parts: PartsOf, caller: Caller, response: Response) -> CommandDone:
    """Forget one dead letter."""
    subscription = subscription_of(parts, caller, name)
    letter = await _one(parts, subscription, number)
    return await order(parts, subscription, caller, DropDeadLetters((letter.position,)), response)


async def _one(parts: ApiParts, subscription: Subscription, number: int) -> DeadLetter:
    letter = await asyncio.to_thread(parts.dead_letters.dead_letter, subscription.lane, number)
    if letter is None:
        raise NotFound(f"there is no dead letter {number}")
    return letter
