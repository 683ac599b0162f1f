"""The machine's clock is set back while events wait: everything still goes out, when it would have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.delivery.push.lanes import a_parcel, a_state
from tests.delivery.worlds import World, a_pushed_lane, final, ids, in_world
from tests.polling import until_async
from tests.receivers import Answer, Arrival
from tidings.clock import SECOND, Instant, SystemClock
from tidings.delivery.push import process
from tidings.delivery.push.lane.breaker import Breaker, Status, bounded
from tidings.delivery.push.lane.choice import Allowed, Attempt, Wait, choose
from tidings.delivery.push.policy.policy import BatchPolicy
from tidings.log.commands import Activate, CloseBreaker, Suspend
from tidings.registry.delivery_options import Ordering

DAY = 86400


class SteppedClock(SystemClock):
    """The machine's clock, which somebody sets."""

    shift = 0

    def now(self) -> Instant:
        return Instant(super().now() + self.shift * SECOND)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SteppedClock:
    stepped = SteppedClock()
    monkeypatch.setattr(process, "SystemClock", lambda: stepped)
    return stepped


def held_up(until_set: SteppedClock) -> Callable[[Arrival], Answer]:
    """Takes its time for the first request, in which the clock is set."""
    return lambda arrival: Answer(delay=0.0 if until_set.shift else 0.5)


@pytest.mark.parametrize("wishes", [{"ordering": Ordering.STRICT}, {"ordering": Ordering.KEY}, {"inflight": 1}])
def test_those_in_line_go_on(tmp_path: Path, clock: SteppedClock, wishes: dict[str, Any]) -> None:
    async def scenario(world: World) -> None:
        async with a_pushed_lane(world, held_up(clock), **wishes) as (lane, receiver):
            await world.publish(5, lane)
            await until_async(lambda: len(receiver.arrivals) == 1)
            clock.shift = -DAY
            await final(world, lane, 5)
        assert ids(receiver.arrivals) == ["1", "2", "3", "4", "5"]

    in_world(tmp_path, scenario)


def test_a_batch_that_forms_goes_out() -> None:
    state, policy = a_state(), BatchPolicy(size=3, time=2.0)
    state.arrange(Ordering.STRICT, batched=True)
    state.live.more = False
    item = state.take(state.live, a_parcel(1), Instant(DAY * SECOND), 100.0)
    assert choose(state, Allowed(Instant(DAY * SECOND + SECOND // 2), 100.5), policy) == Wait(102.0)
    assert choose(state, Allowed(Instant(0), 100.5), policy) == Wait(102.0)
    assert choose(state, Allowed(Instant(0), 102.0), policy) == Attempt([item])


def test_what_waits_for_its_sending_delay_goes_out(tmp_path: Path, clock: SteppedClock) -> None:
    async def scenario(world: World) -> None:
        async with a_pushed_lane(world, sending_delay=0.3) as (lane, receiver):
            clock.shift = -DAY
            began = world.clock.monotonic()
            await world.publish(3, lane)
            await final(world, lane, 3)
        assert receiver.arrivals[0].at - began >= 0.25

    in_world(tmp_path, scenario)


def test_what_waits_behind_a_breaker_goes_out(tmp_path: Path, clock: SteppedClock) -> None:
    async def scenario(world: World) -> None:
        wishes = {"breaker": True, "tries": 1, "probe_interval": 600.0}
        async with a_pushed_lane(world, lambda _: Answer(200 if clock.shift else 503), **wishes) as (lane, _):
            await world.publish(1, lane)
            await until_async(lambda: world.reader.lane(lane).state == "open")
            clock.shift = -DAY
            assert await world.command(lane, CloseBreaker()) == ""
            await final(world, lane, 1)
        assert world.reader.lane(lane).delivered == 1

    in_world(tmp_path, scenario)


def test_what_was_to_be_sent_again_while_suspended_goes_out(tmp_path: Path, clock: SteppedClock) -> None:
    async def scenario(world: World) -> None:
        wishes = {"retry_first": 0.3, "tries": 50}
        async with a_pushed_lane(world, lambda _: Answer(200 if clock.shift else 503), **wishes) as (lane, receiver):
            await world.publish(2, lane)
            await until_async(lambda: len(receiver.arrivals) >= 2)
            assert await world.command(lane, Suspend()) == ""
            due = world.reader.lane(lane).next_due or 0
            await until_async(lambda: clock.now() > due + SECOND // 4)
            clock.shift = -DAY
            assert await world.command(lane, Activate()) == ""
            await final(world, lane, 2)

    in_world(tmp_path, scenario)


def test_a_breaker_that_waits_before_it_sends_waits_an_hour_at_the_most() -> None:
    postponed = Breaker(Status.REPUBLISHING, postponed_until=Instant(2 * DAY * SECOND))
    once = bounded(postponed, Instant(DAY * SECOND))
    assert once.postponed_until == (DAY + 3600) * SECOND
    assert bounded(once, Instant((DAY + 60) * SECOND)) is once
