from __future__ import annotations

from tests.faults.repeats import UNSAVED, Repeat, unexplained

KILL = 100.0


def test_what_was_not_saved_when_it_was_killed_may_come_again() -> None:
    assert unexplained([Repeat("a", "e", KILL - 0.2, KILL + 3)], [50.0, KILL], {"a": 1}) == []


def test_what_was_saved_long_before_a_kill_may_not() -> None:
    assert len(unexplained([Repeat("a", "e", KILL - UNSAVED - 1, KILL + 3)], [KILL], {})) == 1


def test_without_a_kill_in_between_nothing_comes_again() -> None:
    assert len(unexplained([Repeat("a", "e", KILL + 20, KILL + 21)], [200.0], {})) == 1


def test_a_kill_repeats_no_more_than_was_on_its_way() -> None:
    two = [Repeat("a", event, KILL - 0.1, KILL + 1) for event in "ef"]
    assert unexplained(two, [KILL], {"a": 2}) == []
    assert len(unexplained(two, [KILL], {"a": 1})) == 1
    assert unexplained(two, [KILL], {}) == []


def test_a_kill_before_an_event_first_came_explains_nothing() -> None:
    assert len(unexplained([Repeat("a", "e", KILL + 20, KILL + 21)], [KILL], {})) == 1


def test_any_of_several_kills_explains_a_repeat_not_only_the_last_one() -> None:
    late = [Repeat("a", "e", KILL - 0.1, KILL + 30)]
    assert unexplained(late, [KILL, KILL + 10, KILL + 20], {"a": 1}) == []
    each = [Repeat("a", "e", KILL - 0.1, KILL + 9), Repeat("a", "f", KILL + 1, KILL + 9)]
    assert unexplained(each, [KILL, KILL + 2], {"a": 1}) == []
