"""What CESQL expressions give: the rows of the specification that the conformance kit does not reach (CT-16 among them)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.filters.cesql.made_up import expressions, nonsense
from tests.filters.made_up import events
from tidings.errors import FilterSyntaxError
from tidings.events.model import Event
from tidings.filters.cesql import Error, accepted, evaluate, parse, passes, steps

ATTRIBUTES: dict[str, Any] = {
    "specversion": "1.0",
    "id": "1",
    "source": "/s",
    "type": "order",
    "count": 5,
    "flag": True,
    "text": "a\nb",
    "2nd": "second",
}

GIVES: list[tuple[str, Any]] = [
    ("4-1", 3),
    ("4 -1", 3),
    ("--10", 10),
    ("-2147483648", -2147483648),
    ("- 5", -5),
    ("+5", 5),
    ("007", 7),
    ("7 - -1", 8),
    ("10 - 4 - 3", 3),
    ("-7 / 2", -3),
    ("-7 % 2", -1),
    ("7 % -2", 1),
    ("2 + 3 * 4", 14),
    ("true OR false AND false", False),
    ("FALSE AND nosuch = 'x'", False),
    ("TRUE OR nosuch = 'x'", True),
    ("TRUE XOR TRUE", False),
    ("1 IN (1, missing)", True),
    ("1 NOT IN (2, 3)", True),
    ("1 NOT IN (2, 1)", False),
    ("type NOT LIKE 'x%'", True),
    ("NOT count LIKE 'x'", False),
    ("NOT 0 = 5", False),
    ("-count LIKE '-5'", True),
    ("NOT EXISTS missing", True),
    ("EXISTS 2nd", True),
    ("2nd = 'second'", True),
    ("EXISTS data", False),
    ("NOT count = TRUE", False),
    ("NOT flag LIKE 'fal%'", True),
    ("5 = TRUE", True),
    ("TRUE = 1", True),
    ("'5' = count", True),
    ("count = '5'", True),
    ("count = '05'", False),
    ("text LIKE 'a%b'", True),
    ("text LIKE 'a_b'", True),
    (r"'a*b' LIKE 'a*b'", True),
    (r"'axb' LIKE 'a*b'", False),
    (r"'a?' LIKE 'a_'", True),
    (r"'it''s'", "it''s"),
    (r"'a\\b'", r"a\\b"),
    (r'"a\"b"', 'a"b'),
    (r"'a\"b'", r"a\"b"),
    ("'a' IN ('b', 'a') IN (TRUE)", True),
    ("LENGTH('𝄞é')", 2),
    ("TRIM('\u2003\x1c a \t')", "\x1c a"),
    ("RIGHT('abc', 0)", ""),
    ("SUBSTRING('abc', 2, 99)", "bc"),
    ("SUBSTRING('abc', -3)", "abc"),
    ("substring ('abc', 1, 0)", ""),
    ("CONCAT(count, flag)", "5true"),
    ("ABS(-3)", 3),
    ("INT(FALSE)", 0),
]

FAILS: list[tuple[str, Any, Error]] = [
    ("2147483647 + 1", 0, Error.MATH),
    ("-2147483648 - 1", 0, Error.MATH),
    ("65536 * 65536", 0, Error.MATH),
    ("-2147483648 / -1", 0, Error.MATH),
    ("-(-2147483648)", 0, Error.MATH),
    ("-2147483648 % 0", 0, Error.MATH),
    ("ABS(-2147483648)", 2147483647, Error.MATH),
    ("ABS(-2147483648) + 1", 0, Error.MATH),
    ("missing", False, Error.MISSING_ATTRIBUTE),
    ("data", False, Error.MISSING_ATTRIBUTE),
    ("missing * 5", 0, Error.MISSING_ATTRIBUTE),
    ("missing = ''", False, Error.MISSING_ATTRIBUTE),
    ("missing != ''", False, Error.MISSING_ATTRIBUTE),
    ("missing NOT LIKE 'x'", False, Error.MISSING_ATTRIBUTE),
    ("missing NOT IN (1)", False, Error.MISSING_ATTRIBUTE),
    ("1 NOT IN (2, missing)", False, Error.MISSING_ATTRIBUTE),
    ("1 IN ('x', 1)", False, Error.CAST),
    ("1 / missing", 0, Error.MISSING_ATTRIBUTE),
    ("missing OR TRUE", False, Error.MISSING_ATTRIBUTE),
    ("LOWER(missing)", "", Error.MISSING_ATTRIBUTE),
    ("'x' + missing", 0, Error.MISSING_ATTRIBUTE),
    ("'x' = 5", False, Error.CAST),
    ("'abc' < 'abd' = FALSE OR TRUE", False, Error.CAST),
    ("'x' AND FALSE", False, Error.CAST),
    ("' 1' + 1", 0, Error.CAST),
    ("'1_0' + 1", 0, Error.CAST),
    ("'٣' + 1", 0, Error.CAST),
    ("'2147483648' + 0", 0, Error.CAST),
    ("LEFT('abc', 'x')", "", Error.CAST),
    ("LEFT('abc', -2)", "abc", Error.FUNCTION_EVALUATION),
    ("LENGTH(LEFT('abc', -2))", 0, Error.FUNCTION_EVALUATION),
    ("LEFT('abc', -2) = 'abc'", False, Error.FUNCTION_EVALUATION),
    ("SUBSTRING('abc', 1, -1)", "", Error.FUNCTION_EVALUATION),
    ("SUBSTRING('abc', 4)", "", Error.FUNCTION_EVALUATION),
    ("NOSUCH(1)", False, Error.MISSING_FUNCTION),
    ("NOSUCH(missing)", False, Error.MISSING_FUNCTION),
    ("LENGTH()", False, Error.MISSING_FUNCTION),
    ("LENGTH('a', 'b')", False, Error.MISSING_FUNCTION),
    ("NOT NOSUCH()", False, Error.MISSING_FUNCTION),
]


@pytest.mark.parametrize(("text", "expected"), GIVES)
def test_the_expression_gives_a_value(text: str, expected: Any) -> None:
    value, error = evaluate(parse(text), ATTRIBUTES)
    assert (value, type(value), error) == (expected, type(expected), None)


@pytest.mark.parametrize(("text", "expected", "kind"), FAILS)
def test_the_expression_gives_a_value_and_an_error(text: str, expected: Any, kind: Error) -> None:
    value, error = evaluate(parse(text), ATTRIBUTES)
    assert (value, type(value), error) == (expected, type(expected), kind)


def test_not_binds_closer_than_any_operator_between() -> None:
    attributes = {"a": 0, "b": 5}
    assert evaluate(parse("NOT a = b"), attributes) == (False, None)
    assert evaluate(parse("(NOT a) = b"), attributes) == (False, None)
    assert evaluate(parse("NOT (a = b)"), attributes) == (True, None)


def test_only_true_without_an_error_passes() -> None:
    assert passes(parse("type = 'order'"), ATTRIBUTES)
    assert not passes(parse("1"), ATTRIBUTES)
    assert not passes(parse("'true'"), ATTRIBUTES)
    assert not passes(parse("missing = 'x' OR type = 'order'"), ATTRIBUTES)
    assert passes(parse("type = 'order' OR missing = 'x'"), ATTRIBUTES)


def test_an_expression_cannot_make_a_small_event_large() -> None:
    text = "LENGTH(CONCAT(" + ", ".join(["text"] * 600) + ")) > 0"
    assert evaluate(parse(text), {"text": "x" * 4000}) == (False, Error.FUNCTION_EVALUATION)


def test_a_long_chain_is_evaluated() -> None:
    assert evaluate(parse("1" + "+1" * 2000), {}) == (2001, None)
    assert evaluate(parse("1" + " IN (1)" * 500), {}) == (True, None)
    assert len(steps(parse("0" + "+1" * 2000), ())) == 2000


@pytest.mark.parametrize(
    "text", ["(" * 99 + "1" + ")" * 99, "NOT " * 99 + "TRUE", "-(" * 49 + "x" + ")" * 49, "ABS(" * 99 + "1" + ")" * 99]
)
def test_the_deepest_expression_allowed_is_evaluated(text: str) -> None:
    assert evaluate(parse(text), {"x": 1})[1] is None
    with pytest.raises(FilterSyntaxError):
        parse(f"(({text}))")


REFUSED: list[tuple[str, str]] = [
    ("", "column 1"),
    ("   ", "column 4"),
    ("a b", "column 3"),
    ("+x", "column 1"),
    ("+ 5", "column 1"),
    ("a =", "column 4"),
    ("x LIKE 5", "column 8"),
    ("x LIKE y", "column 8"),
    ("1 IN ()", "column 7"),
    ("1 IN 1", "column 6"),
    ("1 NOT 2", "column 3"),
    ("EXISTS 5", "column 8"),
    ("EXISTS TRUE", "column 8"),
    ("EXISTS 'a'", "column 8"),
    ("EXISTS f(1)", "column 8"),
    ("a_b", "column 1"),
    ("1_0", "column 1"),
    ("f1(2)", "column 3"),
    ("(1", "column 3"),
    ("1)", "column 2"),
    ("ABC(", "column 5"),
    ("f(1,)", "column 5"),
    ("'abc", "column 1"),
    ("'''", "column 1"),
    (r"'a\'", "column 1"),
    ("2147483648", "column 1"),
    ("-2147483649", "column 1"),
    ("9" * 4000, "column 1"),
    ("a == 1", "column 4"),
    ("a\u00a0= 1", "column 2"),
    ("é = 1", "column 1"),
    ("1 " * 2049, "column 4097"),
]


@pytest.mark.parametrize(("text", "column"), REFUSED)
def test_what_cannot_be_parsed_is_refused_with_its_column(text: str, column: str) -> None:
    with pytest.raises(FilterSyntaxError) as told:
        parse(text)
    assert told.value.at == column


def test_a_filter_may_not_use_a_function_that_does_not_exist() -> None:
    for text in ("TRUE OR NOSUCH(1)", "TRUE OR LENGTH()"):
        with pytest.raises(FilterSyntaxError) as told:
            accepted(text)
        assert told.value.at == "column 9"


@pytest.mark.parametrize("raw", [None, 5, True, [], {}, b"TRUE", "\ud800"])
def test_what_is_no_text_is_refused(raw: object) -> None:
    with pytest.raises(FilterSyntaxError):
        parse(raw)


def test_mixed_logic_without_parentheses_is_told() -> None:
    assert parse("a AND b AND c").lint == ()
    assert parse("a AND (b OR c)").lint == ()
    assert parse("(a XOR b) AND c").lint == ()
    (sentence,) = parse("a AND b OR c").lint
    assert "AND is followed by OR at column 9" in sentence
    assert len(parse("a AND (b OR c XOR d) OR e").lint) == 2


def test_the_parts_are_told_as_far_as_they_were_evaluated() -> None:
    told = steps(parse("LENGTH(type) > 3 AND missing = 'x' AND flag"), ("order", None, True))
    assert [(step.text, step.value, step.error) for step in told] == [
        ("type", "order", None),
        ("LENGTH(type)", 5, None),
        ("LENGTH(type) > 3", True, None),
        ("missing", False, Error.MISSING_ATTRIBUTE),
        ("LENGTH(type) > 3 AND missing = 'x'", False, Error.MISSING_ATTRIBUTE),
        ("LENGTH(type) > 3 AND missing = 'x' AND flag", False, Error.MISSING_ATTRIBUTE),
    ]


@settings(max_examples=300, deadline=None)
@given(text=expressions, event=events())
def test_evaluation_is_total_and_agrees_with_its_parts(text: str, event: Event) -> None:
    expression = parse(text)
    value, error = evaluate(expression, event.attributes)
    assert type(value) in (bool, int, str)
    assert passes(expression, event.attributes) is (value is True and error is None)
    last = steps(expression, tuple(map(event.attributes.get, expression.names)))[-1]
    assert (last.value, last.error) == (value, error)
    assert last.text.strip("()") in text


@settings(max_examples=300, deadline=None)
@given(text=nonsense | st.binary(max_size=3))
def test_parsing_raises_nothing_but_a_syntax_error(text: str | bytes) -> None:
    try:
        expression = parse(text)
    except FilterSyntaxError as error:
        assert str(error)
    else:
        assert evaluate(expression, ATTRIBUTES)
