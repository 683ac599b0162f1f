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
from tidings.doors.api_parts import ApiParts
from tidings.doors.deliveries.commands import command
from tidings.doors.deliveries.start_points import marks_at_any, positions_at
from tidings.doors.entitlement import require_entitled
from tidings.doors.native.bodies.wire import Wire, time_of
from tidings.doors.native.callers import Caller, PartsOf, subscription_of
from tidings.errors import Malformed
from tidings.log.commands import Act, Activate, CloseBreaker, Disable, Enable, Redeliver, Rewind, Suspend
from tidings.log.cursor import cursor_at
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
    counts: CountsView


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
