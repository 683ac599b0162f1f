"""The rules of the algebra as a table: what a condition says about a value."""

from __future__ import annotations

import pytest

from tests.builders import an_event
from tidings.errors import FilterSyntaxError
from tidings.filters import matches, parse
from tidings.filters.algebra import ITEM, Compare, Each, InNetwork, Order, Quantifier, Text, TextOp, all_of, any_of, literal
from tidings.filters.matches import test_of as condition_of
from tidings.filters.paths import AttributePath, DataPath, ScalarsPath
from tidings.filters.payload import MISSING

PAYLOAD = b"""{"text":"EU-west","one":1,"fine":1.0,"big":9007199254740993,"tenth":0.1,"yes":true,"no":false,"nothing":null,
  "empty":"","lines":"a\\nb","starred":"*x","list":[],"items":[{"sku":"a"},{"sku":"b"}],"object":{},"deep":{"er":{"x":5}},
  "odd name":7,"huge":1e400,"digits":%s}""" % (b"9" * 5000)

HOLDS = [
    # equality: same kind, same value
    'text = "EU-west"',
    "one = 1",
    "one = 1.0",
    "fine = 1",
    "yes = true",
    "nothing = null",
    'empty = ""',
    "not one = true",
    "not yes = 1",
    "not no = 0",
    'not one = "1"',
    "not nothing = false",
    'not nothing = ""',
    'not text = "eu-west"',
    # numbers are exact at any size
    "big = 9007199254740993",
    "not big = 9007199254740992",
    "big > 9007199254740992",
    "big > 9007199254740992.9",
    "big < 9007199254740993.0000001",
    "tenth = 0.1",
    "not tenth = 0.1000000000000000055511151231257827",
    "huge = 1e400",
    "huge > 1e399",
    "huge < 1.0000001e400",
    "digits > 1e4999",
    "digits < 1e5000",
    # != : there, and not equal, whatever the kind
    'text != "US"',
    "text != 1",
    "nothing != 1",
    "list != 1",
    "not absent != 1",
    "not (nothing != null)",
    # order: numbers with numbers, texts with texts
    "one < 2",
    "one <= 1",
    "one >= 1.0",
    'text > "EU"',
    'text < "F"',
    "not text > 1",
    'not one < "2"',
    "not yes > 0",
    "not nothing < 1",
    "not nothing >= 0",
    "not list < 1",
    # sets
    'one in (5, "1", 1)',
    "nothing in (1, null)",
    'not yes in (1, "true")',
    "yes in (true)",
    "one not in (true)",
    "not absent in (null)",
    "not absent not in (1)",
    "list not in (1)",
    # texts
    'text starts with "EU"',
    'text ends with "west"',
    'text contains "-w"',
    'text like "EU-*"',
    'text like "??-west"',
    'not text like "EU"',
    'not text like "?U"',
    'not text like "*-?es"',
    'not text like "EU-west?"',
    'text like "*U?w*t"',
    'lines like "a?b"',
    'lines like "a*b"',
    r'starred like "\**"',
    r'not text like "\**"',
    'not text starts with "west"',
    'not text ends with "EU"',
    'not text contains "north"',
    'not text matches "^west"',
    'text matches "^E.-"',
    'text matches "west"',
    'empty like ""',
    'empty starts with ""',
    'text contains ""',
    'not one starts with "1"',
    'not absent like "*"',
    'one not like "1"',
    'not absent not like "1"',
    'not list contains "a"',
    # missing
    "absent is missing",
    "exists nothing",
    "list exists",
    "object exists",
    "text.deeper is missing",
    "items.sku is missing",
    "items[2] is missing",
    "object[0] is missing",
    "nothing.x is missing",
    "not absent = null",
    # arrays and objects equal nothing, and are not searched
    'not items = "a"',
    "not list = null",
    'items[1].sku = "b"',
    "items[0] exists",
    "deep.er.x = 5",
    '"odd name" = 7',
    # logic is two-valued
    "not (absent = 1)",
    "absent = 1 or one = 1",
    "not (absent = 1 and one = 1)",
    "true",
    "not false",
    # attributes
    '@type = "order.created"',
    '@subject like "eu-*"',
    "@retries = 3",
    "@retries > 2",
    'not @retries = "3"',
    'text(@retries) = "3"',
    'text(@retries) starts with "3"',
    'text(@final) = "true"',
    "@final = true",
    "@traceparent is missing",
    "text(@traceparent) is missing",
]


@pytest.mark.parametrize("text", HOLDS)
def test_the_condition_holds(text: str) -> None:
    event = an_event(PAYLOAD, datacontenttype="application/json", subject="eu-5", retries=3, final=True)
    assert matches(parse("where", text), event)


@pytest.mark.parametrize(
    ("data", "attributes"),
    [
        (None, {}),
        (b"", {}),
        (b"{", {}),
        (b'{"a":1} x', {}),
        (b'{"a":1},{"a":1}', {}),
        (b"plain", {"datacontenttype": "text/plain"}),
        (b'{"a":1}', {"datacontenttype": "text/plain"}),
        (b'{"a":1}', {"base64": True}),
        (b"[1]", {}),
        (b"1", {}),
        (b"null", {}),
        (b'{"a":1,"z":' + b"[" * 600 + b"]" * 600 + b"}", {}),
        (b"[" * 100_000, {}),
    ],
)
def test_where_the_payload_is_no_json_object_every_member_is_missing(data: bytes | None, attributes: dict[str, object]) -> None:
    event = an_event(data, **attributes)  # type: ignore[arg-type]
    assert matches(parse("where", "a is missing and not a = 1 and not a != 1"), event)


@pytest.mark.parametrize("content_type", ["application/json", "text/json; charset=utf-8", "application/vnd.x+json", None])
def test_a_json_type_or_none_makes_members_of_the_payload(content_type: str | None) -> None:
    event = an_event(b'{"a":1}', **({} if content_type is None else {"datacontenttype": content_type}))
    assert matches(parse("where", "a = 1"), event)


def test_bytes_with_a_json_type_are_json_however_they_came() -> None:
    assert matches(parse("where", "a = 1"), an_event(b'{"a":1}', base64=True, datacontenttype="application/json"))


def test_what_is_broken_elsewhere_in_a_payload_does_not_matter() -> None:
    event = an_event(b'{"broken":"\xff","a":{"b":[1,2.5]},"c":"x"}')
    assert matches(parse("where", 'a.b[1] = 2.5 and c = "x" and broken is missing'), event)


def test_a_bracket_inside_a_text_is_no_level() -> None:
    assert matches(parse("where", "a = 1"), an_event(b'{"z":"' + b'[\\"' * 2000 + b'","a":1}'))


def test_a_costly_expression_costs_nothing() -> None:
    event = an_event(b'{"a":"' + b"a" * 100_000 + b'!"}')
    assert not matches(parse("where", 'a matches "(a+)+$"'), event)
    assert not matches(parse("where", 'a like "*a*a*a*a*a*a*a*a*b"'), event)


def test_true_is_not_one_as_a_value_of_a_filter() -> None:
    path = AttributePath("flag")
    assert Compare(path, Order.EQ, literal(True)) != Compare(path, Order.EQ, literal(1))
    assert Compare(path, Order.EQ, literal(1)) == Compare(path, Order.EQ, literal(1.0))
    assert len({literal(True), literal(1), literal("1")}) == 3


@pytest.mark.parametrize(
    ("over", "found", "holds"),
    [
        (Quantifier.EVERY, (), False),
        (Quantifier.EVERY, (1, 1), True),
        (Quantifier.EVERY, (1, 2), False),
        (Quantifier.SOME, (), False),
        (Quantifier.SOME, (2, 1), True),
        (Quantifier.SOME, (2, True), False),
        (Quantifier.NONE, (), True),
        (Quantifier.NONE, (2, "1"), True),
        (Quantifier.NONE, (2, 1), False),
        *((over, found, False) for over in Quantifier for found in (MISSING, None, 1, [1])),
    ],
)
def test_what_is_said_of_several_values(over: Quantifier, found: object, holds: bool) -> None:
    assert condition_of(Each(ScalarsPath("$.a"), over, Compare(ITEM, Order.EQ, literal(1))))(found) is holds


@pytest.mark.parametrize(
    ("found", "holds"),
    [("10.1.2.3", True), ("11.1.2.3", False), ("10.1.2", False), ("::1", False), ("", False), (10, False), (MISSING, False)],
)
def test_an_address_is_in_a_network_whose_own_address_has_bits_to_spare(found: object, holds: bool) -> None:
    assert condition_of(InNetwork(ITEM, "10.0.0.7/8"))(found) is holds


def test_all_of_nothing_holds_and_any_of_nothing_does_not() -> None:
    assert matches(all_of(), an_event())
    assert not matches(any_of(), an_event())


@pytest.mark.parametrize("make", [
    lambda: literal([1]),
    lambda: literal(float("nan")),
    lambda: literal("\ud800"),
    lambda: Compare(AttributePath("a"), Order.LT, literal(None)),
    lambda: Text(AttributePath("a"), TextOp.REGEX, "(?=a)"),
    lambda: Text(AttributePath("a"), TextOp.LIKE, "a\\"),
    lambda: AttributePath("Type"),
    lambda: AttributePath("data"),
    lambda: DataPath(()),
    lambda: DataPath((-1,)),
])  # fmt: skip
def test_a_filter_that_cannot_be_evaluated_cannot_be_made(make: object) -> None:
    with pytest.raises(FilterSyntaxError):
        make()  # type: ignore[operator]
