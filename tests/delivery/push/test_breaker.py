"""The circuit breaker: its moves as tables, a machine that does everything in any order, and real probes."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.builders import a_position
from tests.delivery.worlds import World, final, ids, in_world, statuses_of
from tests.polling import until_async
from tests.receivers import Answer, Arrival, Receiver
from tidings.clock import SECOND, Instant
from tidings.delivery.push.lane.breaker import CLOSED, Breaker, Status, caught_up, closed, loop_wait, opened, probed
from tidings.delivery.push.policy.decision import Outcome
from tidings.delivery.push.policy.policy import BreakerPolicy
from tidings.delivery.push.records.statuses import StatusQuestion
from tidings.log.commands import CloseBreaker

NOW = Instant(1_700_000_000 * SECOND)
MINUTE = 60 * SECOND


def later(minutes: float) -> Instant:
    return Instant(NOW + round(minutes * MINUTE))


def an_open_one(at: Instant = NOW) -> Breaker:
    return opened(CLOSED, a_position(7), at, 30.0)


@pytest.mark.parametrize("status", [200, 201, 202, 204])
def test_a_probe_that_succeeds_starts_the_resending(status: int) -> None:
    breaker = probed(an_open_one(), Outcome(status), later(1), 99)
    assert (breaker.status, breaker.until, breaker.probe, breaker.why) == (Status.REPUBLISHING, 99, status, "")


@pytest.mark.parametrize(
    ("outcome", "probe", "why", "seconds"),
    [
        (Outcome(404), 404, "status-404", 30),
        (Outcome(302), 302, "status-302", 30),
        (Outcome(503, retry_after="120"), 503, "status-503", 120),
        (Outcome(503, retry_after="5"), 503, "status-503", 30),
        (Outcome(503, retry_after="999999"), 503, "status-503", 3600),
        (Outcome(cause="timeout"), 0, "timeout", 30),
        (Outcome(cause="ssrf-blocked"), 0, "ssrf-blocked", 30),
    ],
)
def test_a_probe_that_fails_leaves_it_open_and_says_why(outcome: Outcome, probe: int, why: str, seconds: int) -> None:
    breaker = probed(an_open_one(), outcome, later(1), 99)
    assert (breaker.status, breaker.probe, breaker.why) == (Status.OPEN, probe, why)
    assert breaker.next_probe - later(1) == seconds * SECOND


def test_a_subscription_may_say_which_answers_mean_well() -> None:
    assert probed(an_open_one(), Outcome(418), later(1), 99, BreakerPolicy(well_at=(418,))).status is Status.REPUBLISHING
    assert probed(an_open_one(), Outcome(200), later(1), 99, BreakerPolicy(well_at=(418,))).status is Status.OPEN


def test_it_closes_when_everything_that_waited_is_final() -> None:
    breaker = probed(an_open_one(), Outcome(200), later(1), 99)
    assert caught_up(breaker, 98, later(2)) is breaker
    assert caught_up(breaker, 99, later(2)).status is Status.CLOSED


def test_one_that_keeps_opening_waits_longer_each_time() -> None:
    breaker, waits = CLOSED, []
    for loop in range(15):
        breaker = opened(breaker, a_position(1), later(loop), 30.0)
        breaker = probed(breaker, Outcome(200), later(loop + 0.5), 9)
        waits.append((breaker.loops, max(0, breaker.postponed_until - later(loop + 0.5)) / SECOND))
    assert waits[:5] == [(1, 0), (2, 2), (3, 4), (4, 8), (5, 16)]
    assert waits[11:] == [(12, 2048), (13, 3600), (14, 3600), (15, 3600)]
    quiet = probed(opened(closed(breaker, later(20)), a_position(1), later(200), 30.0), Outcome(200), later(201), 9)
    assert (quiet.loops, quiet.postponed_until) == (0, 0)


def test_what_counts_as_again_and_the_longest_wait_can_be_set() -> None:
    short = BreakerPolicy(loop_window=90.0, loop_max=3.0)
    breaker = CLOSED
    for loop in range(4):
        breaker = probed(opened(breaker, a_position(1), later(loop), 30.0), Outcome(200), later(loop + 0.4), 9, short)
    assert (breaker.loops, breaker.postponed_until - later(3.4)) == (4, 3 * SECOND)
    breaker = probed(opened(closed(breaker, later(4)), a_position(1), later(5), 30.0), Outcome(200), later(5.4), 9, short)
    assert breaker.loops == 0


def test_the_longest_wait_is_an_hour() -> None:
    assert [loop_wait(n) for n in (0, 1, 2, 12, 13, 10_000)] == [0, 0, 2, 2048, 3600, 3600]


class Moves(RuleBasedStateMachine):
    """Any moves in any order, with a clock that jumps: sending only when closed or resending, and never stuck."""

    def __init__(self) -> None:
        super().__init__()
        self.breaker = CLOSED
        self.now = NOW

    @rule(seconds=st.integers(-7200, 7200))
    def jump(self, seconds: int) -> None:
        self.now = Instant(self.now + seconds * SECOND)

    @rule()
    def fail(self) -> None:
        self.breaker = opened(self.breaker, a_position(1), self.now, 30.0)
        assert self.breaker.status is Status.OPEN

    @rule(status=st.sampled_from([200, 204, 404, 503, None]))
    def probe(self, status: int | None) -> None:
        before = self.breaker
        self.breaker = probed(before, Outcome(status, "" if status else "timeout"), self.now, 50)
        moved = before.status is Status.OPEN and status in (200, 204)
        assert self.breaker.status is (Status.REPUBLISHING if moved else before.status)

    @rule(low_water=st.integers(0, 100))
    def settle(self, low_water: int) -> None:
        self.breaker = caught_up(self.breaker, low_water, self.now)

    @rule()
    def close(self) -> None:
        self.breaker = closed(self.breaker, self.now)
        assert self.breaker.sends

    @invariant()
    def waits_are_bounded(self) -> None:
        wait = 3600 * SECOND
        assert self.breaker.postponed_until <= self.breaker.modified + wait
        assert self.breaker.sends == (self.breaker.status is not Status.OPEN)
        assert bool(self.breaker.next_probe) == (self.breaker.status is Status.OPEN)


TestMoves = Moves.TestCase
TestMoves.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


class Endpoint:
    """Refuses POSTs while it is down, and probes while it is not well."""

    def __init__(self) -> None:
        self.up = False
        self.well = False

    def __call__(self, arrival: Arrival) -> Answer:
        if arrival.method == "POST":
            return Answer(200 if self.up else 503)
        return Answer(200 if self.well else 404)


WISHES = {"preset": "horizon", "tries": 2, "retry_first": 0.01, "probe_interval": 0.1}


def posts(receiver: Receiver) -> list[Arrival]:
    return [arrival for arrival in receiver.arrivals if arrival.method == "POST"]


def test_an_open_breaker_parks_the_lane_until_a_probe_succeeds(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        endpoint = Endpoint()
        with Receiver(endpoint) as receiver:
            lane = world.subscribe("billing", receiver.url, **WISHES)
            async with world.delivering():
                await world.publish(3, lane)
                await until_async(lambda: world.reader.lane(lane).state == "open")
                await until_async(lambda: len(receiver.arrivals) > len(posts(receiver)) + 1)
                tried = len(posts(receiver))
                await world.publish(20, lane, first=4)
                await until_async(lambda: (b := world.reader.lane(lane).detail.breaker) is not None and b.why == "status-404")
            async with world.delivering():  # it is still open after a restart
                await until_async(lambda: len(receiver.arrivals) > len(posts(receiver)) + 3)
                assert len(posts(receiver)) == tried
                endpoint.up = endpoint.well = True
                await final(world, lane, 23)
                await until_async(lambda: world.reader.lane(lane).state == "active")
        view = world.reader.lane(lane)
        assert (view.delivered, view.dead_letters) == (23, 0)
        assert {arrival.method for arrival in receiver.arrivals} == {"POST", "HEAD"}
        assert "waiting" in {record.state for record in world.reader.deliveries(lane, None, 100)}

    in_world(tmp_path, scenario)


def test_what_waited_is_sent_oldest_first_within_its_rate(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        endpoint = Endpoint()
        with Receiver(endpoint) as receiver:
            lane = world.subscribe("billing", receiver.url, **WISHES, inflight=1, republish_rate=10.0)
            async with world.delivering():
                await world.publish(1, lane)
                await until_async(lambda: world.reader.lane(lane).state == "open")
                await world.publish(24, lane, first=2)
                tried = len(posts(receiver))
                endpoint.up = endpoint.well = True
                await final(world, lane, 25)
        sent = posts(receiver)[tried:]
        assert ids(sent) == [str(n) for n in range(1, 26)]
        times = [arrival.at for arrival in sent]
        assert all(sum(1 for other in times if begin <= other < begin + 0.8) <= 10 for begin in times)

    in_world(tmp_path, scenario)


def test_lanes_with_one_address_share_a_probe_and_a_get_is_a_get(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        endpoint = Endpoint()
        with Receiver(endpoint) as receiver:
            wishes = {**WISHES, "probe_method": "GET", "probe_interval": 0.5}
            lanes = [world.subscribe(f"s{n}", receiver.url, **wishes) for n in range(5)]
            async with world.delivering():
                await world.publish(1, *lanes)
                await until_async(lambda: all(world.reader.lane(lane).state == "open" for lane in lanes))
                begin = world.clock.monotonic()
                await asyncio.sleep(1.6)
                probes = [a for a in receiver.arrivals if a.method == "GET" and a.at >= begin]
                endpoint.up = endpoint.well = True
                await until_async(lambda: all(world.reader.lane(lane).state == "active" for lane in lanes))
        assert 1 <= len(probes) <= 4

    in_world(tmp_path, scenario)


def test_the_breaker_is_closed_by_command_and_by_opting_out(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        endpoint = Endpoint()
        with Receiver(endpoint) as receiver:
            lane = world.subscribe("billing", receiver.url, **WISHES)
            async with world.delivering():
                await world.publish(2, lane)
                await until_async(lambda: world.reader.lane(lane).state == "open")
                endpoint.up = True
                assert await world.command(lane, CloseBreaker()) == ""
                await final(world, lane, 2)
                endpoint.up = False
                await world.publish(2, lane, first=3)
                await until_async(lambda: world.reader.lane(lane).state == "open")
                world.change("billing", receiver.url, **WISHES, breaker=False)
                await until_async(lambda: world.reader.lane(lane).dead_letters == 2)
        assert {json.loads(letter.head)["id"] for letter in world.reader.dead_letters(lane, 0, 10)} == {"3", "4"}

    in_world(tmp_path, scenario)


def test_a_probe_that_our_own_guard_forbids_says_so(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        lane = world.subscribe("billing", "http://127.0.0.1:9/in", **WISHES)
        async with world.delivering():
            await world.publish(1, lane)
            await until_async(lambda: (b := world.reader.lane(lane).detail.breaker) is not None and b.why == "ssrf-blocked")
            assert world.reader.lane(lane).state == "open"

    in_world(tmp_path, scenario, allow_loopback="no")


def test_new_events_do_not_wait_for_those_that_waited(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        endpoint = Endpoint()
        with Receiver(endpoint) as receiver:
            lane = world.subscribe("billing", receiver.url, **WISHES, republish_rate=5.0)
            async with world.delivering():
                await world.publish(1, lane)
                await until_async(lambda: world.reader.lane(lane).state == "open")
                await world.publish(29, lane, first=2)
                endpoint.up = endpoint.well = True
                await until_async(lambda: world.reader.lane(lane).state == "republishing")
                page = await statuses_of(world).page(lane, StatusQuestion())
                assert "redelivering" in {one.state for one in page.found}
                await world.publish(10, lane, first=31)
                await until_async(lambda: {str(n) for n in range(31, 41)} <= set(ids(posts(receiver))))
                assert world.reader.lane(lane).state == "republishing"
                assert len(ids(posts(receiver))) < 35
            async with world.delivering():  # both windows are still there after a restart
                world.change("billing", receiver.url, **WISHES)
                await final(world, lane, 40)
                await until_async(lambda: world.reader.lane(lane).state == "active")
                await world.publish(1, lane, first=41)
                await final(world, lane, 41)
        view = world.reader.lane(lane)
        assert (view.delivered, view.expired, view.dead_letters) == (41, 0, 0)

    in_world(tmp_path, scenario)


def test_what_retention_removed_while_it_waited_is_counted(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        endpoint = Endpoint()
        with Receiver(endpoint) as receiver:
            lane = world.subscribe("billing", receiver.url, **(WISHES | {"probe_interval": 1.0}))
            async with world.delivering():
                await world.publish(1, lane)
                await until_async(lambda: world.reader.lane(lane).state == "open")
                await world.publish(9, lane, first=2)
                await world.retire()
                endpoint.up = endpoint.well = True
                await until_async(lambda: world.reader.lane(lane).state == "active")
                await world.publish(2, lane, first=11)
                await until_async(lambda: world.reader.lane(lane).delivered == 2)
        assert world.reader.lane(lane).expired == 10

    in_world(tmp_path, scenario)


def test_what_came_while_it_was_open_again_waited_too(tmp_path: Path) -> None:
    """HOR-127: back to OPEN while resending; the second round sends what came meanwhile within the rate, and nothing twice."""

    async def scenario(world: World) -> None:
        endpoint = Endpoint()
        with Receiver(endpoint) as receiver:
            lane = world.subscribe("billing", receiver.url, **(WISHES | {"tries": 1}), republish_rate=5.0)
            async with world.delivering():
                await world.publish(1, lane)
                await until_async(lambda: world.reader.lane(lane).state == "open")
                await world.publish(19, lane, first=2)
                endpoint.up = endpoint.well = True
                await until_async(lambda: world.reader.lane(lane).state == "republishing")
                await world.publish(3, lane, first=21)
                await until_async(lambda: {"21", "22", "23"} <= set(ids(posts(receiver))))
                endpoint.up = endpoint.well = False
                await until_async(lambda: world.reader.lane(lane).state == "open")
                await world.publish(7, lane, first=24)
                tried = len(posts(receiver))
                endpoint.up = endpoint.well = True
            async with world.delivering():  # the gap is kept over a restart
                await final(world, lane, 30)
                await until_async(lambda: world.reader.lane(lane).state == "active")
        sent = posts(receiver)[tried:]
        assert all(sum(1 for other in sent if begin.at <= other.at < begin.at + 0.8) <= 5 for begin in sent)
        assert {str(n) for n in range(24, 31)} <= set(ids(sent))
        assert not {"21", "22", "23"} & set(ids(sent)), "they had arrived"
        view = world.reader.lane(lane)
        assert (view.delivered, view.expired, view.dead_letters) == (30, 0, 0)

    in_world(tmp_path, scenario)
