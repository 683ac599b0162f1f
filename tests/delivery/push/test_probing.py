"""Probes of open breakers: whoever waits for one gets it, whatever happens around it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import cast

from tests.builders import a_position
from tests.polling import until_async
from tidings.clock import SECOND, Instant, SystemClock
from tidings.delivery.push.egress.probes import Probes
from tidings.delivery.push.egress.sender import Sender, SendTarget
from tidings.delivery.push.lane.breaker import CLOSED, opened
from tidings.delivery.push.lane.push_lane import PushLane
from tidings.delivery.push.lane.state import LaneState
from tidings.delivery.push.policy.decision import Outcome
from tidings.delivery.push.policy.policy import BreakerPolicy, Policy
from tidings.delivery.push.policy.retries import RetryPolicy
from tidings.delivery.push.request.credentials import Access
from tidings.delivery.push.request.hub_formats import STRUCTURED
from tidings.delivery.push.store import LaneTally
from tidings.errors import LogUnavailable
from tidings.log.position import LaneNumber
from tidings.registry.credentials import Basic, GatewayToken

CLOCK = SystemClock()
ME = Basic(user="me", password="sealed")
HUB = GatewayToken(request_path="/in", publisher="p", subscriber="s")


class Endpoint:
    """Stands for the way out: notes who is asked, and on whose behalf."""

    def __init__(self) -> None:
        self.asked: list[SendTarget] = []

    async def send(self, target: SendTarget, headers: Mapping[str, str], body: bytes) -> Outcome:
        self.asked.append(target)
        await asyncio.sleep(0)
        return Outcome(503)


def a_lane(number: int = 1, interval: float = 0.01, access: Access | None = None) -> PushLane:
    lane = PushLane(LaneNumber(number), f"s{number}", LaneState(), LaneTally())
    breaker = BreakerPolicy(interval=interval)
    lane.policy = Policy(
        url="http://127.0.0.1:9/in",
        format=STRUCTURED,
        headers={},
        inflight=1,
        open_items=1,
        attempt_timeout=1.0,
        retry=RetryPolicy(tries=1, first=1.0, longest=1.0),
        breaker=breaker,
        access=access,
    )
    lane.state.breaker = opened(CLOSED, a_position(1), CLOCK.now(), interval)
    return lane


def an_access(number: int, credential: Basic | GatewayToken) -> Access:
    return Access(owner=f"subscription/s{number}", credential=credential)


def test_a_log_that_cannot_be_read_ends_no_probing() -> None:
    async def scenario() -> None:
        endpoint, told = Endpoint(), 0

        async def tell(lane: PushLane, outcome: Outcome) -> None:
            nonlocal told
            told += 1
            raise LogUnavailable("the disk is away")

        probing = Probes(cast(Sender, endpoint), CLOCK, tell)
        probing.watch(a_lane())
        await until_async(lambda: told >= 2)
        await probing.close()

    asyncio.run(scenario())


def test_a_breaker_that_opens_just_as_the_last_one_closed_is_probed() -> None:
    async def scenario() -> None:
        endpoint = Endpoint()
        first, second = a_lane(1), a_lane(2)

        async def tell(lane: PushLane, outcome: Outcome) -> None:
            probing.forget(lane)
            if lane is first:
                # After this step of the probing, before the loop goes round.
                asyncio.get_running_loop().call_soon(probing.watch, second)

        probing = Probes(cast(Sender, endpoint), CLOCK, tell)
        probing.watch(first)
        await until_async(lambda: len(endpoint.asked) == 2)
        await probing.close()

    asyncio.run(scenario())


def test_one_that_is_due_earlier_does_not_wait_for_those_before_it() -> None:
    async def scenario() -> None:
        endpoint, told = Endpoint(), []

        async def tell(lane: PushLane, outcome: Outcome) -> None:
            told.append(lane.name)
            probing.forget(lane)

        probing = Probes(cast(Sender, endpoint), CLOCK, tell)
        probing.watch(a_lane(1, interval=600.0))
        await asyncio.sleep(0)
        probing.watch(a_lane(2, interval=0.01))
        await until_async(lambda: "s2" in told)
        await probing.close()

    asyncio.run(scenario())


def probes_of(*accesses: Access | None) -> int:
    """How many probes are made for open lanes of one address with these credentials."""

    async def scenario() -> int:
        endpoint = Endpoint()

        async def tell(lane: PushLane, outcome: Outcome) -> None:
            probing.forget(lane)

        probing = Probes(cast(Sender, endpoint), CLOCK, tell)
        at = Instant(CLOCK.now() + SECOND // 10)
        for number, access in enumerate(accesses, start=1):
            lane = a_lane(number, access=access)
            lane.state.breaker = opened(CLOSED, a_position(1), at, 0.0)
            probing.watch(lane)
        await until_async(lambda: not probing.watched)
        await probing.close()
        return len(endpoint.asked)

    return asyncio.run(scenario())


def test_a_probe_is_shared_unless_it_shows_credentials_of_one_subscription() -> None:
    """Else a wrong password in one subscription would keep the breakers of all others open."""
    assert probes_of(None, None) == 1
    assert probes_of(an_access(1, HUB), an_access(2, HUB)) == 1
    assert probes_of(an_access(1, ME), an_access(2, ME), None) == 3
