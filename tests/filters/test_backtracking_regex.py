"""Expressions that need backtracking: limited wherever they stand, and explanations say when one ran out of time."""

from __future__ import annotations

import json
import time

import pytest

from tests.builders import an_event
from tests.filters.test_router import ORDERS, a_batch
from tidings.errors import FilterSyntaxError
from tidings.filters import RegexRules, Router, RouteSpec, backtracking_regex, explain, matches, parse
from tidings.filters.routing.budgets import is_watched

RULES = RegexRules(fallback=True, match_timeout=0.02, budget=60)
EXPLODES = "(?=a)(a+)+$"
LONG = "a" * 5000 + "!"

WRITTEN = {
    "where": f"name matches '{EXPLODES}'",
    "horizon": {"rx": {"field": "$.name", "value": f".*{EXPLODES}"}},
    "hermes": [{"type": "jsonpath", "path": "$.name", "matcher": f".*{EXPLODES}"}],
}
FOUND_BY_QUERY = {
    "horizon": {"eq": {"field": f"$.items[?(@.name =~ /{EXPLODES}/)].n", "value": 1}},
    "hermes": [{"type": "jsonpath", "path": f"$.items[?(@.name =~ /{EXPLODES}/)].n", "matcher": "1"}],
}


@pytest.mark.parametrize("dialect", WRITTEN)
def test_an_explanation_says_that_the_expression_ran_out_of_time(dialect: str) -> None:
    filter = parse(dialect, WRITTEN[dialect], RULES)
    event = an_event(json.dumps({"name": LONG}).encode())

    told = explain(filter, event)

    assert told.matched is matches(filter, event) is False
    assert "given up after 20 ms, which counts as no match" in str(told)
    assert "given up after 20 ms" in told.as_json()["because"][0]["cause"]


@pytest.mark.parametrize("dialect", WRITTEN)
def test_what_is_decided_in_time_has_no_cause(dialect: str) -> None:
    told = explain(parse(dialect, WRITTEN[dialect], RULES), an_event(b'{"name":"aaa"}'))

    assert told.matched
    assert all("cause" not in one for one in told.as_json()["because"])


@pytest.mark.parametrize("dialect", FOUND_BY_QUERY)
def test_expressions_inside_of_paths_are_refused_without_fallback(dialect: str) -> None:
    parse(dialect, FOUND_BY_QUERY[dialect], RULES)
    with pytest.raises(FilterSyntaxError, match="RE2"):
        parse(dialect, FOUND_BY_QUERY[dialect])


@pytest.mark.parametrize("dialect", FOUND_BY_QUERY)
def test_expressions_inside_of_paths_are_limited_and_watched(dialect: str) -> None:
    filter = parse(dialect, FOUND_BY_QUERY[dialect], RULES)
    short = an_event(b'{"items":[{"name":"b","n":2},{"name":"aaa","n":1}]}')
    long = an_event(json.dumps({"items": [{"name": LONG, "n": 1}] * 100}).encode())

    assert is_watched(filter)
    assert matches(filter, short)
    began = time.process_time()
    told = explain(filter, long)
    assert time.process_time() - began < 1, "all attempts of one search share its time"
    assert not told.matched
    assert "the regular expression" in str(told)


def test_flags_and_dots_inside_of_paths_mean_the_same_when_backtracking() -> None:
    def finds(pattern: str, name: str) -> bool:
        query = {"eq": {"field": f"$.items[?(@.name =~ {pattern})].n", "value": 1}}
        return matches(parse("horizon", query, RULES), an_event(json.dumps({"items": [{"name": name, "n": 1}]}).encode()))

    assert finds("/(?=A).+b/i", "AXB")
    assert not finds("/(?=A).+b/", "AXB")
    assert not finds("/(?=A).+B/", "A\u2028B")
    assert finds("/(?=A).+B/s", "A\u2028B")
    assert not finds("/(?=A)A/", "AB"), "it fits the whole text"


def test_the_elements_of_an_array_share_the_time_of_one_text() -> None:
    some = {"type": "jsonpath", "path": "$.names[*]", "matcher": f".*{EXPLODES}", "matchingStrategy": "any"}
    filter = parse("hermes", [some], RULES)
    began = time.process_time()
    assert not matches(filter, an_event(json.dumps({"names": [LONG] * 200}).encode()))
    assert time.process_time() - began < 1


def test_one_event_cannot_take_more_than_the_budget_of_its_subscription() -> None:
    rules = RegexRules(fallback=True, match_timeout=0.05, budget=0.02)
    where = " or ".join(f"name matches '{EXPLODES}{'$' * n}'" for n in range(1, 40))
    router = Router([RouteSpec(1, frozenset([ORDERS]), parse("where", where, rules), 0)], rules)
    event = an_event(json.dumps({"name": LONG}).encode())

    began = time.process_time()
    found = router.route(a_batch(event))

    assert time.process_time() - began < 1
    assert [one.lane for one in found.aside] == [1], "what was not decided is set aside, not lost"
    assert found.blocked


def test_an_allowance_inside_another_is_taken_from_it() -> None:
    fits = backtracking_regex.trying(EXPLODES, whole=False)
    with backtracking_regex.within(0.03) as outer:
        with backtracking_regex.within(0.01) as inner:
            assert not fits(LONG)
            assert inner.left <= 0
        assert "given up after 10 ms" in outer.cause
        assert 0 <= outer.left <= 0.0201
        assert not fits(LONG)
        assert outer.left <= 0
        assert not fits("aaa"), "there is no time left to try it"
    assert fits("aaa")


@pytest.mark.parametrize(
    "pattern", ["(?=a)((a{1000}){1000}){1000}", "(?=a)" + "(" * 30 + "a" + "+)+" * 30, "(?=a)(?:[a-z]{200}){200}"]
)
def test_an_expression_that_would_take_all_memory_is_refused_before_it_is_compiled(pattern: str) -> None:
    with pytest.raises(FilterSyntaxError, match="repeats too much"):
        parse("where", f"name matches '{pattern}'", RULES)


@pytest.mark.parametrize("pattern", ["(?=a)(a{100}){100}", "(?=a)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}", r"(?=a)\p{L}{2,}(\d)+?"])
def test_expressions_with_usual_repeats_are_taken(pattern: str) -> None:
    parse("where", f"name matches '{pattern}'", RULES)
