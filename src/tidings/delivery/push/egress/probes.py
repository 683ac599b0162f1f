"""Asks endpoints behind an open breaker whether they are well. Lanes with the same method and address share one probe.

What shows credentials of a subscription's own is not shared: a wrong password would keep the breakers of all others open.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from tidings.clock import SECOND, Clock
from tidings.delivery.push.egress.sender import Sender, SendTarget
from tidings.delivery.push.lane.push_lane import PushLane
from tidings.delivery.push.policy.decision import BAD_URL, Outcome
from tidings.delivery.push.policy.policy import BreakerPolicy, Policy
from tidings.delivery.push.request.credentials import Access
from tidings.errors import LogUnavailable
from tidings.log.position import LaneNumber
from tidings.registry.credentials import GatewayToken
from tidings.registry.delivery_options import ProbeMethod

logger = logging.getLogger("tidings.delivery")

AT_ONCE = 50
"""Probes on their way at the same time at the most."""

AGAIN = 1.0
"""Seconds until the next probe when what the last one said could not be followed."""

Told = Callable[[PushLane, Outcome], Awaitable[None]]


class ProbeTarget(NamedTuple):
    """What one probe asks. `group`: formats may keep subscriptions apart. `owner`: whose credentials it shows."""

    method: ProbeMethod
    url: str
    group: str = ""
    owner: str = ""


def asked_of(policy: Policy, breaker: BreakerPolicy) -> ProbeTarget:
    """What is asked for a lane with this policy."""
    return ProbeTarget(breaker.method, policy.url, policy.format.group, _owner_of(policy.access))


def _owner_of(access: Access | None) -> str:
    own = access is not None and (access.headers or not isinstance(access.credential, GatewayToken | None))
    return access.owner if access is not None and own else ""


class Probes:
    """Keeps the lanes whose breaker is open, and probes for each address when the first of its lanes is due."""

    def __init__(self, sender: Sender, clock: Clock, told: Told) -> None:
        self._sender = sender
        self._clock = clock
        self._told = told
        self._lanes: dict[ProbeTarget, dict[LaneNumber, PushLane]] = {}
        self._tasks: dict[ProbeTarget, asyncio.Task[None]] = {}
        self._news: dict[ProbeTarget, asyncio.Event] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)

    def watch(self, lane: PushLane) -> None:
        """The lane's breaker is open. Watching twice is the same as once; a changed address is asked from now on."""
        self.forget(lane)
        policy = lane.policy
        if policy is None or policy.breaker is None:
            return
        asked = asked_of(policy, policy.breaker)
        self._lanes.setdefault(asked, {})[lane.number] = lane
        if asked in self._tasks:
            self._news[asked].set()
        else:
            self._news[asked] = asyncio.Event()
            self._tasks[asked] = asyncio.create_task(self._probe_all(asked))

    @property
    def watched(self) -> int:
        """How many lanes wait for a probe."""
        return sum(map(len, self._lanes.values()))

    def forget(self, lane: PushLane) -> None:
        """The lane's breaker is not open any more, or its lane is gone."""
        for asked, lanes in list(self._lanes.items()):
            if lanes.pop(lane.number, None) is not None and not lanes:
                del self._lanes[asked]

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _probe_all(self, asked: ProbeTarget) -> None:
        """Ask again and again until no lane waits for this address."""
        try:
            while lanes := self._lanes.get(asked):
                if await self._waited(asked, lanes):
                    await self._probe(asked)
        finally:
            # In the same step as the last look: whoever comes later starts anew.
            del self._tasks[asked], self._news[asked]

    async def _waited(self, asked: ProbeTarget, lanes: Mapping[LaneNumber, PushLane]) -> bool:
        """Wait for the first lane that is due; False: others have come meanwhile, or all are gone."""
        due = min(lane.state.breaker.next_probe for lane in lanes.values())
        interval = max(lane.policy.breaker.interval for lane in lanes.values() if lane.policy and lane.policy.breaker)
        # Bounded by the interval: the machine's clock may have been set back. An hour at the most was asked for.
        wait = min(max(0.0, (due - self._clock.now()) / SECOND), max(interval, 3600.0))
        news = self._news[asked]
        news.clear()
        try:
            await asyncio.wait_for(news.wait(), wait)
        except TimeoutError:
            return asked in self._lanes
        return False

    async def _probe(self, asked: ProbeTarget) -> None:
        async with self._slots:
            outcome = await self._ask(asked)
        try:
            for lane in list(self._lanes.get(asked, {}).values()):
                await self._told(lane, outcome)
        except LogUnavailable as error:
            logger.warning("what a probe says cannot be followed now: %s", error)
            await asyncio.sleep(AGAIN)

    async def _ask(self, asked: ProbeTarget) -> Outcome:
        lanes = self._lanes.get(asked)
        policy = next(iter(lanes.values())).policy if lanes else None
        if policy is None:
            return Outcome(cause="internal-error")
        try:
            target = SendTarget(asked.url, *policy.patience, asked.method.value, access=policy.access)
        except ValueError:
            return Outcome(cause=BAD_URL)
        try:
            return await self._sender.send(target, dict(policy.headers), b"")
        except Exception:  # the top of a task: a probe that fails inside the hub leaves the breaker open and says so
            logger.exception("a probe of %s failed inside the hub", asked.url.partition("?")[0])
            return Outcome(cause="internal-error")
