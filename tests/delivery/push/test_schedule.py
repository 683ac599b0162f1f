"""Whose turn it is, without any socket."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.delivery.worlds import quick_settings
from tidings.clock import Instant
from tidings.delivery.push.fair_schedule import LEAST_WINDOW, Schedule
from tidings.delivery.push.lane.push_lane import EndpointStanding, PushLane
from tidings.delivery.push.lane.state import LaneState
from tidings.delivery.push.policy.policy import policy_of
from tidings.delivery.push.store import LaneTally
from tidings.log.position import LaneNumber
from tidings.registry.model import Push

MakeLane: TypeAlias = Callable[..., PushLane]


@pytest.fixture
def make(tmp_path: Path) -> MakeLane:
    settings = quick_settings(tmp_path).push

    def a_lane(number: int, inflight: int = 100) -> PushLane:
        lane = PushLane(LaneNumber(number), f"lane{number}", LaneState(), LaneTally())
        lane.adopt(policy_of(Push(url="http://a.example/", inflight=inflight), settings))
        return lane

    return a_lane


def begun(schedule: Schedule, *lanes: PushLane) -> list[PushLane]:
    """Let these lanes begin as much as they may, each with endless work; who got the turns, in order."""
    turns = []
    for lane in lanes:
        schedule.offer(lane)
    while (lane := schedule.turn()) is not None:
        schedule.begin(lane)
        turns.append(lane)
        schedule.offer(lane)
    return turns


def test_lanes_take_turns(make: MakeLane) -> None:
    one, two = make(1), make(2)
    turns = begun(Schedule(1000), one, two)
    assert turns[:6] == [one, two, one, two, one, two]


def test_a_lane_never_has_more_on_its_way_than_its_limit(make: MakeLane) -> None:
    schedule, lane = Schedule(1000), make(1, inflight=3)
    assert len(begun(schedule, lane)) == 3
    schedule.end(lane, answered=True)
    assert len(begun(schedule, lane)) == 1


def test_the_window_grows_with_answers_up_to_the_limit(make: MakeLane) -> None:
    schedule, lane = Schedule(1000), make(1, inflight=50)
    begun(schedule, lane)
    for _ in range(500):
        schedule.end(lane, answered=True)
        begun(schedule, lane)
    assert lane.inflight == 50


def test_the_window_shrinks_when_no_answer_comes(make: MakeLane) -> None:
    schedule, lane = Schedule(1000), make(1)
    for _ in range(200):
        begun(schedule, lane)
        schedule.end(lane, answered=False)
    assert lane.inflight <= LEAST_WINDOW


def test_lanes_with_many_attempts_leave_room_for_others(make: MakeLane) -> None:
    schedule = Schedule(100)
    greedy = [make(n) for n in range(5)]
    for lane in greedy:
        lane.window = 100
    begun(schedule, *greedy)
    assert schedule.busy < 100
    late = make(9)
    assert begun(schedule, late)[0] is late


def test_lanes_that_get_no_answers_share_half_of_the_slots(make: MakeLane) -> None:
    schedule = Schedule(20)
    silent = [make(n) for n in range(100)]
    for lane in silent:
        schedule.begin(lane)
        schedule.end(lane, answered=False)
    begun(schedule, *silent)
    assert schedule.busy == 10
    assert len(begun(schedule, make(101))) > 0


def test_lanes_that_answer_late_share_half_of_the_slots_too(make: MakeLane) -> None:
    schedule = Schedule(20)
    late = [make(n) for n in range(100)]
    for lane in late:
        schedule.begin(lane)
        schedule.end(lane, answered=True, seconds=15.0)
    begun(schedule, *late)
    assert schedule.busy == 10
    assert {lane.window for lane in late} == {17}, "late is not too much"


def test_a_reserve_stays_free_for_lanes_that_answer_quickly(make: MakeLane) -> None:
    schedule, quick = Schedule(20), make(100)
    schedule.begin(quick)
    schedule.end(quick, answered=True, seconds=0.1)
    begun(schedule, *(make(n) for n in range(100)))
    assert schedule.busy == 15
    assert begun(schedule, quick)[0] is quick


def test_a_lane_of_which_more_is_known_by_now_waits_where_it_belongs(make: MakeLane) -> None:
    schedule, lane = Schedule(4), make(1)
    schedule.begin(lane)
    schedule.offer(lane)
    schedule.end(lane, answered=False)
    others = [make(n) for n in range(2, 5)]
    for other in others:
        schedule.begin(other)
        schedule.end(other, answered=False)
        schedule.begin(other)
    assert schedule.turn() is None, "slow lanes have their share"


def test_a_lane_that_answers_again_leaves_the_slow_side(make: MakeLane) -> None:
    schedule, lane = Schedule(4), make(1)
    begun(schedule, lane)
    schedule.end(lane, answered=False)
    while lane.inflight:
        schedule.end(lane, answered=True)
    others = [make(n) for n in range(2, 9)]
    for other in others:
        schedule.begin(other)
        schedule.end(other, answered=False)
    assert len(begun(schedule, *others)) == 2, "the count of slow attempts is still right"


def test_nobody_has_a_turn_while_the_engine_is_held(make: MakeLane) -> None:
    schedule = Schedule(10)
    schedule.held = True
    assert begun(schedule, make(1)) == []


def test_a_suspended_lane_loses_its_turn(make: MakeLane) -> None:
    schedule, lane = Schedule(10), make(1)
    schedule.offer(lane)
    lane.suspend(True, Instant(0))
    assert schedule.turn() is None


def test_the_window_halves_when_the_endpoint_says_that_it_is_too_much(make: MakeLane) -> None:
    schedule, lane = Schedule(1000), make(1)
    for _ in range(48):
        schedule.begin(lane)
        schedule.end(lane, answered=True)
    assert lane.window == 64
    schedule.begin(lane)
    schedule.end(lane, answered=True, pressed=True)
    assert (lane.window, lane.standing) == (32, EndpointStanding.QUICK)


def test_slow_lanes_are_passed_over_when_they_had_their_share_of_a_pass(make: MakeLane) -> None:
    schedule, slow, quick = Schedule(10), make(1), make(2)
    for lane, answered in ((slow, False), (quick, True)):
        schedule.begin(lane)
        schedule.end(lane, answered=answered)
        schedule.offer(lane)
    assert schedule.turn(slow=False) is quick
    assert schedule.turn(slow=False) is None
    assert schedule.turn() is slow
