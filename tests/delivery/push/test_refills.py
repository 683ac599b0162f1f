"""What is read ahead is read under the policy in force, whenever that changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import cast

from tests.delivery.push.lanes import a_parcel, taken
from tidings.config import load
from tidings.delivery.push.lane.entries import Item, Parcel
from tidings.delivery.push.lane.push_lane import PushLane
from tidings.delivery.push.lane.state import LaneState
from tidings.delivery.push.outcomes import Outcomes
from tidings.delivery.push.policy.policy import Policy, policy_of, stream_policy
from tidings.delivery.push.refills import Refills
from tidings.delivery.push.request.parcels import Parcels
from tidings.delivery.push.store import LaneTally
from tidings.lanes.port import LanePage, Mark, PageLimit
from tidings.log.position import LaneNumber
from tidings.registry.model import Push
from tidings.registry.rules.retention import FOREVER

PUSHED = policy_of(Push(url="http://sink.example/in"), load(environ={}).push)
STREAMED = stream_policy(FOREVER)


class NotedParcels:
    """Lays one entry out; its body tells the form that was asked for."""

    async def after(self, lane: LaneNumber, policy: Policy, after: Mark, limit: PageLimit) -> tuple[LanePage, Sequence[Parcel]]:
        await asyncio.sleep(0)
        return LanePage(after.number, ()), [a_parcel(after.number + 1, str(policy.format.key).encode())]

    async def of(self, lane: LaneNumber, policy: Policy, items: Sequence[Item]) -> Sequence[Parcel]:
        await asyncio.sleep(0)
        return [a_parcel(item.number, str(policy.format.key).encode()) for item in items]


def a_lane() -> PushLane:
    lane = PushLane(LaneNumber(1), "billing", LaneState(), LaneTally())
    lane.adopt(STREAMED)
    return lane


def after_a_change(begin: Callable[[Refills], None], lane: PushLane) -> None:
    """Begin to read, and let the lane be pushed before anything was read; returns when it was read."""

    async def read() -> None:
        done = asyncio.Event()
        begin(Refills(cast(Parcels, NotedParcels()), cast(Outcomes, None), lambda lane: done.set()))
        lane.adopt(PUSHED)
        await asyncio.wait_for(done.wait(), 10)

    asyncio.run(read())


def test_what_is_read_ahead_after_a_change_is_laid_out_as_the_change_wants_it() -> None:
    lane = a_lane()
    after_a_change(lambda refills: refills.refill(lane, lane.state.live), lane)
    assert [parcel.body for parcel in lane.state.live.ready] == [str(PUSHED.format.key).encode()]


def test_open_entries_that_are_read_after_a_change_are_laid_out_as_the_change_wants_it() -> None:
    lane = a_lane()
    item = taken(lane.state, 1)
    item.parcel = None
    after_a_change(lambda refills: refills.load(lane, lane.state.live, [item]), lane)
    assert item.parcel is not None
    assert item.parcel.body == str(PUSHED.format.key).encode()
