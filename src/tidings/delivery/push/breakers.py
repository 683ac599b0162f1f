"""The breakers of all lanes: which of its moves a lane's breaker makes, and which endpoints are probed."""

from __future__ import annotations

from tidings.clock import Clock
from tidings.delivery.push.egress.probes import Probes
from tidings.delivery.push.lane import breaker
from tidings.delivery.push.lane.breaker import Breaker, Status
from tidings.delivery.push.lane.push_lane import PushLane
from tidings.delivery.push.ledger import Ledger
from tidings.delivery.push.policy.decision import Outcome
from tidings.lanes.port import Mark
from tidings.log.position import Position


class Breakers:
    """Moves breakers. What a breaker is now is in the state of its lane, and saved with it.

    Each move says whether lanes send now that did not, or the other way round: then the lane is to be judged anew.
    """

    def __init__(self, ledger: Ledger, probing: Probes, clock: Clock) -> None:
        self._ledger = ledger
        self._probing = probing
        self._clock = clock

    def adopt(self, lane: PushLane) -> bool:
        """The lane has a new policy, or is new. Without a breaker in its policy, what waits is sent now (HOR-132)."""
        if lane.barred:
            # Nobody is asked whether he can take what he may not have; the breaker stays as it is.
            self._probing.forget(lane)
            return False
        if lane.policy is None or lane.policy.breaker is None:
            return self.close(lane)
        if lane.state.breaker.status is Status.REPUBLISHING:
            lane.pace.republish(lane.policy.breaker.republish)
        if lane.state.breaker.status is Status.OPEN:
            self._probing.watch(lane)
        return False

    def open(self, lane: PushLane, origin: Position) -> bool:
        """An event of the lane used up its retries."""
        if lane.policy is None or lane.policy.breaker is None:
            return False
        return self._move(lane, breaker.opened(lane.state.breaker, origin, self._clock.now(), lane.policy.breaker.interval))

    def close(self, lane: PushLane) -> bool:
        """Close the lane's breaker, whatever it is; what waits is sent."""
        return self._move(lane, breaker.closed(lane.state.breaker, self._clock.now()))

    def progress(self, lane: PushLane) -> bool:
        """Something of a republishing lane became final, or it has nothing more."""
        state = lane.state
        reached = state.breaker.until if state.idle else state.low_water.number
        return self._move(lane, breaker.caught_up(state.breaker, reached, self._clock.now()))

    def probed(self, lane: PushLane, outcome: Outcome, end: Mark) -> bool:
        """A probe came back; `end` is how far the lane reaches. What waited becomes a window of its own, so that new events need
        not wait for it. Ordered lanes have one order.
        """
        if lane.policy is None or lane.policy.breaker is None:
            return False
        asks, now, state = lane.policy.breaker, self._clock.now(), lane.state
        moved = self._move(lane, breaker.probed(state.breaker, outcome, now, end.number, asks))
        if moved and not lane.ordered:
            state.split(end)
        return moved

    def forget(self, lane: PushLane) -> None:
        """The lane is gone."""
        self._probing.forget(lane)

    def _move(self, lane: PushLane, to: Breaker) -> bool:
        before = lane.state.breaker
        if to is before:
            return False
        lane.state.breaker = to
        self._ledger.touch(lane)
        if to.status is before.status:
            return False
        republish = lane.policy.breaker.republish if lane.policy and lane.policy.breaker else None
        lane.pace.republish(republish if to.status is Status.REPUBLISHING else None)
        if to.status is Status.OPEN and not lane.barred:
            self._probing.watch(lane)
        else:
            self._probing.forget(lane)
        return True
