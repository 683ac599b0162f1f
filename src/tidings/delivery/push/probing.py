"""Asks endpoints behind an open breaker whether they are well. Lanes with the same method and address share one probe."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple

from tidings.clock import SECOND, Clock
from tidings.delivery.push.decide import Outcome
from tidings.delivery.push.pushing import PushLane
from tidings.delivery.push.sender import Sender, Target
from tidings.log.position import LaneNumber
from tidings.registry.wishes import ProbeMethod

logger = logging.getLogger("tidings.delivery")

AT_ONCE = 50
"""Probes on their way at the same time at the most."""

Told = Callable[[PushLane, Outcome], None]


class Asked(NamedTuple):
    """What one probe asks. Environments of Horizon share nothing (HOR-124)."""

    method: ProbeMethod
    url: str
    environment: str = ""


class Probing:
    """Keeps the lanes whose breaker is open, and probes for each address when the first of its lanes is due."""

    def __init__(self, sender: Sender, clock: Clock, told: Told) -> None:
        self._sender = sender
        self._clock = clock
        self._told = told
        self._lanes: dict[Asked, dict[LaneNumber, PushLane]] = {}
        self._tasks: dict[Asked, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)

    def watch(self, lane: PushLane) -> None:
        """The lane's breaker is open. Watching twice is the same as once; a changed address is asked from now on."""
        self.forget(lane)
        policy = lane.policy
        if policy is None or policy.breaker is None:
            return
        asked = Asked(policy.breaker.method, policy.url, policy.layout.environment if policy.layout is not None else "")
        self._lanes.setdefault(asked, {})[lane.key.lane] = lane
        if asked not in self._tasks:
            task = self._tasks[asked] = asyncio.create_task(self._probe(asked))
            task.add_done_callback(lambda _: self._tasks.pop(asked, None))

    def forget(self, lane: PushLane) -> None:
        """The lane's breaker is not open any more, or its lane is gone."""
        for asked, lanes in list(self._lanes.items()):
            if lanes.pop(lane.key.lane, None) is not None and not lanes:
                del self._lanes[asked]

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _probe(self, asked: Asked) -> None:
        """Ask again and again until no lane waits for this address."""
        while lanes := self._lanes.get(asked):
            due = min(lane.state.breaker.next_probe for lane in lanes.values())
            interval = max(lane.policy.breaker.interval for lane in lanes.values() if lane.policy and lane.policy.breaker)
            # Bounded by the interval: the machine's clock may have been set back. An hour at the most was asked for.
            await asyncio.sleep(min(max(0.0, (due - self._clock.now()) / SECOND), max(interval, 3600.0)))
            if asked not in self._lanes:
                return
            async with self._slots:
                outcome = await self._ask(asked)
            for lane in list(self._lanes.get(asked, {}).values()):
                self._told(lane, outcome)

    async def _ask(self, asked: Asked) -> Outcome:
        lanes = self._lanes.get(asked)
        policy = next(iter(lanes.values())).policy if lanes else None
        if policy is None:
            return Outcome(cause="internal-error")
        try:
            target = Target(asked.url, *policy.patience, asked.method.value, access=policy.access)
        except ValueError:
            return Outcome(cause="bad-url")
        try:
            return await self._sender.send(target, dict(policy.headers), b"")
        except Exception:  # the top of a task: a probe that fails inside the hub leaves the breaker open and says so
            logger.exception("a probe of %s failed inside the hub", asked.url.partition("?")[0])
            return Outcome(cause="internal-error")
