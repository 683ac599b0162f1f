"""Below a subscription: its state, moving back, sending again.

What changes a lane is a command to delivery: 200 once it was applied, 202 when it is durable and will be.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any, Literal

import msgspec
from fastapi import APIRouter, Response
from pydantic import Field

from tidings.access.principals import Principal
from tidings.clock import Instant
from tidings.delivery.push.reader import BreakerView, DeliveryCounts, LaneView
from tidings.doors import registry_changes
from tidings.doors.api_parts import ApiParts
from tidings.doors.deliveries.commands import command
from tidings.doors.deliveries.refills import progress_of, refill_from
from tidings.doors.deliveries.start_points import marks_at_any, positions_at
from tidings.doors.entitlement import require_entitled
from tidings.doors.native.bodies.wire import Wire, time_of
from tidings.doors.native.callers import Caller, PartsOf, subscription_of
from tidings.doors.requests.merge_patch import unless_changed
from tidings.errors import Malformed
from tidings.log.commands import Act, Activate, CloseBreaker, Disable, Enable, Redeliver, Rewind, Suspend
from tidings.log.cursor import cursor_at, cursor_of
from tidings.registry.model import Subscription
from tidings.registry.rules.entitlements import entitlement

router = APIRouter(tags=["lanes"])

LATER: dict[int | str, dict[str, Any]] = {202: {"description": "Durable, and applied as soon as delivery comes to it."}}


class StateBody(Wire):
    """Whether the lane is read. An enabled subscription goes on where it stopped, or with what comes `from` now."""

    state: Literal["active", "suspended", "disabled", "enabled"]
    start: Literal["stop", "now"] = Field(default="stop", alias="from")


class BreakerBody(Wire):
    """A circuit breaker. `probe` is the status of the last probe; `why` says why it did not close the breaker."""

    status: str
    origin: str
    last_opened: str | None
    modified: str | None
    loops: int
    postponed_until: str | None
    probed_at: str | None
    probe: int | None
    why: str
    next_probe: str | None


class CountsView(Wire):
    """Counted since the subscription exists, restarts included; `bytes` of bodies that were delivered, errors of attempts.

    `replays` are rewinds, and orders to send something again.
    """

    dead: int
    bytes: int
    last_delivered: str | None
    timeouts: int
    client_errors: int
    server_errors: int
    other_errors: int
    replays: int


class StateView(Wire):
    """A lane as delivery last saved it. `lag` counts entries that are not final yet. `rate` is per second at the most, now."""

    state: str
    reason: str
    breaker: BreakerBody | None
    paused_until: str | None
    rate: float | None
    rate_mode: str
    lag: int
    open_items: int
    delivered: int
    failed_attempts: int
    dead_letters: int
    expired: int
    last_error: str
    next_due: str | None
    redelivering: int = Field(description="Events that are sent again and not final yet, waiting dead letters included.")
    refill: RefillView | None = Field(default=None, description="How far the lane is filled from the log, if it ever was.")
    counts: CountsView


class RefillView(Wire):
    """How far a lane is filled from the log. `waiting`: it has not begun, or the subscription may have nothing yet."""

    state: Literal["waiting", "filling", "done"]
    share: float = Field(description="How much of it is done, from 0 to 1.")
    begin: str = Field(description="Cursor after which the lane begins.")
    reached: str = Field(description="Cursor up to which it is filled.")


class RefillBody(Wire):
    """Where the lane begins anew."""

    start: str = Field(alias="from", description="first, a cursor, or a time such as 2030-01-31T12:00:00Z.")


class RewindBody(Wire):
    """Where to go on."""

    to: str = Field(description="A cursor, `_first`, `_last`, or a time such as 2030-01-31T12:00:00Z.")


class RedeliverBody(Wire):
    """What to send again."""

    positions: list[str] = Field(default_factory=list, max_length=10_000, description="Cursors of events.")
    dead_letters: bool = Field(default=False, description="All dead letters.")


class CommandDone(Wire):
    """What became of a command."""

    applied: bool


async def order(parts: ApiParts, subscription: Subscription, by: Principal, act: Act, response: Response) -> CommandDone:
    """Give a command about the subscription's lane; 200 when it was applied, else 202."""
    applied = await command(parts, subscription.lane, by.name, act)
    response.status_code = HTTPStatus.OK if applied else HTTPStatus.ACCEPTED
    return CommandDone(applied=applied)


@router.get("/api/subscriptions/{name:path}/state")
async def get_state(name: str, parts: PartsOf, caller: Caller) -> StateView:
    """How a subscription's lane is doing."""
    subscription = subscription_of(parts, caller, name)
    shown = await state_view(parts, await asyncio.to_thread(parts.delivery.lane, subscription.lane))
    shown = shown.model_copy(update={"refill": await refill_view(parts, subscription)})
    found = entitlement(parts.snapshot, subscription)
    return shown.model_copy(update={"state": found.state.value, "reason": found.reason}) if found.bar else shown


async def state_view(parts: ApiParts, lane: LaneView) -> StateView:
    """The lane as it is shown."""
    detail, backlogs = lane.detail, await parts.lane_index.backlogs({lane.lane: lane.low_water})
    return StateView(
        state=lane.state,
        reason=detail.disabled,
        breaker=None if detail.breaker is None else _breaker(detail.breaker, parts.clock.now()),
        paused_until=time_of(_ahead(detail.paused_until, parts.clock.now())),
        rate=detail.rate,
        rate_mode=detail.mode,
        lag=backlogs[lane.lane].entries,
        open_items=lane.open_items,
        delivered=lane.delivered,
        failed_attempts=lane.failed_attempts,
        dead_letters=lane.dead_letters,
        expired=lane.expired,
        last_error=lane.last_error,
        next_due=time_of(lane.next_due),
        redelivering=detail.redelivering,
        counts=_counts(lane.counts),
    )


async def refill_view(parts: ApiParts, subscription: Subscription) -> RefillView | None:
    """How far the newest filling of the lane has come."""
    if subscription.fill is None:
        return None
    fillings = await parts.lane_index.fillings()
    found = progress_of(subscription, fillings.get(subscription.lane), await parts.lanes.routed())
    if found is None:
        return None
    stage, share, begin, reached = found
    return RefillView(state=stage.value, share=round(share, 3), begin=cursor_of(begin), reached=cursor_of(reached))


def _ahead(instant: Instant | None, now: Instant) -> Instant | None:
    """The time, if it is still to come: a lane is saved when something happens, and a pause simply ends."""
    return instant if instant is not None and instant > now else None


def _counts(counts: DeliveryCounts) -> CountsView:
    return CountsView(**{**msgspec.structs.asdict(counts), "last_delivered": time_of(counts.last_delivered)})


def _breaker(breaker: BreakerView, now: Instant) -> BreakerBody:
    return BreakerBody(
        status=breaker.status,
        origin="0-0" if breaker.origin is None else cursor_at(breaker.origin),
        last_opened=time_of(breaker.last_opened),
        modified=time_of(breaker.modified),
        loops=breaker.loops,
        postponed_until=time_of(_ahead(breaker.postponed_until, now)),
        probed_at=time_of(breaker.probed_at),
        probe=breaker.probe,
        why=breaker.why,
        next_probe=time_of(breaker.next_probe),
    )


@router.put("/api/subscriptions/{name:path}/state", responses=LATER)
async def put_state(name: str, body: StateBody, parts: PartsOf, caller: Caller, response: Response) -> CommandDone:
    """Suspend or disable a subscription, or let it go on where it stopped. Meanwhile its lane is still filled."""
    acts: dict[str, Act] = {
        "active": Activate(),
        "suspended": Suspend(),
        "disabled": Disable(),
        "enabled": Enable(skip=body.start == "now"),
    }
    act = acts[body.state]
    return await order(parts, subscription_of(parts, caller, name), caller, act, response)


@router.post("/api/subscriptions/{name:path}/rewind", responses=LATER)
async def rewind(name: str, body: RewindBody, parts: PartsOf, caller: Caller, response: Response) -> CommandDone:
    """Move the subscription to another place of its lane, back or forward."""
    subscription = subscription_of(parts, caller, name)
    marks = await marks_at_any(parts.events, body.to)
    return await order(parts, subscription, caller, Rewind(marks), response)


@router.post("/api/subscriptions/{name:path}/refill", status_code=HTTPStatus.ACCEPTED)
async def refill(name: str, body: RefillBody, parts: PartsOf, caller: Caller) -> RefillView:
    """Fill the lane anew from the log: what it may see of today, by its filter of today. Its state shows how far that is.

    Unlike a rewind, this reaches back to before the subscription was made. Delivery goes on where the lane begins then.
    """
    fill = await refill_from(parts.events, body.start)
    standing = subscription_of(parts, caller, name)
    guard = unless_changed(lambda now: now.subscriptions.get(standing.name), standing)
    (stored,) = await registry_changes.put(parts, [msgspec.structs.replace(standing, fill=fill)], caller.name, guard)
    assert isinstance(stored, Subscription)
    shown = await refill_view(parts, stored)
    assert shown is not None
    return shown


@router.post("/api/subscriptions/{name:path}/breaker/close", responses=LATER)
async def close_breaker(name: str, parts: PartsOf, caller: Caller, response: Response) -> CommandDone:
    """Close the circuit breaker: what waits behind it is sent now."""
    subscription = subscription_of(parts, caller, name)
    require_entitled(parts, subscription)
    return await order(parts, subscription, caller, CloseBreaker(), response)


@router.post("/api/subscriptions/{name:path}/redeliver", responses=LATER)
async def redeliver(name: str, body: RedeliverBody, parts: PartsOf, caller: Caller, response: Response) -> CommandDone:
    """Send events again, whatever became of them before."""
    if not body.positions and not body.dead_letters:
        raise Malformed("nothing is named to be sent again", expected="positions or deadLetters")
    subscription = subscription_of(parts, caller, name)
    require_entitled(parts, subscription)
    positions = await positions_at(parts.events, body.positions)
    return await order(parts, subscription, caller, Redeliver(tuple(positions), body.dead_letters), response)
