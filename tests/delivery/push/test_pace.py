"""Rates under a clock that is moved by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.delivery.push.policy.pace import AnswerCounts, Pace, PaceMode, Speed, next_speed
from tidings.delivery.push.policy.policy import PacePolicy

MOST = 400.0


def sent_times(pace: Pace, until: float, steps: list[float]) -> list[float]:
    """When attempts begin, if one is begun whenever it may, looking at these steps (over and over) or when told to."""
    now, n, sent = 0.0, 0, []
    while now < until:
        wait = pace.wait(now)
        if wait <= 0:
            pace.sent(now)
            sent.append(now)
            now += steps[n % len(steps)]
            n += 1
        else:
            now += wait
    return sent


def most_within(sent: list[float], seconds: float) -> int:
    return max((sum(1 for other in sent if begin <= other < begin + seconds - 1e-9) for begin in sent), default=0)


@given(st.integers(1, 30), st.lists(st.sampled_from([0.0, 0.001, 0.03, 0.4, 1.7]), min_size=1, max_size=20))
def test_no_second_has_more_attempts_than_the_rate_however_they_come(rate: int, steps: list[float]) -> None:
    steps = [*steps, 0.01]
    assert most_within(sent_times(Pace(PacePolicy(second=float(rate))), 6.0, steps), 1.0) <= rate


def test_attempts_are_spread_over_the_second() -> None:
    sent = sent_times(Pace(PacePolicy(second=50.0)), 5.0, [0.0])
    assert most_within(sent, 0.1) <= 5 + 3
    assert len(sent) == 250


def test_a_look_at_the_clock_that_comes_late_costs_nothing_of_the_rate() -> None:
    pace, now, sent = Pace(PacePolicy(second=50.0)), 0.0, 0
    while now < 10.0:
        while pace.wait(now) <= 0:
            pace.sent(now)
            sent += 1
        now += pace.wait(now) + 0.004
    assert sent >= 490


def test_nothing_is_saved_up_while_there_is_nothing_to_send() -> None:
    pace = Pace(PacePolicy(second=50.0))
    sent_times(pace, 1.0, [0.2])
    late = [100.0 + n / 1000 for n in range(100) if not pace.wait(100.0 + n / 1000) and not pace.sent(100.0 + n / 1000)]
    assert len(late) <= 5 + 3


@pytest.mark.parametrize(("rate", "expected"), [(0.5, 5), (0.1, 1), (2.9, 20)])
def test_rates_below_one_and_between_whole_numbers(rate: float, expected: int) -> None:
    assert len(sent_times(Pace(PacePolicy(second=rate)), 9.99, [0.001])) == expected


def test_a_rate_per_minute_holds_in_any_minute() -> None:
    sent = sent_times(Pace(PacePolicy(minute=6)), 180.0, [0.5])
    assert (most_within(sent, 60.0), len(sent)) == (6, 18)


def a_full_minute() -> Pace:
    pace = Pace(PacePolicy(minute=6))
    sent_times(pace, 50.5, [0.5])
    return pace


@pytest.mark.parametrize(("now", "expected"), [(51.0, 9.0), (60.1, 0.0), (200.0, 0.0), (3.0, 60.0)])
def test_a_rate_per_minute_survives_a_restart(now: float, expected: float) -> None:
    # The last row is a machine that was started again: its time began anew, and nobody knows how long it was off.
    pace = Pace()
    pace.remember(a_full_minute().last_minute)
    pace.adopt(PacePolicy(minute=6))
    assert pace.wait(now) == pytest.approx(expected)


def test_what_is_kept_of_a_minute_is_little_however_high_the_rate() -> None:
    pace = Pace(PacePolicy(minute=60_000))
    sent_times(pace, 59.0, [0.0005])
    assert len(pace.last_minute) <= 201


def test_a_lower_rate_holds_at_once_and_a_change_is_no_way_around_it() -> None:
    pace = Pace(PacePolicy(second=10.0))
    for _ in range(10):
        pace.sent(1.0)
    pace.adopt(PacePolicy(second=3.0))
    assert pace.wait(1.5) == pytest.approx(0.5)
    pace.adopt(PacePolicy(second=3.0, adaptive=True))
    assert pace.wait(1.5) > 0


ROWS = [
    # from, successes, failures, asked → to
    ((PaceMode.NORMAL, 400), (10, 0, 0), (PaceMode.NORMAL, 400)),
    ((PaceMode.NORMAL, 400), (0, 0, 0), (PaceMode.NORMAL, 400)),
    ((PaceMode.NORMAL, 100), (10, 0, 0), (PaceMode.NORMAL, 160)),
    ((PaceMode.NORMAL, 100), (0, 0, 0), (PaceMode.NORMAL, 160)),
    ((PaceMode.NORMAL, 100), (99, 1, 0), (PaceMode.NORMAL, 160)),
    ((PaceMode.NORMAL, 100), (97, 3, 0), (PaceMode.NORMAL, 100)),
    ((PaceMode.NORMAL, 100), (90, 10, 0), (PaceMode.NORMAL, 80)),
    ((PaceMode.NORMAL, 1.1), (9, 1, 0), (PaceMode.NORMAL, 1)),
    ((PaceMode.NORMAL, 100), (5, 5, 0), (PaceMode.NORMAL, 80)),
    ((PaceMode.NORMAL, 100), (4, 5, 0), (PaceMode.SLOW, 1)),
    ((PaceMode.SLOW, 1), (0, 1, 0), (PaceMode.HEARTBEAT, 1 / 60)),
    ((PaceMode.SLOW, 1), (1, 0, 0), (PaceMode.NORMAL, 1)),
    ((PaceMode.SLOW, 1), (0, 0, 0), (PaceMode.SLOW, 1)),
    ((PaceMode.SLOW, 1), (1, 1, 0), (PaceMode.SLOW, 1)),
    ((PaceMode.HEARTBEAT, 1 / 60), (0, 1, 0), (PaceMode.HEARTBEAT, 1 / 60)),
    ((PaceMode.HEARTBEAT, 1 / 60), (1, 0, 0), (PaceMode.SLOW, 1)),
    ((PaceMode.HEARTBEAT, 1 / 60), (0, 0, 0), (PaceMode.HEARTBEAT, 1 / 60)),
    ((PaceMode.NORMAL, 100), (0, 5, 1), (PaceMode.NORMAL, 100)),
    ((PaceMode.SLOW, 1), (0, 0, 1), (PaceMode.SLOW, 1)),
    ((PaceMode.NORMAL, 900), (1, 0, 0), (PaceMode.NORMAL, 400)),
]


@pytest.mark.parametrize(("before", "counts", "expected"), ROWS)
def test_the_adaptive_limiter(
    before: tuple[PaceMode, float], counts: tuple[int, int, int], expected: tuple[PaceMode, float]
) -> None:
    speed = next_speed(Speed(*before), AnswerCounts(*counts), MOST)
    assert (speed.mode, speed.rate) == (expected[0], pytest.approx(expected[1]))


def test_a_dead_endpoint_is_slowed_down_to_a_heartbeat_and_comes_back() -> None:
    pace = Pace(PacePolicy(second=100.0, adaptive=True))
    now, modes, sent = 0.0, [], 0
    while now < 200.0:
        if pace.wait(now) <= 0:
            pace.sent(now)
            sent += now < 100
            pace.ended(delivered=now >= 100, asked=False)
        if not modes or modes[-1] != pace.speed.mode:
            modes.append(pace.speed.mode)
        now += 0.01
    assert modes == [PaceMode.NORMAL, PaceMode.SLOW, PaceMode.HEARTBEAT, PaceMode.SLOW, PaceMode.NORMAL]
    assert sent <= 100 + 2 + 3
    assert pace.speed.rate > 90


def test_without_a_rate_there_is_no_limit() -> None:
    pace = Pace()
    assert (pace.limited, pace.wait(0.0), pace.speed.rate) == (False, 0.0, math.inf)
