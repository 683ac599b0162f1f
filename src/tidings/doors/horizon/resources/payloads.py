"""`GET /v1/{environment}/data/{subscriptionId}/{messageId}`: the payload that an event refers to (HOR-145, HOR-146)."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from tidings.doors.deliveries.payloads import payload_at
from tidings.doors.horizon.resources.request import PROBLEM, AskedBy
from tidings.doors.horizon.resources.subscriptions import known
from tidings.doors.horizon.views.states import require_active
from tidings.doors.sse.message_ids import position_of
from tidings.errors import Forbidden, NotFound

router = APIRouter(tags=["data"])

_GET: dict[int | str, dict[str, Any]] = {
    200: {"description": "The payload as the subscriber's filters left it.", "content": {"*/*": {}}},
    409: {"description": "The subscription is not ACTIVE.", "content": PROBLEM},
    410: {"description": "Its retention is over.", "content": PROBLEM},
}


@router.get("/v1/{environment}/data/{subscription}/{message}", responses=_GET, response_class=Response)
async def data(subscription: str, message: str, asked: AskedBy) -> Response:
    """The payload of an event, for its subscriber; any number of times, until its retention ends."""
    what = f"the subscription {subscription[:80]}"
    found = known(asked, subscription, what)
    if not asked.client.unchecked and asked.client.id != found.owner:
        raise Forbidden(f"{what} does not belong to {asked.client.id}, or there is none")
    require_active(asked.parts.snapshot, found)
    position = await position_of(asked.parts, found.lane, message)
    if position is None:
        raise NotFound(f"the subscription has no event {message[:50]}")
    payload = await payload_at(asked.parts, found, position)
    return Response(payload.data, media_type=None, headers={"content-type": payload.content_type})
