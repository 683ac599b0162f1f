"""RFC 9535 beyond its compliance suite: exact numbers, places, refusals with their columns."""

from __future__ import annotations

import json
import pickle
from decimal import Decimal
from typing import Any

import pytest

from tidings.errors import FilterSyntaxError
from tidings.filters.jsonpath import JsonPath, compile


def standard(text: str) -> JsonPath:
    return compile(text, "rfc9535")


def values(text: str, document: object) -> list[object]:
    return list(standard(text).find(document).values)


class Spelled(Decimal):
    """A number that keeps its text."""


BIG = 2**53


@pytest.mark.parametrize(
    ("selector", "numbers", "kept"),
    [
        ("$[?@ == 1]", [1, 1.0, Decimal("1.00"), True, "1", Spelled("1")], [1, 1.0, Decimal("1.00"), Spelled("1")]),
        (f"$[?@ == {BIG + 1}]", [BIG, BIG + 1, float(BIG)], [BIG + 1]),
        (f"$[?@ > {BIG}]", [BIG, Decimal(BIG) + Decimal("0.1"), BIG + 1], [Decimal(BIG) + Decimal("0.1"), BIG + 1]),
        ("$[?@ == 0.1]", [0.1, Decimal("0.1"), Decimal("0.1000000000000000055511151231257827")], [0.1, Decimal("0.1")]),
        ("$[?@ < 1e400]", [10**400, 10**400 - 1, Decimal("1e399")], [10**400 - 1, Decimal("1e399")]),
        ("$[?@ <= 1]", [float("nan"), Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), 1], [1]),
        ("$[?@ == -0]", [0, -0.0, Decimal("-0")], [0, -0.0, Decimal("-0")]),
    ],
)
def test_numbers_are_compared_exactly(selector: str, numbers: list[object], kept: list[object]) -> None:
    assert list(map(repr, values(selector, numbers))) == list(map(repr, kept))


def test_values_have_the_places_they_were_found_at() -> None:
    found = standard("$..a").find({"a": {"a": 1}, "b": [{"a": 2}]})
    assert found.values == ({"a": 1}, 1, 2)
    assert found.locations == (("a",), ("a", "a"), ("b", 0, "a"))


def test_an_index_from_the_end_is_placed_from_the_beginning() -> None:
    assert standard("$[-1]").find([1, 2]).locations == ((1,),)


@pytest.mark.parametrize(
    ("text", "definite", "singular"),
    [
        ("$", True, ()),
        ("$.a['b'][0]", True, ("a", "b", 0)),
        ("$.a[-1]", True, None),
        (f"$[{BIG - 1}]", True, None),
        ("$.a['b','c']", False, None),
        ("$..a", False, None),
        ("$.*", False, None),
        ("$[0:1]", False, None),
        ("$[?@.a]", False, None),
    ],
)
def test_a_path_says_whether_others_can_go_there_directly(text: str, definite: bool, singular: object) -> None:
    assert (standard(text).definite, standard(text).singular) == (definite, singular)


def test_a_singular_path_that_leads_nowhere_is_missing() -> None:
    assert standard("$.a").find({}).missing
    assert not standard("$.a").find({"a": None}).missing
    assert not standard("$.*").find({}).missing


@pytest.mark.parametrize(
    ("text", "column", "found"),
    [
        ("a", 1, "a"),
        ("$.a b", 4, " b"),
        ("$.", 3, "the end of the path"),
        ("$['a", 5, "the end of the path"),
        ("$[?@.a == nope(1)]", 11, "nope(1)]"),
        ("$[?@.*==1]", 4, "@.*==1]"),
        ("$[?length(@)]", 4, "length(@)]"),
        (r"$[?match(@, '(?=a)')]", 13, "(?=a)"),
        ("$[01]", 3, "01]"),
    ],
)
def test_a_refusal_says_the_column_what_was_found_and_what_would_be_right(text: str, column: int, found: str) -> None:
    with pytest.raises(FilterSyntaxError) as refused:
        standard(text)
    assert (refused.value.at, refused.value.found) == (f"column {column}", found)
    assert refused.value.expected


@pytest.mark.parametrize(
    "text", [None, 5, ["$"], "$.\ud800", "$" * 20_000, "$" + ".a" * 65, "$[?" + "(" * 50 + "@" + ")" * 50 + "]"]
)
def test_what_is_no_text_or_too_much_of_it_is_refused(text: Any) -> None:
    with pytest.raises(FilterSyntaxError):
        standard(text)


def test_an_unknown_dialect_is_refused() -> None:
    with pytest.raises(FilterSyntaxError, match="rfc9535 or jayway"):
        compile("$", "xpath")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("selector", "kept"),
    [
        (r"$[?match(@, 'a.c')]", ["abc", "a\u2028c"]),
        (r"$[?search(@, 'b')]", ["abc", "b", ".bx"]),
        (r"$[?match(@, '[a.]b.')]", ["abc", ".bx"]),
        (r"$[?match(@, '\\.bx')]", [".bx"]),
        (r"$[?match(@, 'a|abc')]", ["abc"]),
    ],
)
def test_patterns_are_regular_expressions_whose_dot_is_no_line_end(selector: str, kept: list[str]) -> None:
    assert values(selector, ["abc", "a\u2028c", "a\nc", "a\rc", "b", ".bx", 5, None]) == kept


def test_a_pattern_of_the_document_that_is_none_fits_nothing() -> None:
    assert values("$.t[?match(@, $.p)]", {"t": ["a"], "p": "("}) == []
    assert values("$.t[?match(@, $.p)]", {"t": ["a"], "p": "a"}) == ["a"]


def test_arrays_and_objects_are_compared_through_and_through() -> None:
    document = json.loads('[{"a": [1, {"b": 2.0}]}, {"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, {"a": [true, {"b": 2}]}]')
    assert values("$[?@.a == $[0].a]", document) == document[:2]


def test_a_path_travels_as_its_text() -> None:
    path = standard("$[?@.a > 1].b")
    copy = pickle.loads(pickle.dumps(path))
    assert copy == path and hash(copy) == hash(path) and copy != compile("$.b", "jayway")
    assert copy.find([{"a": 2, "b": 3}]).values == (3,)
