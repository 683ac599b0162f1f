"""How far each stage is behind, in entries and seconds: log end → routed → delivered. Read from the log, lanes and delivery."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tidings.clock import SECOND, Instant
from tidings.delivery.push.reader import DeliveryReader, LaneView
from tidings.log.port import LanesReader, Limit, LogReader
from tidings.log.position import EMBEDDED, LaneNumber, Marks, Offset, Position
from tidings.registry.model import Name, Push, Subscription


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

    log: LogReader
    lanes: LanesReader
    delivery: DeliveryReader


def measured(gauges: Gauges, subscriptions: Iterable[Subscription], now: Instant) -> Lags:
    """The lag of every stage. Blocks while it reads: call it in a thread."""
    end, routed = gauges.log.ends(), gauges.lanes.routed()
    views: Mapping[LaneNumber, LaneView] = gauges.delivery.lanes()
    pairs = [(one, _of_subscription(gauges.lanes, one, views)) for one in subscriptions]
    listed = [lag for _, lag in pairs]
    behind = [lag for one, lag in pairs if lag.events and isinstance(one.delivery, Push)]
    return Lags(
        end=end,
        routed=routed,
        routing=Lag(gauges.log.count(routed, end), _age(now, _oldest_unrouted(gauges.log, routed, end))),
        delivery=Lag(sum(one.events for one in behind), _age(now, _oldest_undelivered(gauges, behind))),
        subscriptions=listed,
    )


def _of_subscription(lanes: LanesReader, subscription: Subscription, views: Mapping[LaneNumber, LaneView]) -> SubscriptionLag:
    view = views.get(subscription.lane) or LaneView(lane=subscription.lane)
    return SubscriptionLag(subscription.name, lanes.count_after(view.lane, view.low_water, EMBEDDED), view)


def _oldest_unrouted(log: LogReader, routed: Marks, end: Marks) -> Instant | None:
    entries = log.scan(routed, end, Limit(entries=1)).entries
    return entries[0].at if entries else None


def _oldest_undelivered(gauges: Gauges, behind: Sequence[SubscriptionLag]) -> Instant | None:
    firsts = [offset for one in behind if (offset := _first_open(gauges.lanes, one.lane)) is not None]
    # The oldest may be gone from the log; the others are waiting all the same.
    for offset in sorted(set(firsts)):
        for entry in gauges.log.fetch([Position(EMBEDDED, offset)]).values():
            return entry.at
    return None


def _first_open(lanes: LanesReader, view: LaneView) -> Offset | None:
    blocks = lanes.blocks(view.lane, view.low_water, EMBEDDED, 1)
    if not blocks:
        return None
    offsets = array("q", blocks[0].offsets)
    return next((Offset(offset) for offset in offsets if offset > view.low_water), None)


def _age(now: Instant, oldest: Instant | None) -> float:
    return 0.0 if oldest is None else max(0.0, (now - oldest) / SECOND)
