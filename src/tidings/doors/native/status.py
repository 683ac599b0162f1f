"""How the hub is doing: `GET /api/status`, `GET /health/live`, `GET /health/ready`, `GET /metrics`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Literal, TypeAlias

import msgspec
from fastapi import APIRouter, Response
from pydantic import Field

from tidings import __version__
from tidings.access.principals import Right
from tidings.clock import SECOND
from tidings.delivery.push.reader import LaneView
from tidings.doors.api_parts import ApiParts
from tidings.doors.deliveries.lag import Gauges, Lag, Lags, SubscriptionLag, measured
from tidings.doors.deliveries.refills import filling_shares
from tidings.doors.feed_state.cursor_set_lag import Followed, followed
from tidings.doors.native.bodies.wire import Wire, time_of
from tidings.doors.native.callers import Caller, PartsOf, owns
from tidings.log.cursor import cursor_of
from tidings.observe import metrics
from tidings.observe.part_status import PartState, Series, read_faces
from tidings.registry.model import Name, Snapshot, Subscription
from tidings.registry.rules.entitlements import Entitled, entitlement

router = APIRouter(tags=["operating"])

PARTS = ("api", "pipeline", "deliver")
CURSOR_SERIES = 1000
"""Kept cursors that have a figure: those that were used last."""


class PartView(Wire):
    """Whether a part does its work; if not, why."""

    ready: bool
    reason: str


class LagView(Wire):
    """Entries that a stage has not finished, and the age of the oldest in seconds."""

    events: int
    seconds: float


class SubscriptionStatus(Wire):
    """One subscription."""

    name: str
    state: str
    lag: int
    open_items: int
    delivered: int
    failed_attempts: int
    dead_letters: int
    last_error: str
    next_due: str | None
    refill: float | None = Field(default=None, description="While its lane is filled from the log: how much of it is done.")


class LagsView(Wire):
    """The stages in their order."""

    routing: LagView = Field(description="From the end of the log to what is routed.")
    delivery: LagView = Field(
        description="From what is routed to what is pushed, over the caller's subscriptions with a callback."
    )


Mode: TypeAlias = Literal["live", "catching up", "down"]


class RoutingView(Wire):
    """How routing works now."""

    mode: Mode = Field(
        description="live: follows the log; catching up: routes a backlog in parallel; down: the pipeline is not ready."
    )
    step_seconds: float | None = Field(description="How long the latest step took; null before the first.")


class StatusView(Wire):
    """The whole hub at a glance."""

    version: str
    ready: bool
    parts: dict[str, PartView]
    end: str = Field(description="Cursor at the end of the log.")
    routed: str = Field(description="Cursor up to which events are routed.")
    lag: LagsView
    routing: RoutingView
    topics: int
    subscriptions: list[SubscriptionStatus]
    open_items: int
    dead_letters: int


class Alive(Wire):
    """The api process answers."""

    status: str = "live"


class Readiness(Wire):
    """Whether everything does its work, and which part does not."""

    ready: bool
    parts: dict[str, PartView]


def faces_of(parts: ApiParts) -> dict[str, PartState]:
    """The boards of all parts; this process's own without the detour over its file."""
    faces = read_faces(parts.settings.data / "run")
    return {**faces, "api": _own_face(parts)}


def _own_face(parts: ApiParts) -> PartState:
    """The board of the api part. While the log takes nothing it is not ready: nobody can publish."""
    face, refusal = parts.board.face(), parts.log.refusal()
    return msgspec.structs.replace(face, ready=False, reason=refusal) if face.ready and refusal else face


def _part_views(parts: ApiParts) -> dict[str, PartView]:
    faces = faces_of(parts)
    absent = PartView(ready=False, reason="it has not started yet")
    return {
        part: PartView(ready=faces[part].ready, reason=faces[part].reason) if part in faces else absent
        for part in dict.fromkeys((*PARTS, *faces))
    }


async def _lags(parts: ApiParts, subscriptions: list[Subscription]) -> Lags:
    gauges = Gauges(parts.events, parts.lanes, parts.lane_index, parts.delivery)
    return await measured(gauges, subscriptions, parts.clock.now())


@router.get("/api/status")
async def status(parts: PartsOf, caller: Caller) -> StatusView:
    """Version, parts, lag per stage. Administrators see all subscriptions, others their own."""
    mine = [one for _, one in sorted(parts.snapshot.subscriptions.items()) if owns(caller, one)]
    lags, refills = await _lags(parts, mine), await filling_shares(parts, mine)
    return await asyncio.to_thread(_status, parts, lags, refills)


def _status(parts: ApiParts, lags: Lags, refills: Mapping[Name, float]) -> StatusView:
    views, held = _part_views(parts), _held_back(parts.snapshot)
    return StatusView(
        version=__version__,
        ready=all(view.ready for view in views.values()),
        parts=views,
        end=cursor_of(lags.end),
        routed=cursor_of(lags.routed),
        lag=LagsView(routing=_lag(lags.routing), delivery=_lag(lags.delivery)),
        routing=routing_view(faces_of(parts).get("pipeline")),
        topics=len(parts.snapshot.topics),
        subscriptions=[_subscription(one, held.get(one.name, ""), refills.get(one.name)) for one in lags.subscriptions],
        open_items=sum(one.lane.open_items for one in lags.subscriptions),
        dead_letters=sum(one.lane.dead_letters for one in lags.subscriptions),
    )


def routing_view(face: PartState | None) -> RoutingView:
    """What the pipeline's status says of routing; None: it has not started yet."""
    figures = {one.name: one.value for one in face.series} if face else {}
    return RoutingView(mode=_mode(face, figures), step_seconds=figures.get("tidings_routing_step_seconds"))


def _mode(face: PartState | None, figures: Mapping[str, float]) -> Mode:
    if face is None or not face.ready:
        return "down"
    return "live" if figures.get("tidings_routing_live") else "catching up"


def _lag(lag: Lag) -> LagView:
    return LagView(events=lag.events, seconds=round(lag.seconds, 3))


def _held_back(snapshot: Snapshot) -> dict[Name, str]:
    """The subscriptions that are given nothing, and why: blocked, pending or rejected."""
    states = ((name, entitlement(snapshot, one).state) for name, one in snapshot.subscriptions.items())
    return {name: state.value for name, state in states if state is not Entitled.ACTIVE}


def _subscription(lag: SubscriptionLag, held: str, refill: float | None) -> SubscriptionStatus:
    return SubscriptionStatus(
        name=str(lag.name),
        state=held if held and lag.lane.state == "active" else lag.lane.state,
        lag=lag.events,
        open_items=lag.lane.open_items,
        delivered=lag.lane.delivered,
        failed_attempts=lag.lane.failed_attempts,
        dead_letters=lag.lane.dead_letters,
        last_error=lag.lane.last_error,
        next_due=time_of(lag.lane.next_due),
        refill=refill,
    )


@router.get("/health/live")
async def live() -> Alive:
    """Whether the api process answers at all. Needs no token."""
    return Alive()


@router.get("/health/ready", responses={503: {"model": Readiness, "description": "A part is not ready."}})
async def ready(parts: PartsOf, response: Response) -> Readiness:
    """Whether every part does its work; which does not, and why. Needs no token."""
    views = await asyncio.to_thread(_part_views, parts)
    everything = all(view.ready for view in views.values())
    response.status_code = HTTPStatus.OK if everything else HTTPStatus.SERVICE_UNAVAILABLE
    return Readiness(ready=everything, parts=views)


@router.get("/metrics", response_class=Response)
async def prometheus(parts: PartsOf, caller: Caller) -> Response:
    """Figures of all parts as Prometheus reads them. Needs the right metrics: they name everything that the hub has."""
    caller.require(Right.METRICS)
    lags = await _lags(parts, list(parts.snapshot.subscriptions.values()))
    kept = await asyncio.to_thread(parts.cursor_list.used_last, CURSOR_SERIES)
    cursors, records = await followed(parts, kept), await parts.records.kept()
    text = await asyncio.to_thread(_metrics, parts, lags, cursors, records.bytes)
    return Response(text, media_type=metrics.CONTENT_TYPE)


def _metrics(parts: ApiParts, lags: Lags, cursors: Sequence[Followed], records: int) -> str:
    taken = metrics.gauge("tidings_records_bytes", records)
    return metrics.exposition(faces_of(parts).values(), [*_series(lags), *_cursors(cursors), taken])


def _cursors(cursors: Sequence[Followed]) -> Iterator[Series]:
    for one in cursors:
        kept = one.kept
        labels = {"consumer": kept.key.consumer, "feed": one.feed, "cursorset": kept.key.name, "partition": str(kept.partition)}
        yield metrics.gauge("tidings_feed_cursor_lag_events", one.lag, version=kept.key.version, n=str(kept.key.n), **labels)


def _series(lags: Lags) -> Iterator[Series]:
    breakers = [one.lane.detail.breaker for one in lags.subscriptions]
    yield metrics.gauge("tidings_open_breakers", sum(one is not None and one.status == "open" for one in breakers))
    for stage, lag in (("routing", lags.routing), ("delivery", lags.delivery)):
        yield metrics.gauge("tidings_lag_events", lag.events, stage=stage)
        yield metrics.gauge("tidings_lag_seconds", lag.seconds, stage=stage)
    for one in lags.subscriptions:
        name = str(one.name)
        yield metrics.gauge("tidings_subscription_lag_events", one.events, subscription=name)
        yield metrics.gauge("tidings_subscription_open_items", one.lane.open_items, subscription=name)
        yield metrics.gauge("tidings_subscription_dead_letters", one.lane.dead_letters, subscription=name)
        yield from _counters(name, one.lane)


def _counters(name: str, lane: LaneView) -> Iterator[Series]:
    """What is counted as long as the subscription exists, whichever worker delivers it."""
    counts = lane.counts
    totals = {
        "delivered": lane.delivered,
        "delivered_bytes": counts.bytes,
        "dead": counts.dead,
        "expired": lane.expired,
    }
    for word, value in totals.items():
        yield metrics.counter(f"tidings_subscription_{word}_total", value, subscription=name)
    kinds = {
        "timeout": counts.timeouts,
        "client-error": counts.client_errors,
        "server-error": counts.server_errors,
        "other": counts.other_errors,
    }
    for kind, value in kinds.items():
        yield metrics.counter("tidings_subscription_attempts_failed_total", value, subscription=name, kind=kind)
    if counts.last_delivered is not None:
        yield metrics.gauge("tidings_subscription_last_delivered_seconds", counts.last_delivered / SECOND, subscription=name)
