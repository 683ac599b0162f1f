"""The `where` language: what is read, what is refused and where, and that printing is the opposite of parsing."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.filters.made_up import filters
from tidings.errors import FilterSyntaxError
from tidings.filters import parse, printed
from tidings.filters.algebra import AllOf, Always, AnyOf, Compare, Exists, Filter, Not, OneOf, Order, Text, TextOp, literal
from tidings.filters.paths import AttributePath, AttributeTextPath, DataPath


def eq(path: str, value: object) -> Compare:
    return Compare(DataPath((path,)), Order.EQ, literal(value))


A, B, C = eq("a", 1), eq("b", 2), eq("c", 3)
X = DataPath(("x",))

READ: list[tuple[str, Filter]] = [
    ("a = 1", A),
    ("a == 1", A),
    ("a=1", A),
    ("x <> 5", Compare(X, Order.NE, literal(5))),
    ("x >= -1.5e3", Compare(X, Order.GE, literal(Decimal(-1500)))),
    ("a = 1 and b = 2 or c = 3", AnyOf((AllOf((A, B)), C))),
    ("a = 1 and (b = 2 or c = 3)", AllOf((A, AnyOf((B, C))))),
    ("NOT a = 1 AND b = 2", AllOf((Not(A), B))),
    ("not (a = 1 and b = 2)", Not(AllOf((A, B)))),
    ("a = 1 and b = 2 and c = 3", AllOf((A, B, C))),
    ("a = 1 and (b = 2 and c = 3)", AllOf((A, AllOf((B, C))))),
    ("true or false", AnyOf((Always(True), Always(False)))),
    ('x = "say ""hi"""', Compare(X, Order.EQ, literal('say "hi"'))),
    ("x = 'it''s'", Compare(X, Order.EQ, literal("it's"))),
    (r'x matches "^\d+$"', Text(X, TextOp.REGEX, r"^\d+$")),
    (r'x like "a\*b"', Text(X, TextOp.LIKE, r"a\*b")),
    ("x in (1, 'a', true, null)", OneOf(X, (literal(1), literal("a"), literal(True), literal(None)))),
    ('x not starts with "a"', AllOf((Exists(X), Not(Text(X, TextOp.PREFIX, "a"))))),
    ("exists x", Exists(X)),
    ("x exists", Exists(X)),
    ("x is not missing", Exists(X)),
    ("not exists x", Not(Exists(X))),
    ("x not exists", Not(Exists(X))),
    ("x is missing", Not(Exists(X))),
    ('"odd name"[0]."in".and = 1', Compare(DataPath(("odd name", 0, "in", "and")), Order.EQ, literal(1))),
    ("a.And = 1", Compare(DataPath(("a", "And")), Order.EQ, literal(1))),
    ("order-id = 1", eq("order-id", 1)),
    ("größe = 1", eq("größe", 1)),
    ("[2].x exists", Exists(DataPath((2, "x")))),
    ("@type = 1", Compare(AttributePath("type"), Order.EQ, literal(1))),
    ("text(@type) = '1'", Compare(AttributeTextPath("type"), Order.EQ, literal("1"))),
    ("text = 1", eq("text", 1)),
    ("  a\n=\t1  ", A),
]


@pytest.mark.parametrize(("text", "meant"), READ)
def test_what_is_written_means(text: str, meant: Filter) -> None:
    assert parse("where", text) == meant


REFUSED = [
    ("", "column 1", "the end of the filter"),
    ("a", "column 2", "the end of the filter"),
    ("total.amount => 100", "column 15", ">"),
    ("total.amount = EU", "column 16", "EU"),
    ("a = 1 b = 2", "column 7", "b"),
    ("a = 1 and", "column 10", "the end of the filter"),
    ("(a = 1", "column 7", "the end of the filter"),
    ("a = 1)", "column 6", ")"),
    ("5 < a", "column 1", "5"),
    ("in = 1", "column 1", "in"),
    ("a in 1", "column 6", "1"),
    ("a in ()", "column 7", ")"),
    ("a in (1,)", "column 9", ")"),
    ('a = "open', "column 5", '"open'),
    ("a ~ 1", "column 3", "~"),
    ("a = 1x", "column 5", "1x"),
    ("a = .5", "column 5", "."),
    ("2nd = 1", "column 1", "2nd"),
    ("a. = 1", "column 4", "="),
    ("a[x] = 1", "column 3", "x"),
    ("a[-1] = 1", "column 3", "-1"),
    ("a[9999999999] = 1", "column 3", "9999999999"),
    ("a < true", "column 5", True),
    ("a > null", "column 5", None),
    ("a like 5", "column 8", "5"),
    (r'a like "x\"', "column 8", "x\\"),
    ('a starts "x"', "column 10", '"x"'),
    ("a is null", "column 6", "null"),
    ("a not = 1", "column 7", "="),
    ('a matches "(?=x)"', "column 11", "(?=x)"),
    (r'a matches "(x)\1"', "column 11", r"(x)\1"),
    ('a matches "x++"', "column 11", "x++"),
    ('a matches "(((a{100}){100}){100})"', "column 11", "(((a{100}){100}){100})"),
    ("@Type = 1", "column 1", "Type"),
    ("@data = 1", "column 1", "data"),
    ("@ = 1", "column 1", ""),
    ("text(a) = 1", "column 6", "a"),
    ("a = 1e99999999999999999999", "column 5", "1e99999999999999999999"),
    ("a = " + "9" * 1001, "column 5", "9" * 1001),
    ("not " * 70 + "true", "column 257", "not"),
    ("(" * 70 + "true" + ")" * 70, "column 65", "("),
    ("true or " * 501 + "true", "column 4001", "true"),
]


@pytest.mark.parametrize(("text", "at", "found"), REFUSED)
def test_a_mistake_is_told_with_its_column(text: str, at: str, found: object) -> None:
    with pytest.raises(FilterSyntaxError) as told:
        parse("where", text)
    assert (told.value.at, told.value.found) == (at, found)
    assert told.value.expected


@pytest.mark.parametrize(
    ("text", "found", "expected"), [("a = 1 && b = 2", "&&", "and"), ("a = 1 | b = 2", "|", "or"), ("!a = 1", "!", "not")]
)
def test_signs_of_other_languages_are_answered_with_the_word(text: str, found: str, expected: str) -> None:
    with pytest.raises(FilterSyntaxError) as told:
        parse("where", text)
    assert (told.value.found, told.value.expected) == (found, expected)


@pytest.mark.parametrize("raw", [None, 5, b"a = 1", {"a": 1}, "a" * 8193, 'a = "\ud800"', '"\ud800" = 1', 'a like "\ud800"'])
def test_what_is_no_short_text_is_refused(raw: object) -> None:
    with pytest.raises(FilterSyntaxError):
        parse("where", raw)


@settings(max_examples=150, deadline=None)
@given(filters)
def test_a_printed_filter_is_read_back_the_same(filter: Filter) -> None:
    assert parse("where", printed(filter)) == filter


WORDS = [
    "a",
    "@type",
    "=",
    "<",
    "in",
    "(",
    ")",
    '"x"',
    "1",
    "and",
    "or",
    "not",
    "like",
    ",",
    ".",
    "[",
    "]",
    "is",
    "missing",
    "matches",
    '"(',
]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(WORDS)).map(" ".join) | st.text())
def test_no_text_raises_anything_but_a_syntax_error(text: str) -> None:
    try:
        found = parse("where", text)
    except FilterSyntaxError as error:
        assert str(error)
    else:
        assert parse("where", printed(found)) == found


@pytest.mark.parametrize("dialect", ["sql", "", None, []])
def test_an_unknown_dialect_is_refused_with_those_that_are_known(dialect: object) -> None:
    with pytest.raises(FilterSyntaxError) as told:
        parse(dialect, "a = 1")  # type: ignore[arg-type]
    assert "where" in told.value.expected
    assert "cloudevents" in told.value.expected
