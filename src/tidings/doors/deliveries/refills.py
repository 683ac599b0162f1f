"""Lanes filled from the log: asking for it in the words of people, and how far it has come."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from tidings.clock import Instant
from tidings.doors.api_parts import ApiParts
from tidings.doors.deliveries.start_points import FIRST, instant_of, marks_at_any
from tidings.errors import Malformed
from tidings.lanes.sink import Filling
from tidings.log.port import EventLog
from tidings.log.position import Marks
from tidings.registry.model import LaneFill, Name, Subscription

EXPECTED = "now, first, or a time that has passed such as 2030-01-31T12:00:00Z"


async def fill_from(events: EventLog, start: str | None, now: Instant) -> LaneFill | None:
    """The filling that a subscription made with this start asks for; None: it begins with what comes. Raises Malformed."""
    match start:
        case None | "now":
            return None
        case "first":
            return LaneFill.beyond({})
        case time:
            if ":" not in time:
                raise Malformed("a subscription cannot begin there", at="start", found=time, expected=EXPECTED)
            if (moment := instant_of(time)) > now:
                raise Malformed("the time has not come yet", at="start", found=time, expected=EXPECTED)
            return LaneFill.beyond(await events.before(moment))


async def refill_from(events: EventLog, place: str) -> LaneFill:
    """The same for a lane that is there: `first`, a cursor or a time. Raises Malformed."""
    return LaneFill.beyond(await marks_at_any(events, FIRST if place == "first" else place))


class RefillStage(StrEnum):
    """Where a filling stands. WAITING: it has not begun, or there is nothing yet that the subscription may have."""

    WAITING = "waiting"
    FILLING = "filling"
    DONE = "done"


class RefillProgress(NamedTuple):
    """How far a lane is filled: between `begin` and `end`, so much of it."""

    stage: RefillStage
    share: float
    begin: Marks
    reached: Marks


async def filling_shares(parts: ApiParts, subscriptions: Iterable[Subscription]) -> Mapping[Name, float]:
    """How much is done of those lanes that are being filled, or are to be."""
    asking = [one for one in subscriptions if one.fill is not None]
    if not asking:
        return {}
    fillings, routed = await parts.lane_index.fillings(), await parts.lanes.routed()
    found = ((one.name, progress_of(one, fillings.get(one.lane), routed)) for one in asking)
    return {name: round(one.share, 3) for name, one in found if one is not None and one.stage is not RefillStage.DONE}


def progress_of(subscription: Subscription, filling: Filling | None, routed: Marks) -> RefillProgress | None:
    """How far the newest filling of its lane has come; None: there never was one."""
    fill = subscription.fill
    if fill is None:
        return None
    if filling is None or filling.number < fill.number:
        return RefillProgress(RefillStage.WAITING, 0.0, fill.marks, fill.marks)
    if filling.done:
        return RefillProgress(RefillStage.DONE, 1.0, filling.after, filling.reached)
    begin, done, whole = (sum(marks.values()) for marks in (filling.after, filling.reached, routed))
    share = 1.0 if whole <= begin else min(1.0, (done - begin) / (whole - begin))
    return RefillProgress(RefillStage.FILLING, share, filling.after, filling.reached)
