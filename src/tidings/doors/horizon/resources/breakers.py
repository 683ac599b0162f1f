"""Circuit breakers of all environments that the caller's token is good for: below `/api/v1` (HOR-156 to HOR-158)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Literal

from fastapi import APIRouter, Query

from tidings.delivery.push.reader import BreakerView
from tidings.doors.deliveries.commands import command
from tidings.doors.horizon.callers import may_enter
from tidings.doors.horizon.door import is_ours
from tidings.doors.horizon.names import PREFIX
from tidings.doors.horizon.resources.request import AskedBy, HorizonRequest
from tidings.doors.horizon.views.breakers import CLOSED, shown_breaker, shown_callback, time_of
from tidings.doors.horizon.views.states import require_active
from tidings.log.commands import CloseBreaker
from tidings.registry.model import Push, Subscription

router = APIRouter(tags=["circuit breakers"])


@router.get("/api/v1/circuit-breakers")
async def breakers(
    asked: AskedBy,
    status: Literal["OPEN", "REPUBLISHING", "CLOSED"] | None = Query(None, description="Only those; else all but closed ones."),
) -> dict[str, Any]:
    """The breakers of the caller's subscriptions; for administrators, of all."""
    found = await asyncio.to_thread(lambda: list(_breakers(asked)))
    shown = [shown_breaker(breaker, one, asked.parts) for one, breaker in found]
    return {"items": [one for one in shown if (one["status"] == status if status else one["status"] != CLOSED)]}


@router.get("/api/v1/circuit-breakers/{subscription}")
async def breaker(subscription: str, asked: AskedBy) -> dict[str, Any]:
    """One breaker, also a closed one."""
    found = _own(asked, subscription)
    view = await asyncio.to_thread(asked.parts.delivery.lane, found.lane)
    return shown_breaker(view.detail.breaker, found, asked.parts)


@router.put("/api/v1/circuit-breakers/close/{subscription}")
async def close(subscription: str, asked: AskedBy) -> dict[str, Any]:
    """Close a breaker without a probe: what waits behind it is sent now."""
    found = _own(asked, subscription)
    require_active(asked.parts.snapshot, found)
    await command(asked.parts, found.lane, asked.client.id, CloseBreaker())
    view = await asyncio.to_thread(asked.parts.delivery.lane, found.lane)
    return shown_breaker(view.detail.breaker, found, asked.parts)


@router.get("/api/v1/health-checks")
async def health_checks(asked: AskedBy) -> dict[str, Any]:
    """The callbacks that are probed now, and what the last probe found."""
    found = await asyncio.to_thread(lambda: list(_breakers(asked)))
    return {
        "items": [_check(asked, one, breaker) for one, breaker in found if breaker is not None and breaker.status == "open"]
    }


@router.get("/api/v1/republishing-entries")
async def republishing(asked: AskedBy) -> dict[str, Any]:
    """The subscriptions whose waiting events are being sent."""
    found = await asyncio.to_thread(lambda: list(_breakers(asked)))
    shown = [shown_breaker(breaker, one, asked.parts) for one, breaker in found]
    return {"items": [one for one in shown if one["status"] == "REPUBLISHING"]}


def _breakers(asked: HorizonRequest) -> Iterator[tuple[Subscription, BreakerView | None]]:
    """The caller's callback subscriptions and their breakers."""
    lanes = asked.parts.delivery.lanes()
    for one in sorted(_callbacks(asked), key=lambda one: one.name):
        if asked.client.acts_for(one.owner):
            view = lanes.get(one.lane)
            yield one, None if view is None else view.detail.breaker


def _own(asked: HorizonRequest, subscription: str) -> Subscription:
    what = f"the callback subscription {subscription[:80]}"
    for one in _callbacks(asked):
        if one.name.name == subscription:
            asked.client.require((one.owner,), what)
            return one
    raise asked.client.absent(what)


def _callbacks(asked: HorizonRequest) -> Iterator[Subscription]:
    """The callback subscriptions of the environments where the caller may be: no path names one here."""
    settings = asked.parts.settings.horizon
    for name, one in asked.parts.snapshot.subscriptions.items():
        here = is_ours(name.namespace) and may_enter(asked.client, name.namespace.removeprefix(PREFIX), settings)
        if here and isinstance(one.delivery, Push):
            yield one


def _check(asked: HorizonRequest, subscription: Subscription, breaker: BreakerView) -> dict[str, Any]:
    assert isinstance(subscription.delivery, Push)
    return {
        "subscriptionId": subscription.name.name,
        "environment": subscription.name.namespace.partition("/")[2],
        "method": (subscription.delivery.probe_method or "HEAD"),
        "callbackUrl": shown_callback(subscription.delivery.url, asked.client, subscription),
        "lastChecked": time_of(breaker.probed_at),
        "lastCode": breaker.probe,
        "nextCheck": time_of(breaker.next_probe),
    }
