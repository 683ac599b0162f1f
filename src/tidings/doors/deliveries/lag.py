"""How far each stage is behind, in entries and seconds: log end → routed → delivered. Read from the log, lanes and delivery."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidings.clock import SECOND, Instant
from tidings.delivery.push.reader import DeliveryReader, LaneView
from tidings.lanes.port import Backlog, LaneIndex, Lanes
from tidings.log.port import Between, EventLog
from tidings.log.position import LaneNumber, Marks
from tidings.registry.model import Name, Push, Subscription

AT_ONCE = 16
"""Events that are looked at in one go for the oldest that is still there."""


@dataclass(frozen=True, slots=True)
class Lag:
    """Events that are not done yet, and the age of the oldest of them in seconds."""

    events: int
    seconds: float


@dataclass(frozen=True, slots=True)
class SubscriptionLag:
    """One subscription's lane and how much of it is not final yet."""

    name: Name
    events: int
    lane: LaneView


@dataclass(frozen=True, slots=True)
class Lags:
    """All stages at about the same moment. `delivery`: what the hub has to push; others read streams and feeds, or nobody."""

    end: Marks
    routed: Marks
    routing: Lag
    delivery: Lag
    subscriptions: Sequence[SubscriptionLag]


@dataclass(frozen=True, slots=True)
class Gauges:
    """Where the stages can be read."""

    events: EventLog
    lanes: Lanes
    lane_index: LaneIndex
    delivery: DeliveryReader


async def measured(gauges: Gauges, subscriptions: Sequence[Subscription], now: Instant) -> Lags:
    """The lag of every stage."""
    end, routed = await gauges.events.ends(), await gauges.lanes.routed()
    views: Mapping[LaneNumber, LaneView] = await asyncio.to_thread(gauges.delivery.lanes)
    lanes = {one.lane: views.get(one.lane) or LaneView(lane=one.lane) for one in subscriptions}
    backlogs = await gauges.lane_index.backlogs({lane: view.low_water for lane, view in lanes.items()})
    behind = [backlogs[one.lane] for one in subscriptions if isinstance(one.delivery, Push)]
    unrouted = await gauges.events.stretch(Between(routed, end))
    return Lags(
        end=end,
        routed=routed,
        routing=Lag(unrouted.events, _age(now, unrouted.oldest)),
        delivery=Lag(sum(one.entries for one in behind), _age(now, await _oldest(gauges.events, behind))),
        subscriptions=[SubscriptionLag(one.name, backlogs[one.lane].entries, lanes[one.lane]) for one in subscriptions],
    )


async def _oldest(events: EventLog, behind: Sequence[Backlog]) -> Instant | None:
    """When the oldest event that waits was published."""
    firsts = sorted({one.first for one in behind if one.first is not None})
    # The oldest may be gone from the log; the others are waiting all the same.
    for begin in range(0, len(firsts), AT_ONCE):
        found = (await events.fetch(firsts[begin : begin + AT_ONCE])).values()
        if found:
            return min(entry.at for entry in found)
    return None


def _age(now: Instant, oldest: Instant | None) -> float:
    return 0.0 if oldest is None else max(0.0, (now - oldest) / SECOND)
