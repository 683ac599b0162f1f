"""Filters of the CloudEvents Subscriptions API (SUB-03, SUB-04, SUB-10 to SUB-12); `sql` is in test_cesql."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import an_event
from tidings.errors import FilterSyntaxError
from tidings.filters import matches, parse, printed

EVENT = an_event(type="order.created", subject="eu-5", retries=12, final=True)

HOLDS: list[Any] = [
    [],
    {"exact": {"type": "order.created"}},
    {"exact": {"type": "order.created", "subject": "eu-5"}},
    {"prefix": {"subject": "eu-"}},
    {"suffix": {"type": ".created", "subject": "5"}},
    {"exact": {"retries": "12"}},
    {"prefix": {"retries": "1"}},
    {"exact": {"final": "true"}},
    {"not": {"exact": {"type": "Order.Created"}}},
    {"not": {"exact": {"absent": "x"}}},
    {"any": [{"exact": {"type": "x"}}, {"exact": {"subject": "eu-5"}}]},
    {"all": [{"not": {"any": [{"prefix": {"subject": "us"}}]}}]},
    [{"exact": {"type": "order.created"}}, {"prefix": {"subject": "eu"}}],
]

FAILS: list[Any] = [
    {"exact": {"type": "order.created", "subject": "eu-6"}},
    {"exact": {"type": "order"}},
    {"prefix": {"subject": "EU"}},
    {"exact": {"absent": "x"}},
    {"exact": {"retries": "012"}},
    {"all": [{"exact": {"type": "order.created"}}, {"exact": {"subject": "x"}}]},
    [{"exact": {"type": "order.created"}}, {"prefix": {"subject": "us"}}],
]


@pytest.mark.parametrize("raw", HOLDS)
def test_the_filter_holds(raw: Any) -> None:
    assert matches(parse("cloudevents", raw), EVENT)


@pytest.mark.parametrize("raw", FAILS)
def test_the_filter_does_not_hold(raw: Any) -> None:
    assert not matches(parse("cloudevents", raw), EVENT)


def nested(levels: int) -> Any:
    raw: Any = {"exact": {"type": "x"}}
    for _ in range(levels - 1):
        raw = {"not": raw}
    return raw


REFUSED: list[tuple[Any, str]] = [
    (None, "/"),
    ("type = 1", "/"),
    ({}, "/"),
    ({"exact": {"type": "a"}, "prefix": {"type": "a"}}, "/"),
    ({"sql": {"type": "a"}}, "/sql"),
    ({"a/b~c": 1}, "/a~1b~0c"),
    ([{"all": [{"exact": {"type": "a"}}, {"like": {}}]}], "/0/all/1/like"),
    ({"exact": {}}, "/exact"),
    ({"exact": []}, "/exact"),
    ({"exact": {"type": ""}}, "/exact/type"),
    ({"exact": {"type": 5}}, "/exact/type"),
    ({"exact": {"": "a"}}, "/exact/"),
    ({"exact": {"Type": "a"}}, "/exact/Type"),
    ({"prefix": {"data": "a"}}, "/prefix/data"),
    ({"exact": {"type": "\ud800"}}, "/exact/type"),
    ({"all": []}, "/all"),
    ({"any": {"exact": {"type": "a"}}}, "/any"),
    ({"not": [{"exact": {"type": "a"}}]}, "/not"),
    (nested(33), "/not" * 32),
    ({"any": [{"exact": {"type": "a"}}] * 250}, "/any/249/exact/type"),
]


@pytest.mark.parametrize(("raw", "at"), REFUSED)
def test_a_mistake_is_told_with_its_json_pointer(raw: Any, at: str) -> None:
    with pytest.raises(FilterSyntaxError) as told:
        parse("cloudevents", raw)
    assert told.value.at == at


def test_a_filter_as_large_as_allowed_is_read() -> None:
    assert parse("cloudevents", nested(32))
    with pytest.raises(FilterSyntaxError):
        parse("cloudevents", {"exact": {"type": "a" * (64 << 10)}})


def test_a_filter_that_contains_itself_is_refused() -> None:
    raw: dict[str, Any] = {}
    raw["not"] = raw
    with pytest.raises(FilterSyntaxError):
        parse("cloudevents", raw)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.binary(max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["exact", "prefix", "suffix", "all", "any", "not", "type", "x"]), inner, max_size=2)
    ),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(anything)
def test_no_input_raises_anything_but_a_syntax_error(raw: Any) -> None:
    try:
        found = parse("cloudevents", raw)
    except FilterSyntaxError as error:
        assert str(error)
    else:
        assert parse("where", printed(found)) == found
