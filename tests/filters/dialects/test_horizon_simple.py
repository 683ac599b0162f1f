"""Horizon's simple selection filter (HOR-92 to HOR-95), and triggers as a whole."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import an_event
from tidings.errors import FilterSyntaxError
from tidings.filters import explain, matches, parse
from tidings.filters.dialects.horizon import trace
from tidings.filters.dialects.horizon import trigger as horizon_trigger

EVENT = an_event(
    b'{"i":12,"d":12.0,"e":1e10,"b":true,"n":null,"o":{"k":1,"0":"zero"},"arr":["ball","car"],"s":"x","$":{"s":"y"},"":"none"}'
)


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"i": "12"},
        {"i": 12},
        {"d": "12.0"},
        {"e": "1.0E10"},
        {"b": "true"},
        {"b": True},
        {"n": "null"},
        {"arr.0": "ball", "s": "x"},
        {"o.0": "zero"},
        {"$.s": "y"},
        {"": "none"},
    ],
)
def test_it_holds(raw: dict[str, Any]) -> None:
    assert matches(parse("horizon-simple", raw), EVENT)


@pytest.mark.parametrize(
    "raw",
    [
        {"i": "12.0"},
        {"d": "12"},
        {"s": "X"},
        {"n": ""},
        {"arr": ""},
        {"o": "{}"},
        {"$.i": "12"},
        {"arr.2": "x"},
        {"arr.00": "ball"},
        {"arr.-1": "car"},
        {"s.x": "x"},
        {"s": "x", "i": "13"},
    ],
)
def test_it_does_not_hold(raw: dict[str, Any]) -> None:
    assert not matches(parse("horizon-simple", raw), EVENT)


@pytest.mark.parametrize(
    ("raw", "at"), [([], ""), ({"a": None}, "a"), ({"a.b": ["x"]}, "a.b"), ({"a": {"b": 1}}, "a"), ({"a": "\ud800"}, "a")]
)
def test_it_is_refused_with_its_place(raw: Any, at: str) -> None:
    with pytest.raises(FilterSyntaxError) as told:
        parse("horizon-simple", raw)
    assert told.value.at == at


@pytest.mark.parametrize(
    ("raw", "cause"),
    [
        ({"s": "x", "o.z": "1"}, "<Legacy> Could not find value at specified path."),
        ({"o": "1"}, "<Legacy> Value at specified path does not match expected value."),
    ],
)
def test_the_trace_tells_the_first_entry_that_did_not_match(raw: dict[str, Any], cause: str) -> None:
    told = trace.simple_trace(raw, explain(parse("horizon-simple", raw), EVENT))
    key, value = list(raw.items())[-1]
    assert told == {
        "operatorName": "equal",
        "match": False,
        "causeDescription": cause,
        "operator": {"operator": "EQ", "expectedValue": value, "jsonPath": key},
    }


def test_a_trace_of_what_matched_has_no_cause() -> None:
    assert trace.simple_trace({}, explain(parse("horizon-simple", {}), EVENT)) == {"operatorName": "and", "match": True}


def test_an_advanced_filter_sets_a_simple_one_aside() -> None:
    raw = {"selectionFilter": {"s": "nothing like it"}, "advancedSelectionFilter": {"eq": {"field": "s", "value": "x"}}}
    trigger = horizon_trigger.parse(raw)
    assert trigger.select is not None
    assert matches(trigger.select, EVENT)
    assert list(horizon_trigger.warnings(raw)) == ["selectionFilter is ignored beside advancedSelectionFilter"]


@pytest.mark.parametrize(
    ("raw", "at"),
    [
        ({"responseFilterMode": "include"}, "responseFilterMode"),
        ({"responseFilter": "a"}, "responseFilter"),
        ({"responseFilter": ["a", 5]}, "responseFilter"),
        ({"responseFilter": ["$.a["], "responseFilterSyntax": "jsonpath"}, "responseFilter, paths[0]"),
        ({"advancedSelectionFilter": {"and": [{"no": 1}]}}, "advancedSelectionFilter, and[0].no"),
    ],
)
def test_a_trigger_is_refused_with_its_place(raw: dict[str, Any], at: str) -> None:
    with pytest.raises(FilterSyntaxError) as told:
        horizon_trigger.parse(raw)
    assert told.value.at.startswith(at)


def test_an_empty_trigger_lets_everything_through() -> None:
    assert horizon_trigger.parse({}) == horizon_trigger.Trigger()


@pytest.mark.parametrize(
    ("raw", "at"),
    [
        (None, ""),
        ([], ""),
        ({"responseFilterMode": []}, "responseFilterMode"),
        ({"responseFilterMode": "include"}, "responseFilterMode"),
        ({"responseFilter": "a"}, "responseFilter"),
        ({"responseFilter": [5]}, "responseFilter"),
        ({"responseFilter": ["a"], "responseFilterSyntax": {}}, "responseFilter, syntax"),
        ({"selectionFilter": []}, "selectionFilter"),
        ({"advancedSelectionFilter": False}, "advancedSelectionFilter"),
    ],
)
def test_a_trigger_of_any_other_shape_is_refused_with_its_place(raw: Any, at: str) -> None:
    with pytest.raises(FilterSyntaxError) as told:
        horizon_trigger.parse(raw)
    assert told.value.at == at
