"""Name look-ups with name servers that are slow, or gone."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tidings.clock import ManualClock
from tidings.delivery.push.egress.address_guard import AddressRules, Guard, Unresolved
from tidings.delivery.push.egress.endpoints import AGAIN, JUDGED_FOR, LAST_GOOD_FOR, CheckedAddress, EndpointOrigin, Endpoints
from tidings.delivery.push.egress.name_lookup import GOOD_FOR, LONGEST_REST, SystemLookup

HOOKS = EndpointOrigin("http", "hooks.example", 80)


class Servers:
    """Name servers: `slow` names are answered when `go` is set, `gone` ones never are."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.slow: set[str] = set()
        self.gone: set[str] = set()
        self.go = threading.Event()
        self.address = "93.184.216.34"

    def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked[host] += 1
        if host in self.slow:
            self.go.wait(30)
        if host in self.gone:
            raise OSError(host)
        return [self.address]


@asynccontextmanager
async def a_lookup(servers: Servers, clock: ManualClock, timeout: float = 5.0, threads: int = 4) -> AsyncIterator[SystemLookup]:
    lookup = SystemLookup(timeout, clock, threads, servers)
    try:
        yield lookup
    finally:
        servers.go.set()
        lookup.close()


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 120))


async def cause(lookup: SystemLookup, host: str) -> str:
    try:
        await lookup(host, 80)
    except TimeoutError:
        return "late"
    except OSError:
        return "failed"
    return "found"


async def comes_true(ask: Callable[[], Awaitable[str]], wanted: str) -> None:
    for _ in range(2000):
        if await ask() == wanted:
            return
        await asyncio.sleep(0.005)
    raise TimeoutError(wanted)


def test_a_name_is_looked_up_once_at_a_time_even_when_nobody_waits_any_more() -> None:
    async def scenario() -> None:
        servers, clock = Servers(), ManualClock()
        servers.slow = {"slow.example"}
        async with a_lookup(servers, clock, timeout=0.05) as lookup:
            assert await asyncio.gather(*(cause(lookup, "slow.example") for _ in range(20))) == ["late"] * 20
            clock.advance(10)
            assert await cause(lookup, "slow.example") == "late"
            assert servers.asked == {"slow.example": 1}

    run(scenario)


def test_an_answer_that_comes_late_serves_who_asks_next() -> None:
    async def scenario() -> None:
        servers, clock = Servers(), ManualClock()
        servers.slow = {"slow.example"}
        async with a_lookup(servers, clock, timeout=0.05) as lookup:
            assert await cause(lookup, "slow.example") == "late"
            servers.go.set()
            await comes_true(lambda: cause(lookup, "slow.example"), "found")
            assert servers.asked == {"slow.example": 1}
            clock.advance(GOOD_FOR)
            assert await cause(lookup, "slow.example") == "found"
            assert servers.asked == {"slow.example": 2}

    run(scenario)


def test_a_name_that_is_not_resolved_is_left_alone_longer_each_time() -> None:
    async def scenario() -> None:
        servers, clock = Servers(), ManualClock()
        servers.gone = {"gone.example"}
        async with a_lookup(servers, clock) as lookup:
            for _ in range(600):
                assert await cause(lookup, "gone.example") == "failed"
                clock.advance(1.0)
            # After 1, 2, 4, … seconds, then once a minute.
            assert servers.asked["gone.example"] <= 6 + 600 / LONGEST_REST
            servers.gone = set()
            clock.advance(LONGEST_REST)
            assert await cause(lookup, "gone.example") == "found"

    run(scenario)


def test_names_in_trouble_leave_half_of_the_threads_to_the_others() -> None:
    async def scenario() -> None:
        servers, clock = Servers(), ManualClock()
        servers.gone = {f"{n}.slow.example" for n in range(20)}
        async with a_lookup(servers, clock) as lookup:
            for host in servers.gone:
                assert await cause(lookup, host) == "failed"
            servers.slow, servers.gone = servers.gone, set()
            clock.advance(LONGEST_REST)
            waiting = [asyncio.create_task(cause(lookup, host)) for host in servers.slow]
            await asyncio.sleep(0)
            assert await asyncio.gather(*(cause(lookup, f"{n}.example") for n in range(20))) == ["found"] * 20
            assert not any(task.done() for task in waiting)
            servers.go.set()
            assert await asyncio.gather(*waiting) == ["found"] * 20

    run(scenario)


async def judged(ways: Endpoints) -> CheckedAddress:
    return await ways.to(HOOKS)


async def address(ways: Endpoints) -> str:
    return (await judged(ways)).ways[0].address


def test_the_last_good_answer_serves_while_the_name_is_looked_up_anew() -> None:
    async def scenario() -> None:
        servers, clock = Servers(), ManualClock()
        async with a_lookup(servers, clock, timeout=30) as lookup:
            ways = Endpoints(Guard(AddressRules(), lookup), clock, 2.0)
            assert (await judged(ways)).ways[0].address == "93.184.216.34"
            servers.slow, servers.address = {HOOKS.host}, "93.184.216.35"
            clock.advance(JUDGED_FOR)
            found = await asyncio.gather(*(judged(ways) for _ in range(10)))
            assert {one.ways[0].address for one in found} == {"93.184.216.34"}
            assert {one.until for one in found} == {clock.monotonic() + AGAIN}
            assert servers.asked[HOOKS.host] == 2
            servers.go.set()
            await comes_true(lambda: address(ways), "93.184.216.35")
            assert servers.asked[HOOKS.host] == 2
            await ways.close()

    run(scenario)


def test_the_last_good_answer_serves_while_name_servers_are_gone_but_not_for_ever() -> None:
    async def scenario() -> None:
        servers, clock = Servers(), ManualClock()
        async with a_lookup(servers, clock) as lookup:
            ways = Endpoints(Guard(AddressRules(), lookup), clock, 2.0)
            await judged(ways)
            servers.gone = {HOOKS.host}
            clock.advance(JUDGED_FOR)
            for _ in range(9):
                assert (await judged(ways)).ways[0].address == "93.184.216.34"
                clock.advance(LAST_GOOD_FOR / 10)
            clock.advance(LAST_GOOD_FOR / 10)
            with pytest.raises(Unresolved):
                await judged(ways)
            await ways.close()

    run(scenario)
