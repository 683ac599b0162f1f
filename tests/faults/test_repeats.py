from __future__ import annotations

from tests.faults.repeats import ARRIVING, UNSAVED, Disturbance, Repeat, unexplained

KILL = 100.0


def kills(*times: float) -> list[Disturbance]:
    return [Disturbance(at, at) for at in times]


def test_what_was_not_saved_when_it_was_killed_may_come_again() -> None:
    assert unexplained([Repeat("a", "e", KILL - 0.2, KILL + 3)], kills(50.0, KILL), {"a": 1}) == []


def test_what_was_saved_long_before_a_kill_may_not() -> None:
    assert len(unexplained([Repeat("a", "e", KILL - UNSAVED - 1, KILL + 3)], kills(KILL), {})) == 1


def test_without_a_kill_in_between_nothing_comes_again() -> None:
    assert len(unexplained([Repeat("a", "e", KILL + 20, KILL + 21)], kills(200.0), {})) == 1
    assert len(unexplained([Repeat("a", "e", KILL + ARRIVING + 1, KILL + 5)], kills(KILL), {})) == 1


def test_a_kill_repeats_no_more_than_was_on_its_way() -> None:
    two = [Repeat("a", event, KILL - 0.1, KILL + 1) for event in "ef"]
    assert unexplained(two, kills(KILL), {"a": 2}) == []
    assert len(unexplained(two, kills(KILL), {"a": 1})) == 1
    assert unexplained(two, kills(KILL), {}) == []


def test_a_repeat_that_came_after_several_kills_may_be_of_any_of_them() -> None:
    late = Repeat("a", "e", KILL - 0.2, KILL + 30)
    assert unexplained([late], kills(KILL, KILL + 20), {"a": 1}) == []
    both = [Repeat("a", "e", KILL - 0.2, KILL + 4), Repeat("a", "f", KILL + 0.5, KILL + 4)]
    assert unexplained(both, kills(KILL, KILL + 1), {"a": 1}) == []
    assert len(unexplained([*both, Repeat("a", "g", KILL, KILL + 4)], kills(KILL, KILL + 1), {"a": 1})) == 1


def test_what_was_answered_while_its_sender_stood_still_may_come_again() -> None:
    stood_still = [Disturbance(KILL, KILL + 30)]
    assert unexplained([Repeat("a", "e", KILL + 20, KILL + 31)], stood_still, {"a": 1}) == []


def test_what_concerns_one_subscription_explains_nothing_of_another() -> None:
    changed = [Disturbance(KILL, KILL, "a")]
    assert unexplained([Repeat("a", "e", KILL - 1, KILL + 1)], changed, {}) == []
    assert len(unexplained([Repeat("b", "e", KILL - 1, KILL + 1)], changed, {})) == 1
