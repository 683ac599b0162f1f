"""Regular expressions: RE2 by default, and what it cannot say only with limits of time that block their own subscription."""

from __future__ import annotations

import json

import pytest

from tests.builders import an_event
from tests.filters.test_router import ORDERS, a_batch, a_route, numbered, routed
from tidings.errors import FilterSyntaxError
from tidings.events.stored import head_of
from tidings.filters import RegexRules, Router, RouteSpec, matches, parse, printed, text_patterns
from tidings.filters.algebra import SlowText, Text, TextOp
from tidings.filters.paths import DataPath
from tidings.filters.routing import compiled
from tidings.filters.routing.budgets import Budget, Budgets

FALLBACK = RegexRules(fallback=True)
LOOK_AHEAD = "name matches '^item-(?!1)'"


def a_slow_route(lane: int, where: str, rules: RegexRules = FALLBACK) -> RouteSpec:
    return RouteSpec(lane, frozenset([ORDERS]), parse("where", where, rules), 0)


@pytest.mark.parametrize("expression", ["a(?=b)", "(?<!a)b", r"(a)\1", "a++b", "(?>a)b"])
def test_what_re2_cannot_say_is_refused_with_that_reason_unless_fallback_is_on(expression: str) -> None:
    with pytest.raises(FilterSyntaxError, match="RE2"):
        parse("where", f"name matches '{expression}'")
    assert isinstance(parse("where", f"name matches '{expression}'", FALLBACK), SlowText)


def test_what_no_engine_can_say_is_refused_with_fallback_too() -> None:
    with pytest.raises(FilterSyntaxError):
        parse("where", "name matches '(?=a'", FALLBACK)


def test_with_fallback_re2_still_does_what_it_can() -> None:
    where = "name matches '^(a+)+$' and not name matches 'b'"
    assert parse("where", where, FALLBACK) == parse("where", where)


def test_allowing_it_once_does_not_allow_it_afterwards() -> None:
    parse("where", LOOK_AHEAD, FALLBACK)
    with pytest.raises(FilterSyntaxError):
        parse("where", LOOK_AHEAD)


def test_a_slow_expression_is_printed_as_it_is_written() -> None:
    filter = parse("where", f"not ({LOOK_AHEAD} and n = 1)", FALLBACK)
    assert parse("where", printed(filter), FALLBACK) == filter


@pytest.mark.parametrize("count", [5, 600])
def test_slow_expressions_route_as_they_are_read(count: int) -> None:
    published = numbered(count)
    routes = [
        a_slow_route(lane, where, RegexRules(fallback=True, budget=60))
        for lane, where in enumerate((LOOK_AHEAD, f"region = 'EU' and {LOOK_AHEAD}", f"not ({LOOK_AHEAD} or n = 3)"))
    ]
    found = Router(routes, RegexRules(fallback=True, budget=60)).route(a_batch(*published))
    expected = [(r.lane, n) for r in routes for n, event in enumerate(published) if r.filter and matches(r.filter, event)]
    assert list(zip(found.lanes.tolist(), found.events.tolist(), strict=True)) == expected
    assert (found.aside, found.blocked, found.fell_back) == ([], {}, 0)


def test_an_expression_that_explodes_is_no_match_after_its_time() -> None:
    event = an_event(b'{"name":"%s!"}' % (b"a" * 100_000))
    assert not matches(parse("where", r"name matches '(?=a)(a+)+$'", RegexRules(fallback=True, match_timeout=0.01)), event)
    assert not matches(parse("where", "name matches '(a+)+$'"), event)


@pytest.mark.parametrize("count", [20, 400])
def test_a_subscription_past_its_budget_is_blocked_and_the_others_go_on(count: int) -> None:
    rules = RegexRules(fallback=True, match_timeout=0.02, budget=0.05)
    published = [an_event(b'{"name":"%s!","n":%d}' % (b"a" * 5000, n)) for n in range(count)]
    routes = [a_slow_route(1, "name matches '(?=a)(a+)+$'", rules), a_route(2, "n >= 0")]
    router = Router(routes, rules)
    found = router.route(a_batch(*published))
    assert found.lanes.tolist() == [2] * count
    assert found.blocked == {1: "its regular expression took more than 50 ms per 1,000 events"}
    assert len(found.aside) > count // 2
    assert {(one.lane, one.reason) for one in found.aside} == {(1, found.blocked[1])}
    again = router.updated([*routes, a_route(3)]).route(a_batch(*published[:3]))
    assert again.blocked == found.blocked
    assert [one.lane for one in again.aside] == [1, 1, 1]
    mended = router.updated([a_route(1, "n = 1"), routes[1]]).route(a_batch(*published[:3]))
    assert mended.blocked == {}
    assert mended.aside == []


def test_a_match_by_another_branch_is_not_set_aside() -> None:
    rules = RegexRules(fallback=True, budget=0.0)
    router = Router([a_slow_route(1, f"n < 3 or {LOOK_AHEAD}", rules)], rules)
    published = numbered(200)
    router.route(a_batch(*published))
    found = router.route(a_batch(*published))
    assert found.events.tolist() == [0, 1, 2]
    assert [one.event for one in found.aside] == list(range(3, 200))


def test_a_budget_is_refilled_by_events_up_to_its_size() -> None:
    budget = Budget(0.1, 1000)
    budget.spend(0.09)
    budget.refill(500)
    assert budget.left == pytest.approx(0.06)
    budget.refill(10_000)
    assert budget.left == pytest.approx(0.1)
    budget.spend(0.2)
    budget.refill(10_000)
    assert budget.reason is not None


def test_budgets_of_routes_that_are_gone_are_forgotten() -> None:
    budgets, route = Budgets(), a_slow_route(1, LOOK_AHEAD)
    first = budgets.of(route)
    budgets.keep([route])
    assert budgets.of(route) is first
    budgets.keep([])
    assert budgets.of(route) is not first


def test_many_expressions_that_are_tried_together_route_as_they_are_read() -> None:
    names = ["", "a1", "b22", "a1\n", "x-b2", "ÄA1", "a" * 150 + "1", "a" * 300 + "1", "b" * 300 + "22", 1, None, ["a1"]]
    orders = [{"name": names[n % len(names)], "region": "EU" if n % 5 else "US"} for n in range(300)]
    published = [an_event(data=json.dumps(order).encode()) for order in orders]
    patterns = [
        f"{sign}{number}{end}" for sign in ("[ab]+", "^a", ".*b", "(?i)Äa") for number in (1, 2) for end in ("", ".?", ".*")
    ]
    wheres = [f"region = 'EU' and name {op} '{pattern}'" for op in ("matches", "like") for pattern in patterns]
    wheres += [f"name matches '{pattern}'" for pattern in patterns]
    wheres += [f"region = 'US' and name matches '{pattern}' and not name matches '2'" for pattern in patterns]
    whole = [
        {"and": [{"eq": {"field": "$.region", "value": "EU"}}, {"rx": {"field": "$.name", "value": pattern}}]}
        for pattern in patterns
    ]
    filters = [parse("where", where) for where in wheres] + [parse("horizon", one) for one in whole]
    routes = [RouteSpec(lane, frozenset([ORDERS]), filter, 0) for lane, filter in enumerate(filters)]
    found = Router(routes).route(a_batch(*published))
    expected = [(lane, n) for lane, filter in enumerate(filters) for n, event in enumerate(published) if matches(filter, event)]
    assert list(zip(found.lanes.tolist(), found.events.tolist(), strict=True)) == expected
    assert (found.aside, found.fell_back) == ([], 0)
    assert {lane for lane, _ in expected} > {0, len(wheres)}


def test_expressions_tried_together_say_when_they_could_not_be_tried() -> None:
    which = text_patterns.together(["a+", "b", "[ab]+"], True)
    assert which is not None
    assert [sorted(which(text) or ()) for text in ("aa", "b", "c", "\ud800")] == [[0, 2], [1, 2], [], []]
    too_large = text_patterns.together([f"(?i)[a-z]{{{900 + n}}}x" for n in range(100)], False)
    assert too_large is None or too_large("ab" * 1000) is None


@pytest.mark.parametrize("few", [True, False])
def test_expressions_that_ask_for_a_beginning_only_are_read_as_any_other(few: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "FEW", 10**9 if few else -1)
    patterns = ("ab.*", "^ab.*", "ab.*$", "ab", "a.*", "ab*", "ab.*c", "^ab", "^ab.*$", ".*", "(?i)ab.*", "a|ab.*")
    found_texts = ("ab", "abc", "ab\nc", "xab", "a", "", "ab\n", "\nab", "AB", "abé", "abbbc")
    filters = [Text(DataPath(("t",)), op, pattern) for op in (TextOp.WHOLE, TextOp.REGEX) for pattern in patterns]
    filters += [Text(DataPath(("t",)), TextOp.LIKE, pattern) for pattern in ("ab*", "*ab", "*", "a?", "ab", "a*b", "", r"ab\*")]
    routes = [RouteSpec(lane, frozenset([ORDERS]), filter, 0) for lane, filter in enumerate(filters)]
    published = [an_event(json.dumps({"t": text}).encode()) for text in found_texts] * 20
    expected = [(lane, n) for lane, filter in enumerate(filters) for n, e in enumerate(published) if matches(filter, e)]
    assert routed(routes, a_batch(*published)) == expected
    router = Router(routes)
    for event in published[: 2 * len(found_texts)]:
        found = router.route_one(1, ORDERS, head_of(event), event.data)
        assert sorted(found.lanes) == [lane for lane, filter in enumerate(filters) if matches(filter, event)]
