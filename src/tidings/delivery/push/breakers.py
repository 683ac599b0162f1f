"""The breakers of all lanes: applies the moves of `breaker.py`, has open ones probed, and tells the engine."""

from __future__ import annotations

from typing import Protocol

from tidings.clock import Clock
from tidings.delivery.push import breaker
from tidings.delivery.push.breaker import Breaker, Status
from tidings.delivery.push.decide import Outcome
from tidings.delivery.push.ledger import Ledger
from tidings.delivery.push.probing import Probing
from tidings.delivery.push.pushing import PushLane
from tidings.delivery.push.reading import Reading
from tidings.delivery.push.sender import Sender
from tidings.errors import LogUnavailable, tolerating
from tidings.log.port import LanesReader
from tidings.log.position import START, Offset


class Engine(Protocol):
    """What breakers need of the engine."""

    ledger: Ledger
    reading: Reading

    def judge(self, lane: PushLane) -> None:
        """What keeps the lane from sending changed."""


class Breakers:
    """Moves breakers. What a breaker is now is in the state of its lane, and saved with it."""

    def __init__(self, engine: Engine, sender: Sender, lanes: LanesReader, clock: Clock) -> None:
        self._engine = engine
        self._lanes = lanes
        self._clock = clock
        self._probing = Probing(sender, clock, self._probed)

    def adopt(self, lane: PushLane) -> None:
        """The lane has a new policy, or is new. Without a breaker in its policy, what waits is sent now (HOR-132)."""
        if lane.barred:
            # Nobody is asked whether he can take what he may not have; the breaker stays as it is.
            self._probing.forget(lane)
            return
        if lane.policy is None or lane.policy.breaker is None:
            self.close_one(lane)
            return
        if lane.state.breaker.status is Status.REPUBLISHING:
            lane.pace.republish(lane.policy.breaker.republish)
        if lane.state.breaker.status is Status.OPEN:
            self._probing.watch(lane)

    def open(self, lane: PushLane, origin: Offset) -> None:
        """An event of the lane used up its retries."""
        if lane.policy is not None and lane.policy.breaker is not None:
            interval = lane.policy.breaker.interval
            self._move(lane, breaker.opened(lane.state.breaker, origin, self._clock.now(), interval))

    def close_one(self, lane: PushLane) -> None:
        """Close the lane's breaker, whatever it is; what waits is sent."""
        self._move(lane, breaker.closed(lane.state.breaker, self._clock.now()))

    def progress(self, lane: PushLane) -> None:
        """Something of a republishing lane became final, or it has nothing more."""
        reached = lane.state.breaker.until if lane.idle else lane.state.low_water
        self._move(lane, breaker.caught_up(lane.state.breaker, reached, self._clock.now()))

    def forget(self, lane: PushLane) -> None:
        """The lane is gone."""
        self._probing.forget(lane)

    async def close(self) -> None:
        """Probe no more."""
        await self._probing.close()

    def _probed(self, lane: PushLane, outcome: Outcome) -> None:
        if lane.policy is not None and lane.policy.breaker is not None:
            end = self._lanes.routed().get(lane.key.partition, START)
            asks = lane.policy.breaker
            before = lane.state.breaker.status
            self._move(lane, breaker.probed(lane.state.breaker, outcome, self._clock.now(), end, asks))
            if before is not lane.state.breaker.status:
                self._split(lane, end)

    def _split(self, lane: PushLane, end: Offset) -> None:
        """What waited becomes a window of its own, so that new events need not wait for it. Ordered lanes have one order."""
        state = lane.state
        if lane.gate.ordered or lane.policy is None or lane.policy.batch is not None:
            return
        if state.back is None:
            state.split(max(end, state.cursor))
        else:
            state.extend(max(end, state.cursor))
        lane.forget_read()
        # Without it only the count of what retention takes is not known.
        with tolerating(LogUnavailable, doing=f"counting what waits for {lane.name}"):
            self._engine.reading.place(lane)
        lane.state.back_left()
        self._engine.judge(lane)

    def _move(self, lane: PushLane, to: Breaker) -> None:
        before = lane.state.breaker
        if to is before:
            return
        lane.state.breaker = to
        self._engine.ledger.touch(lane)
        if to.status is before.status:
            return
        republish = lane.policy.breaker.republish if lane.policy and lane.policy.breaker else None
        lane.pace.republish(republish if to.status is Status.REPUBLISHING else None)
        if to.status is Status.OPEN and not lane.barred:
            self._probing.watch(lane)
        else:
            self._probing.forget(lane)
        self._engine.judge(lane)
