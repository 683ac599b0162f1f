"""Horizon's advanced selection filter (HOR-72 to HOR-91): what each operator means, what is refused, and the trace."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import an_event
from tidings.errors import FilterSyntaxError
from tidings.filters import explain, matches, parse
from tidings.filters.dialects.horizon import selection, trace

EVENT = an_event(
    '{"s":"abc","i":5,"d":5.0,"b":true,"n":null,"o":{"k":1},"arr":["a","b"],"one":["a"],"empty":[],"nested":[["a"]],'
    '"deep":[[["a"]]],"mixed":["a",null,{"x":1}],"objs":[{"t":"A"},{"t":"B"},{}],"big":123456789012345678901234567890,'
    '"note":"𝄞","a b":1}'.encode()
)


def an_operator(op: str, field: str, value: Any) -> dict[str, Any]:
    return {op: {"field": field, "value": value}}


HOLDS = [
    ("eq", "$.s", "abc"),
    ("eq", "s", "abc"),
    ("EQ", "$.i", 5.0),
    ("eq", "$.d", 5),
    ("eq", "$.big", 123456789012345678901234567890),
    ("eq", "$.one", "a"),
    ("eq", "$.nested", "a"),
    ("eq", "$.mixed", "a"),
    ("eq", "$['a b']", 1),
    ("eq", "$.arr[-1]", "b"),
    ("eq", "$.arr.length()", 2),
    ("ne", "$.s", "x"),
    ("ne", "$.b", 1),
    ("ne", "$.b", "true"),
    ("ne", "$.s", ["abc"]),
    ("lt", "$.i", 5.5),
    ("le", "$.b", True),
    ("gt", "$.b", False),
    ("ge", "$.i", 5),
    ("gt", "$.s", "abb"),
    ("lt", "$.note", "\uffee"),  # UTF-16: the surrogates of U+1D11E are below U+FFEE
    ("rx", "$.s", "a.c"),
    ("rx", "$.s", "(?i)ABC"),
    ("rx", "$.s", r"\p{L}+"),
    ("in", "$.b", ["abc", 5, True]),
    ("in", "$.i", [["x"], 5]),
    ("nin", "$.s", ["x", 5]),
    ("nin", "$.s", []),
    ("ct", "$.arr", "b"),
    ("ct", "$.s", "abc"),
    ("ct", "$.objs[*].t", "B"),
    ("nct", "$.n", "x"),
    ("nct", "$.o", 1),
    ("nct", "$.empty", "a"),
    ("nct", "$..nope", "A"),
    ("nct", "$.arr", ["a"]),
]

FAILS = [
    ("eq", "$.b", 1),
    ("eq", "$.i", "5"),
    ("eq", "$.big", 123456789012345678901234567891),
    ("eq", "$.arr", "a"),
    ("eq", "$.arr", ["a", "b"]),
    ("eq", "$.deep", "a"),
    ("eq", "$.empty", "a"),
    ("ne", "$.nope", 5),
    ("ne", "$.n", "x"),
    ("ne", "$.arr", "z"),
    ("lt", "$.i", "6"),
    ("lt", "$.b", 2),
    ("lt", "$.b", True),
    ("gt", "$.b", True),
    ("lt", "$.i", [6]),
    ("rx", "$.s", "ab"),
    ("rx", "$.i", "5"),
    ("in", "$.s", []),
    ("in", "$.s", [["abc"]]),
    ("nin", "$.nope", ["x"]),
    ("nin", "$.n", ["x"]),
    ("nin", "$.arr", ["x"]),
    ("ct", "$.s", "ab"),
    ("ct", "$.arr", ["a"]),
    ("ct", "$.empty", "a"),
    ("nct", "$.arr", "b"),
    ("nct", "$.nope", "x"),
    ("nct", "$.nope[*].t", "A"),
]


@pytest.mark.parametrize(("op", "field", "value"), HOLDS)
def test_it_holds(op: str, field: str, value: Any) -> None:
    assert matches(parse("horizon", an_operator(op, field, value)), EVENT)


@pytest.mark.parametrize(("op", "field", "value"), FAILS)
def test_it_does_not_hold(op: str, field: str, value: Any) -> None:
    assert not matches(parse("horizon", an_operator(op, field, value)), EVENT)


def test_logic_joins_operators_and_may_be_empty() -> None:
    yes, no = an_operator("eq", "s", "abc"), an_operator("eq", "s", "x")
    assert matches(parse("horizon", {"And": [yes, {"or": [no, yes]}]}), EVENT)
    assert not matches(parse("horizon", {"and": [yes, no]}), EVENT)
    assert matches(parse("horizon", {"and": []}), EVENT)
    assert not matches(parse("horizon", {"or": []}), EVENT)


@pytest.mark.parametrize(
    ("raw", "at"),
    [
        ({}, ""),
        ("eq", ""),
        ({"not": []}, "not"),
        ({"ex": {"field": "$.a", "value": 1}}, "ex"),
        ({"and": {"eq": {}}}, "and"),
        ({"and": "x"}, "and"),
        ({"and": [{"eq": {"field": "$.a", "value": 1}}, 5]}, "and[1]"),
        ({"eq": {"value": 1}}, "eq.field"),
        ({"eq": {"field": "", "value": 1}}, "eq.field"),
        ({"eq": {"field": "$.a"}}, "eq.value"),
        ({"eq": {"field": "$.a", "value": None}}, "eq.value"),
        ({"eq": {"field": "$.a", "value": {"x": 1}}}, "eq.value"),
        ({"in": {"field": "$.a", "value": "x"}}, "in.value"),
        ({"nin": {"field": "$.a", "value": "x"}}, "nin.value"),
        ({"or": [{"in": {"field": "$.a", "value": ["x", [{"y": 1}]]}}]}, "or[0].in.value[1][0]"),
        ({"eq": {"field": "$.a", "value": ["x", None]}}, "eq.value[1]"),
        ({"rx": {"field": "$.a", "value": 5}}, "rx.value"),
        ({"or": [{"rx": {"field": "$.a", "value": "["}}]}, "or[0].rx.value"),
        ({"rx": {"field": "$.a", "value": "(?=a)"}}, "rx.value"),
    ],
)
def test_it_is_refused_with_its_place(raw: Any, at: str) -> None:
    with pytest.raises(FilterSyntaxError) as told:
        parse("horizon", raw)
    assert told.value.at == at
    assert told.value.expected


@pytest.mark.parametrize("field", ["$.a[", "$.a.", "$.a b"])
def test_a_path_that_cannot_be_read_is_refused_with_its_place_and_column(field: str) -> None:
    with pytest.raises(FilterSyntaxError, match=r"and\[0\]\.eq\.field"):
        parse("horizon", {"and": [an_operator("eq", field, 1)]})


def test_42_operators_are_accepted_and_43_are_not() -> None:
    one = an_operator("eq", "$.a", 1)
    parse("horizon", {"or": [{"and": [one] * 20}, {"and": [one] * 19}]})
    with pytest.raises(FilterSyntaxError, match="42"):
        parse("horizon", {"or": [{"and": [one] * 20}, {"and": [one] * 20}]})


def test_what_does_not_count_is_told() -> None:
    raw = {"and": [{"eq": {"field": "a", "value": 1, "note": "x"}, "ne": {}}], "or": []}
    parse("horizon", raw)
    assert list(selection.warnings(raw)) == [
        "or is ignored: only the first operator of an object counts",
        "and[0].ne is ignored: only the first operator of an object counts",
        "and[0].eq.note is ignored: an operator has a field and a value",
    ]


def trace_of(raw: dict[str, Any]) -> dict[str, Any]:
    return trace.trace(raw, explain(parse("horizon", raw), EVENT))


@pytest.mark.parametrize(
    ("op", "field", "value", "cause"),
    [
        ("eq", "$.i", 6, "Actual value did not equal expected value."),
        ("ne", "$.i", 5, "Actual value was equal to unexpected value."),
        ("lt", "$.i", 5, "Actual value was not less than expected value"),
        ("le", "$.i", 4, "Actual value was not less or equal than expected value."),
        ("gt", "$.b", True, "Actual value was not greater than expected value."),
        ("ge", "$.i", 6, "Actual value was not greater or equal to expected value."),
        ("rx", "$.s", "x", "Actual value did not match regex."),
        ("in", "$.s", [], "Actual value was not in expected values."),
        ("nin", "$.s", ["abc"], "Actual value was in expected values."),
        ("ct", "$.arr", "z", "Actual value did not contain expected value."),
        ("ct", "$.arr", ["a"], "Actual value did not contain expected value."),
        ("nct", "$.arr", "a", "Actual value did contain expected value."),
    ],
)
def test_the_trace_tells_the_cause(op: str, field: str, value: Any, cause: str) -> None:
    assert trace_of(an_operator(op, field, value))["causeDescription"] == cause


@pytest.mark.parametrize(
    ("op", "field", "value", "reason"),
    [
        ("eq", "$.arr", "a", 'The evaluation of "$.arr" did not return a single value. Expected 1 value, got 2.'),
        ("nin", "$.n", ["a"], 'The evaluation of "$.n" did not return a single value. Expected 1 value, got 0.'),
        ("nct", "$.nope", "a", "No results for path: $.nope"),
        ("lt", "$.i", "6", "A number cannot be ordered with a text."),
        ("rx", "$.i", "6", "A regular expression needs a text, not a number."),
    ],
)
def test_the_trace_tells_what_could_not_be_evaluated(op: str, field: str, value: Any, reason: str) -> None:
    told = trace_of(an_operator(op, field, value))
    assert told["causeDescription"] == f"An exception occurred during the evaluation: \n{reason}"


def test_the_trace_shows_operators_as_they_were_written() -> None:
    raw = {"AND": [{"or": [an_operator("Eq", "s", "x")]}, an_operator("nin", "$.s", ["x"]), {"and": []}]}
    equal = {
        "operatorName": "equal",
        "match": False,
        "causeDescription": "Actual value did not equal expected value.",
        "operator": {"operator": "EQ", "expectedValue": "x", "jsonPath": "s"},
    }
    assert trace_of(raw) == {
        "operatorName": "and",
        "match": False,
        "causeDescription": "Not all child-operators matched.",
        "childOperators": [
            {
                "operatorName": "or",
                "match": False,
                "causeDescription": "No child-operator matched.",
                "childOperators": [equal],
            },
            {"operatorName": "nin", "match": True, "operator": {"operator": "NIN", "expectedValue": ["x"], "jsonPath": "$.s"}},
            {"operatorName": "and", "match": True},
        ],
    }


def test_the_explanation_tells_how_many_values_there_were() -> None:
    raw = {"or": [an_operator("eq", "$.arr", "a"), an_operator("ct", "$.empty", "b"), an_operator("nct", "$.nope", 1)]}
    assert str(explain(parse("horizon", raw), EVENT)) == (
        "no match, because\n"
        "  $.arr = \"a\" does not hold: found 2 values: 'a', 'b'\n"
        '  some value of $.empty = "b" does not hold: found no values\n'
        "  no value of $.nope = 1 does not hold: found nothing"
    )


def test_a_path_that_looks_at_too_much_does_not_hold_and_says_so() -> None:
    many = an_event(b"[" + b",".join([b"[1]"] * 120_000) + b"]")
    raw = an_operator("nct", "$..nope", 1)
    told = explain(parse("horizon", raw), many)
    assert not told.holds
    assert "looks at more than" in str(told)
    assert "looks at more than" in trace.trace(raw, told)["causeDescription"]
    assert "looks at more than" in told.as_json()["because"][0]["cause"]


def test_lists_may_nest_as_deep_as_the_limit() -> None:
    def nested(levels: int) -> Any:
        value: Any = "x"
        for _ in range(levels):
            value = [value]
        return value

    assert not matches(parse("horizon", an_operator("eq", "s", nested(32))), EVENT)
    with pytest.raises(FilterSyntaxError, match="nested too deeply"):
        parse("horizon", an_operator("eq", "s", nested(33)))
