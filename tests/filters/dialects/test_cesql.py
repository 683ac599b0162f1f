"""CESQL as a filter: alone, inside the filters of the Subscriptions API (SUB-05), in the router, and explained."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import an_event
from tests.filters.cesql.made_up import accepted_expressions, nonsense
from tests.filters.made_up import events, filters
from tests.filters.test_agreement import a_batch, plainly, routed, way
from tidings.errors import FilterSyntaxError
from tidings.events.model import Event
from tidings.filters import RouteSpec, explain, matches, parse, printed
from tidings.filters.algebra import Always, Cesql, Filter, Not, all_of, any_of
from tidings.filters.cesql import parse as expression
from tidings.filters.cesql import passes
from tidings.filters.routing.implied_conditions import implied

__all__ = ["way"]

EVENT = an_event(type="order.created", subject="eu-5", retries=12, final=True)

HOLDS: list[Any] = [
    {"sql": "type = 'order.created' AND subject LIKE 'eu-%'"},
    {"sql": "retries > 10 AND final"},
    {"not": {"sql": "absent = 'x'"}},
    {"not": {"sql": "retries"}},
    {"any": [{"sql": "absent = 'x'"}, {"exact": {"subject": "eu-5"}}]},
    [{"prefix": {"type": "order."}}, {"all": [{"not": {"not": {"sql": "LENGTH(subject) = 4"}}}]}],
]

FAILS: list[Any] = [
    {"sql": "retries"},
    {"sql": "'true'"},
    {"sql": "absent = 'x' OR final"},
    {"not": {"sql": "final"}},
    {"all": [{"sql": "final"}, {"sql": "type = 'order'"}]},
]

REFUSED: list[tuple[Any, str]] = [
    ({"sql": ""}, "/sql, column 1"),
    ({"sql": "type = "}, "/sql, column 8"),
    ({"any": [{"not": {"sql": "TRUE AND NOSUCH(1)"}}]}, "/any/0/not/sql, column 10"),
    ({"sql": 5}, "/sql"),
    ({"sql": ["TRUE"]}, "/sql"),
    ({"sql": None}, "/sql"),
]


@pytest.mark.parametrize("raw", HOLDS)
def test_a_filter_with_sql_holds(raw: Any) -> None:
    assert matches(parse("cloudevents", raw), EVENT)


@pytest.mark.parametrize("raw", FAILS)
def test_a_filter_with_sql_does_not_hold(raw: Any) -> None:
    assert not matches(parse("cloudevents", raw), EVENT)


@pytest.mark.parametrize(("raw", "at"), REFUSED)
def test_a_mistake_in_sql_is_told_with_pointer_and_column(raw: Any, at: str) -> None:
    with pytest.raises(FilterSyntaxError) as told:
        parse("cloudevents", raw)
    assert told.value.at == at


@pytest.mark.parametrize("text", ["1 = 1\u00a0", "\u00a0", "1 = 1\x1f", "\x85"])
def test_only_the_four_blanks_of_cesql_stand_between_tokens(text: str) -> None:
    with pytest.raises(FilterSyntaxError) as told:
        parse("cesql", text)
    assert (told.value.at, told.value.found) == (f"column {len(text)}", text[-1])


def test_an_expression_is_a_dialect_of_its_own() -> None:
    assert matches(parse("cesql", "EXISTS final"), EVENT)
    with pytest.raises(FilterSyntaxError) as told:
        parse("cesql", "EXISTS 'final'")
    assert told.value.at == "column 8"


def test_an_explanation_shows_value_error_and_parts() -> None:
    told = explain(parse("cesql", "type = 'order.created' AND region = 'EU'"), EVENT).as_json()
    (cause,) = told["because"]
    assert (cause["value"], cause["error"], cause["reason"]) == (False, "missingAttribute", "there is no attribute region")
    assert {"expression": "type = 'order.created'", "value": True} in cause["parts"]
    text = str(explain(parse("cesql", "retries + 1 > 20"), EVENT))
    assert "does not hold: it is false; retries is 12; retries + 1 is 13" in text


IMPLIED: list[tuple[str, str]] = [
    ("type = 'a' AND subject LIKE 'b%'", 'text(@type) = "a"'),
    ("subject LIKE 'b%'", 'text(@subject) like "b*"'),
    ("type = 'a' OR type = 'b'", 'text(@type) = "a" or text(@type) = "b"'),
    ("type = 'a' OR LENGTH(type) > 3", "true"),
    ("(type = 'a' OR LENGTH(type) > 3) AND n IN (1, 'x')", 'text(@n) in ("1", "true", "x")'),
    ("n IN ('05')", "true"),
    ("n IN ('TRUE')", "true"),
    ("NOT EXISTS x", "@x is missing"),
    ("'a' = type", "true"),
    ("n = 5", "true"),
    ("type = 'a' XOR type = 'b'", "true"),
    ("data = 'x'", "true"),
]


@pytest.mark.parametrize(("text", "expected"), IMPLIED)
def test_the_index_finds_an_expression_by_what_it_implies(text: str, expected: str) -> None:
    leaf = parse("cesql", text)
    assert isinstance(leaf, Cesql)
    assert printed(implied(leaf)) == expected


@settings(max_examples=300, deadline=None)
@given(text=accepted_expressions, event=events())
def test_what_an_expression_implies_holds_whenever_it_passes(text: str, event: Event) -> None:
    leaf = parse("cesql", text)
    assert isinstance(leaf, Cesql)
    if passes(expression(text), event.attributes):
        assert matches(implied(leaf), event)


sql = accepted_expressions.map(lambda text: parse("cesql", text))
trees: st.SearchStrategy[Filter] = st.recursive(
    sql | sql | filters | st.booleans().map(Always),
    lambda inner: (
        inner.map(Not)
        | st.lists(inner, min_size=2, max_size=3).map(lambda parts: all_of(*parts))
        | st.lists(inner, min_size=2, max_size=3).map(lambda parts: any_of(*parts))
    ),
    max_leaves=4,
)


@pytest.mark.usefixtures("way")
@settings(max_examples=100, deadline=None)
@given(chosen=st.lists(trees, min_size=1, max_size=6), published=st.lists(events(), max_size=8))
def test_the_router_agrees_about_sql(chosen: list[Filter], published: list[Event]) -> None:
    specs = [RouteSpec(lane, frozenset({1}), filter, 0) for lane, filter in enumerate(chosen, 1)]
    topics = [1] * len(published)
    assert routed(specs, a_batch(published, topics)) == plainly(specs, published, topics)


@settings(max_examples=150, deadline=None)
@given(text=accepted_expressions, event=events())
def test_an_explanation_agrees_about_sql(text: str, event: Event) -> None:
    leaf = parse("cesql", text)
    told = explain(leaf, event)
    assert told.holds is matches(leaf, event) is passes(expression(text), event.attributes)
    assert told.as_json()["tree"]["holds"] is told.holds
    assert str(told)
    assert parse("where", printed(leaf)) == leaf


@settings(max_examples=150, deadline=None)
@given(text=nonsense)
def test_no_text_raises_anything_but_a_syntax_error(text: str) -> None:
    for dialect, raw in (("cesql", text), ("cloudevents", {"not": {"sql": text}}), ("where", f"sql({text})")):
        try:
            found = parse(dialect, raw)
        except FilterSyntaxError as error:
            assert str(error)
        else:
            assert explain(found, EVENT).holds is matches(found, EVENT)
