"""What routing set aside: `GET /api/asides`, the events that could not be routed, with the reason."""

from __future__ import annotations

from fastapi import APIRouter, Query
from pydantic import Field

from tidings.access.principals import Right
from tidings.doors.deliveries.start_points import positions_at
from tidings.doors.native.bodies.wire import Wire
from tidings.doors.native.callers import Caller, PartsOf
from tidings.log.cursor import cursor_at

router = APIRouter(tags=["operating"])


class AsideView(Wire):
    """One event that could not be routed."""

    cursor: str
    subscription: str | None = Field(default=None, description="Whom it was kept from; null means everyone with a filter.")
    reason: str


class AsideList(Wire):
    """Oldest first; `after` goes on."""

    asides: list[AsideView]
    after: str | None = None


@router.get("/api/asides")
async def list_asides(
    parts: PartsOf, caller: Caller, after: str | None = None, limit: int = Query(100, ge=1, le=1000)
) -> AsideList:
    """Events that could not be routed, to one subscription or at all, and why. They are kept as long as the log keeps them."""
    caller.require(Right.ADMIN)
    begin = None if after is None else (await positions_at(parts.events, [after]))[0]
    found = await parts.lane_index.asides(begin, limit)
    names = {each.lane: str(each.name) for each in parts.snapshot.subscriptions.values()}
    views = [
        AsideView(
            cursor=cursor_at(aside.position),
            subscription=None if aside.lane is None else names.get(aside.lane, f"lane {aside.lane}, which has ended"),
            reason=aside.reason,
        )
        for aside in found
    ]
    return AsideList(asides=views, after=views[-1].cursor if views else after)
