"""Advice: what can be evaluated and is hardly meant so, with its place."""

from __future__ import annotations

from typing import Any

import pytest

from tidings.filters import parse
from tidings.filters.lint import advice, projection_advice
from tidings.filters.projection import projection

MIXED = {"sql": "EXISTS a AND EXISTS b OR EXISTS c"}
EQ = {"field": "$.a", "value": 1}

TOLD: list[tuple[str, Any, list[str]]] = [
    ("horizon", {"eq": EQ}, []),
    ("horizon", {"eq": EQ, "ne": EQ}, ["ne: is ignored: only the first operator of an object counts"]),
    ("horizon", {"and": [{"eq": EQ}, {"eq": EQ | {"x": 1}}]}, ["and[1].eq.x: is ignored: an operator has a field and a value"]),
    ("horizon", {"eq": {"field": "$.a", "value": [1]}}, ["no event can match this"]),
    ("horizon-simple", {"a.b": "x"}, ["a simple filter works; advancedSelectionFilter can say more"]),
    (
        "horizon-simple",
        {"$.a": "x"},
        [
            "a simple filter works; advancedSelectionFilter can say more",
            "$.a: looks for a member called $; leave out the leading $.",
        ],
    ),
    ("cloudevents", {"exact": {"type": "a"}}, []),
    ("where", "a = 1 or b = 2", []),
]


@pytest.mark.parametrize(("dialect", "raw", "told"), TOLD)
def test_advice_has_its_place(dialect: str, raw: Any, told: list[str]) -> None:
    assert [str(one) for one in advice(dialect, raw, parse(dialect, raw))] == told


@pytest.mark.parametrize(
    "raw", [MIXED, {"not": MIXED}, {"all": [{"not": MIXED}, {"any": [{"exact": {"type": "a"}}, MIXED]}]}], ids=str
)
def test_advice_on_an_expression_is_found_wherever_it_stands_and_told_once(raw: Any) -> None:
    (one,) = advice("cloudevents", raw, parse("cloudevents", raw))
    assert "parenthes" in one.sentence


def test_a_dollar_in_a_dotted_path_is_told_with_its_number() -> None:
    (one,) = projection_advice(projection("include", ["a", "$.b"]), "project.include")
    assert one.at == "project.include[1]"
    assert projection_advice(projection("include", ["a", "$.b"], "jsonpath")) == []
