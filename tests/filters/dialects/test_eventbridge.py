"""Event patterns of Amazon EventBridge."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import an_event
from tests.filters.made_up import events, texts
from tests.filters.test_agreement import a_batch, plainly, routed, way
from tidings.errors import FilterSyntaxError
from tidings.events.model import Event
from tidings.filters import RouteSpec, explain, matches, parse

__all__ = ["way"]

DATA = b"""{
  "state": "running", "Path": "a/lib/b.png", "count": 5, "limit": 301.80, "huge": 9007199254740993, "flag": true,
  "nothing": null, "empty": "", "ip": "10.0.0.33", "ip6": "2001:db8::1", "star": "a*b\\\\c", "lines": "a\\nb",
  "tags": ["red", "Blue", 7, null], "deep": [["x", ["y"]], "z"], "none": [], "hollow": {}, "rows": [{"a": 1}],
  "where": {"city": "Rome", "at": {"x": 1}},
  "people": [{"first": "Anna", "last": "Smith"}, [{"first": "Peter", "last": "Jones", "age": 7}], "nobody"]
}"""
EVENT = an_event(data=DATA, type="order.created", source="/shop/4", subject="eu-5", retries=12, final=True)

HOLDS: list[Any] = [
    {"source": ["/shop/4"]},
    {"detail-type": ["order.deleted", "order.created"]},
    {"subject": [{"prefix": "eu-"}], "retries": [12], "final": [True]},
    {"retries": [{"numeric": [">", 10]}]},
    {"subject": [{"anything-but": ["us-1"]}]},
    {"absent": [{"exists": False}], "final": [{"exists": True}]},
    {"detail": {"state": ["stopped", "running"]}},
    {"detail": {"count": [5.0], "limit": [301.8], "huge": [9007199254740993]}},
    {"detail": {"flag": [True], "nothing": [None], "empty": [""]}},
    {"detail": {"tags": ["red"]}},
    {"detail": {"tags": [7], "deep": ["y"]}},
    {"detail": {"tags": [None]}},
    {"detail": {"Path": [{"prefix": "a/"}]}},
    {"detail": {"Path": [{"suffix": ".png"}]}},
    {"detail": {"Path": [{"prefix": {"equals-ignore-case": "A/LIB"}}]}},
    {"detail": {"Path": [{"suffix": {"equals-ignore-case": ".PNG"}}]}},
    {"detail": {"absent": {"$or": [{"a": [{"exists": False}]}, {"b": ["x"]}]}}},
    {"detail": {"tags": [{"equals-ignore-case": "BLUE"}]}},
    {"detail": {"Path": [{"wildcard": "*/lib/*"}]}},
    {"detail": {"star": [{"wildcard": r"a\*b\\*"}]}},
    {"detail": {"lines": [{"wildcard": "a*b"}]}},
    {"detail": {"count": [{"numeric": [">", 0, "<=", 5]}]}},
    {"detail": {"count": [{"numeric": ["=", 5]}], "limit": [{"numeric": [">=", 301.8]}]}},
    {"detail": {"ip": [{"cidr": "10.0.0.0/24"}], "ip6": [{"cidr": "2001:db8::/32"}]}},
    {"detail": {"ip": [{"cidr": "10.0.0.77/24"}]}},
    {"detail": {"state": [{"anything-but": "initializing"}]}},
    {"detail": {"state": [{"anything-but": ["stopped", 5]}]}},
    {"detail": {"count": [{"anything-but": "5"}]}},
    {"detail": {"count": [{"anything-but": {"prefix": "5"}}]}},
    {"detail": {"nothing": [{"anything-but": 5}]}},
    {"detail": {"state": [{"anything-but": {"prefix": "init"}}]}},
    {"detail": {"state": [{"anything-but": {"suffix": ["ed", "x"]}}]}},
    {"detail": {"state": [{"anything-but": {"equals-ignore-case": ["STOPPED"]}}]}},
    {"detail": {"state": [{"anything-but": {"wildcard": "*/lib/*"}}]}},
    {"detail": {"tags": [{"anything-but": ["red", "Blue"]}]}},
    {"detail": {"state": [{"exists": True}], "absent": [{"exists": False}]}},
    {"detail": {"hollow": [{"exists": False}], "where": [{"exists": False}], "none": [{"exists": False}]}},
    {"detail": {"absent": {"x": [{"exists": False}], "y": {"z": ["a", {"exists": False}]}}}},
    {"detail": {"absent": [{"exists": False}, "x"], "state": [{"exists": False}, "running"]}},
    {"detail": {"where": {"city": ["Rome"], "at": {"x": [1]}}}},
    {"detail": {"people": {"first": ["Anna"], "last": ["Smith"]}}},
    {"detail": {"people": {"first": ["Peter"], "age": [{"numeric": ["<", 10]}]}}},
    {"detail": {"people": {"first": ["Anna"], "age": [{"exists": False}]}}},
    {"$or": [{"source": ["x"]}, {"detail": {"count": [5]}}]},
    {"source": ["/shop/4"], "detail": {"$or": [{"count": [1]}, {"state": ["running"], "flag": [True]}]}},
    {"detail": {"people": {"last": ["Jones"], "$or": [{"first": ["x"]}, {"first": ["Peter"]}]}}},
]

FAILS: list[Any] = [
    {"detail": {"Path": [{"prefix": {"equals-ignore-case": "LIB"}}]}},
    {"detail": {"Path": [{"suffix": {"equals-ignore-case": "LIB"}}]}},
    {"detail": {"absent": {"$or": [{"a": ["y"]}, {"b": ["x"]}]}}},
    {"source": ["/shop/5"]},
    {"source": ["/shop/4"], "detail-type": ["x"]},
    {"retries": ["12"]},
    {"final": [1]},
    {"absent": [{"anything-but": "x"}]},
    {"subject": [{"exists": False}]},
    {"detail": {"state": ["Running"]}},
    {"detail": {"flag": [1], "count": [5]}},
    {"detail": {"count": ["5"]}},
    {"detail": {"huge": [9007199254740992]}},
    {"detail": {"absent": [None]}},
    {"detail": {"none": [{"anything-but": "x"}]}},
    {"detail": {"tags": ["blue"]}},
    {"detail": {"tags": [{"numeric": [">", 7]}]}},
    {"detail": {"count": [{"prefix": "5"}]}},
    {"detail": {"star": [{"wildcard": "a?b*"}]}},
    {"detail": {"state": [{"wildcard": "runn"}]}},
    {"detail": {"count": [{"numeric": [">", 5, "<", 9]}]}},
    {"detail": {"state": [{"numeric": ["=", 5]}]}},
    {"detail": {"ip": [{"cidr": "10.0.1.0/24"}]}},
    {"detail": {"ip6": [{"cidr": "10.0.0.0/8"}]}},
    {"detail": {"state": [{"cidr": "0.0.0.0/0"}]}},
    {"detail": {"count": [{"cidr": "0.0.0.0/0"}]}},
    {"detail": {"state": [{"anything-but": {"prefix": "run"}}]}},
    {"detail": {"where": [{"anything-but": "x"}]}},
    {"detail": {"where": [{"exists": True}]}},
    {"detail": {"rows": [{"exists": True}]}},
    {"detail": {"rows": [{"anything-but": "x"}]}},
    {"detail": {"none": [{"exists": True}]}},
    {"detail": {"state": {"x": ["a"]}}},
    {"detail": {"absent": {"x": ["a"]}}},
    {"detail": {"people": {"first": ["Anna"], "last": ["Jones"]}}},
    {"detail": {"people": {"first": ["Peter"], "age": [{"exists": False}]}}},
    {"$or": [{"source": ["x"]}, {"detail": {"count": [6]}}]},
]

NESTED: Any = ["x"]
for _ in range(40):
    NESTED = {"a": NESTED}

REFUSED: list[tuple[Any, str]] = [
    (None, "/"),
    ([], "/"),
    ({}, "/"),
    ({"source": "x"}, "/source"),
    ({"source": []}, "/source"),
    ({"source": {"a": ["x"]}}, "/source"),
    ({"Source": ["x"]}, "/Source"),
    ({"data": ["x"]}, "/data"),
    ({"detail": ["x"]}, "/detail"),
    ({"detail": {}}, "/detail"),
    ({"detail": {"a": "x"}}, "/detail/a"),
    ({"detail": {"a/b": {"c": {}}}}, "/detail/a~1b/c"),
    ({"detail": {"a": [["x"]]}}, "/detail/a/0"),
    ({"detail": {"a": ["x", {}]}}, "/detail/a/1"),
    ({"detail": {"a": [{"like": "x"}]}}, "/detail/a/0/like"),
    ({"detail": {"a": [{"prefix": "x", "suffix": "y"}]}}, "/detail/a/0"),
    ({"detail": {"a": [{"prefix": 5}]}}, "/detail/a/0/prefix"),
    ({"detail": {"a": [{"prefix": {"equals-ignore-case": 5}}]}}, "/detail/a/0/prefix/equals-ignore-case"),
    ({"detail": {"a": [{"prefix": {"wildcard": "x"}}]}}, "/detail/a/0/prefix"),
    ({"detail": {"a": [{"wildcard": "a**b"}]}}, "/detail/a/0/wildcard"),
    ({"detail": {"a": [{"wildcard": r"a\b"}]}}, "/detail/a/0/wildcard"),
    ({"detail": {"a": [{"wildcard": "a\\"}]}}, "/detail/a/0/wildcard"),
    ({"detail": {"a": [{"exists": "yes"}]}}, "/detail/a/0/exists"),
    ({"detail": {"a": [{"numeric": []}]}}, "/detail/a/0/numeric"),
    ({"detail": {"a": [{"numeric": ["!=", 5]}]}}, "/detail/a/0/numeric"),
    ({"detail": {"a": [{"numeric": ["<", 5, ">", 0]}]}}, "/detail/a/0/numeric"),
    ({"detail": {"a": [{"numeric": [">", 5, "<", 5]}]}}, "/detail/a/0/numeric"),
    ({"detail": {"a": [{"numeric": [">", "5"]}]}}, "/detail/a/0/numeric/1"),
    ({"detail": {"a": [{"numeric": [">", 1, "<", True]}]}}, "/detail/a/0/numeric/3"),
    ({"detail": {"a": [{"cidr": "10.0.0.1"}]}}, "/detail/a/0/cidr"),
    ({"detail": {"a": [{"cidr": "10.0.0/33"}]}}, "/detail/a/0/cidr"),
    ({"detail": {"a": [{"anything-but": []}]}}, "/detail/a/0/anything-but"),
    ({"detail": {"a": [{"anything-but": None}]}}, "/detail/a/0/anything-but"),
    ({"detail": {"a": [{"anything-but": {"numeric": [">", 5]}}]}}, "/detail/a/0/anything-but"),
    ({"detail": {"a": [{"anything-but": {"prefix": [5]}}]}}, "/detail/a/0/anything-but/prefix/0"),
    ({"detail": {"a": ["\ud800"]}}, "/detail/a/0"),
    ({"$or": [{"source": ["x"]}]}, "/$or"),
    ({"$or": [{"source": ["x"]}, {}]}, "/$or/1"),
    ({"detail": {"$or": [{"a": ["x"]}, {"b": "x"}]}}, "/detail/$or/1/b"),
    ({"detail": NESTED}, "/detail" + "/a" * 31),
    ({"source": ["x"] * 501}, "/source/499"),
]


@pytest.mark.parametrize("raw", HOLDS)
def test_the_pattern_holds(raw: Any) -> None:
    assert matches(parse("eventbridge", raw), EVENT)


@pytest.mark.parametrize("raw", FAILS)
def test_the_pattern_does_not_hold(raw: Any) -> None:
    assert not matches(parse("eventbridge", raw), EVENT)


@pytest.mark.parametrize(("raw", "at"), REFUSED)
def test_a_mistake_is_told_with_its_json_pointer(raw: Any, at: str) -> None:
    with pytest.raises(FilterSyntaxError) as told:
        parse("eventbridge", raw)
    assert told.value.at == at


def test_who_writes_data_is_told_that_it_is_called_detail() -> None:
    with pytest.raises(FilterSyntaxError) as told:
        parse("eventbridge", {"data": {"count": [5]}})
    assert (told.value.at, told.value.expected) == ("/data", "detail")


def test_an_explanation_names_the_field() -> None:
    told = explain(parse("eventbridge", {"source": ["/shop/4"], "detail": {"count": [{"numeric": [">", 9]}]}}), EVENT)
    assert str(told) == "no match, because\n  some value of count: (value > 9) does not hold: found 5"


def test_arrays_in_arrays_are_opened_as_deep_as_a_payload_goes() -> None:
    deep = an_event(data=b'{"a":' + b"[" * 490 + b'"x"' + b"]" * 490 + b"}")
    assert matches(parse("eventbridge", {"detail": {"a": ["x"]}}), deep)


operators = (
    st.sampled_from(["prefix", "suffix", "equals-ignore-case", "wildcard"]).flatmap(
        lambda name: texts.map(lambda text: {name: text.replace("\\", "").replace("**", "*")})
    )
    | st.sampled_from([[">", 0], ["=", 1], [">=", -1, "<", 10], ["<=", 1.5]]).map(lambda bounds: {"numeric": bounds})
    | st.booleans().map(lambda there: {"exists": there})
    | st.sampled_from(["10.0.0.0/8", "::/0"]).map(lambda network: {"cidr": network})
    | (texts | st.integers(-1, 2)).map(lambda value: {"anything-but": value})
    | texts.map(lambda text: {"anything-but": {"prefix": [text]}})
)
values = st.sampled_from([None, True, False, 0, 1, 1.5, 10]) | texts
fields = st.lists(values | operators, min_size=1, max_size=3)
members = st.recursive(
    fields,
    lambda inner: (
        st.dictionaries(st.sampled_from(["a", "b", "c", "é\n"]), inner, min_size=1, max_size=3)
        | st.lists(st.dictionaries(st.sampled_from(["a", "b"]), inner, min_size=1, max_size=2), min_size=2, max_size=2).map(
            lambda parts: {"$or": parts}
        )
    ),
    max_leaves=5,
)
patterns = st.fixed_dictionaries(
    {"detail": members.filter(lambda found: isinstance(found, dict))}, optional={"detail-type": fields, "count": fields}
) | st.dictionaries(st.sampled_from(["detail-type", "subject", "flag"]), fields, min_size=1, max_size=2)


@pytest.mark.usefixtures("way")
@settings(max_examples=100, deadline=None)
@given(raws=st.lists(patterns, min_size=1, max_size=5), published=st.lists(events(), max_size=8))
def test_the_router_agrees_about_patterns(raws: list[Any], published: list[Event]) -> None:
    specs = [RouteSpec(lane, frozenset({1}), parse("eventbridge", raw), 0) for lane, raw in enumerate(raws, 1)]
    topics = [1] * len(published)
    assert routed(specs, a_batch(published, topics)) == plainly(specs, published, topics)


@settings(max_examples=150, deadline=None)
@given(raw=patterns, event=events())
def test_an_explanation_agrees_about_patterns(raw: Any, event: Event) -> None:
    pattern = parse("eventbridge", raw)
    told = explain(pattern, event)
    assert told.holds is matches(pattern, event)
    assert str(told)
    assert told.as_json()["matches"] is told.holds


keys = st.sampled_from(["detail", "source", "a", "$or", "prefix", "numeric", "exists", "anything-but", "cidr", "wildcard"])
anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=3)
    | st.sampled_from([">", "<", "="])
    | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=2),
    max_leaves=10,
)


@settings(max_examples=300, deadline=None)
@given(anything | anything.map(lambda inner: {"detail": {"a": [inner]}}))
def test_no_input_raises_anything_but_a_syntax_error(raw: Any) -> None:
    try:
        pattern = parse("eventbridge", raw)
    except FilterSyntaxError as error:
        assert str(error)
    else:
        assert explain(pattern, EVENT).holds is matches(pattern, EVENT)
