"""`S/dead-letters`: discarded messages are kept, shown and sent again (HER-149 to HER-151)."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from tidings.delivery.push.reader import DeadLetter
from tidings.doors.deliveries.commands import command
from tidings.doors.deliveries.start_points import instant_of
from tidings.doors.hermes.documents import stored
from tidings.doors.hermes.documents.fields import fields_of
from tidings.doors.hermes.refusals import ErrorCode, refused
from tidings.doors.hermes.resources.request import HermesCaller, HermesRequest, document_of, done, told
from tidings.doors.hermes.views.traces import dead_letter_shown
from tidings.log.commands import Act, DropDeadLetters, Redeliver
from tidings.registry.model import Subscription

router = APIRouter(tags=["dead letters"])

MOST = 1000
_LETTERS = "/topics/{topic}/subscriptions/{name}/dead-letters"
_NUMBER = r"^[0-9]{1,18}$"
_CHOICE = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "properties": {"ids": {"type": "array", "items": {"type": "string"}}, "all": {"type": "boolean"}},
                }
            }
        },
    }
}


@router.get(_LETTERS)
async def list_dead_letters(
    topic: str,
    name: str,
    asked: HermesCaller,
    limit: int = Query(100, ge=1, le=MOST),
    cursor: str = Query("0", pattern=_NUMBER),
    since: str = Query("", alias="from"),
    until: str = Query("", alias="to"),
) -> Response:
    """Discarded messages without their bodies, oldest first; `cursor` of an answer goes on. Times are of the last attempt."""
    subscription = stored.core_subscription_of(asked.snapshot, topic, name)
    low, high = (None if not text else instant_of(text) for text in (since, until))
    found = await asyncio.to_thread(asked.parts.dead_letters.dead_letters, subscription.lane, int(cursor), limit)
    chosen = [one for one in found if (low is None or one.last_at >= low) and (high is None or one.last_at < high)]
    more = {"cursor": str(found[-1].number)} if len(found) == limit else {}
    return told({"items": [dead_letter_shown(one, with_message=False) for one in chosen], **more})


@router.get(f"{_LETTERS}/{{id}}")
async def get_dead_letter(topic: str, name: str, id: str, asked: HermesCaller) -> Response:
    """One discarded message with its body."""
    subscription = stored.core_subscription_of(asked.snapshot, topic, name)
    return told(dead_letter_shown(await _letter(asked, subscription, id), with_message=True))


@router.post(f"{_LETTERS}/retry", status_code=HTTPStatus.ACCEPTED, openapi_extra=_CHOICE, response_class=Response)
async def retry_dead_letters(topic: str, name: str, request: Request, asked: HermesCaller) -> Response:
    """Send some or all of them again, with a new time to live."""
    asked.require_changing(topic)
    subscription = stored.core_subscription_of(asked.snapshot, topic, name)
    fields = fields_of(await document_of(request), "DeadLetters")
    every, ids = fields.flag("all"), fields.texts("ids")
    if not every and not ids:
        raise refused(ErrorCode.VALIDATION_ERROR, 'DeadLetters must name "ids", or "all": true')
    letters = [await _letter(asked, subscription, one) for one in ids[:MOST]]
    positions = tuple(letter.position for letter in letters)
    return await _ordered(asked, subscription, Redeliver(positions, dead_letters=every))


@router.post(f"{_LETTERS}/{{id}}/retry", status_code=HTTPStatus.ACCEPTED, response_class=Response)
async def retry_dead_letter(topic: str, name: str, id: str, asked: HermesCaller) -> Response:
    """Send one of them again."""
    asked.require_changing(topic)
    subscription = stored.core_subscription_of(asked.snapshot, topic, name)
    letter = await _letter(asked, subscription, id)
    return await _ordered(asked, subscription, Redeliver((letter.position,)))


@router.delete(f"{_LETTERS}/{{id}}", status_code=HTTPStatus.NO_CONTENT, response_class=Response)
async def drop_dead_letter(topic: str, name: str, id: str, asked: HermesCaller) -> Response:
    """Forget one of them."""
    asked.require_changing(topic)
    subscription = stored.core_subscription_of(asked.snapshot, topic, name)
    letter = await _letter(asked, subscription, id)
    await command(asked.parts, subscription.lane, asked.caller.name, DropDeadLetters((letter.position,)))
    return done(HTTPStatus.NO_CONTENT)


async def _ordered(asked: HermesRequest, subscription: Subscription, act: Act) -> Response:
    await command(asked.parts, subscription.lane, asked.caller.name, act)
    return done(HTTPStatus.ACCEPTED)


async def _letter(asked: HermesRequest, subscription: Subscription, id: str) -> DeadLetter:
    known = id.isascii() and id.isdigit() and len(id) <= 18
    found = await asyncio.to_thread(asked.parts.dead_letters.dead_letter, subscription.lane, int(id)) if known else None
    if found is None:
        raise refused(ErrorCode.OTHER, f"there is no dead letter {id[:40]}", HTTPStatus.NOT_FOUND)
    return found
