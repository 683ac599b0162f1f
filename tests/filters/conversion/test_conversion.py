"""A filter that is written in another dialect decides as before, but where a difference is told."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.filters.cesql.made_up import accepted_expressions
from tests.filters.documents import hermes as hermes_chains
from tests.filters.documents import horizon, simple, vng
from tests.filters.made_up import events, filters, texts
from tidings.errors import FilterSyntaxError
from tidings.events.model import Event
from tidings.filters import matches, parse, printed
from tidings.filters.conversion import TARGETS, Converted, convert
from tidings.filters.conversion.plain_form import ARRAYS_OPENED, SCALARS_ONLY, TEXTS_ONLY
from tidings.filters.payload import MISSING, PayloadReader

ATTRIBUTES = ("type", "subject", "flag", "count", "datacontenttype")

pairs = st.dictionaries(st.sampled_from(ATTRIBUTES), texts.filter(bool), min_size=1, max_size=2)
subscription_filters: st.SearchStrategy[Any] = st.recursive(
    st.builds(lambda word, inner: {word: inner}, st.sampled_from(["exact", "prefix", "suffix"]), pairs)
    | accepted_expressions.map(lambda text: {"sql": text}),
    lambda inner: (
        st.builds(lambda word, parts: {word: parts}, st.sampled_from(["all", "any"]), st.lists(inner, min_size=1, max_size=3))
        | inner.map(lambda part: {"not": part})
    ),
    max_leaves=5,
)
alternatives: st.SearchStrategy[Any] = st.one_of(
    texts,
    st.integers(-2, 11),
    st.booleans().map(lambda there: {"exists": there}),
    texts.map(lambda text: {"prefix": text}),
    texts.map(lambda text: {"anything-but": text}),
    st.just({"numeric": [">", 0, "<=", 10]}),
    st.just({"wildcard": "a*b"}),
)
fields = st.lists(alternatives, min_size=1, max_size=2)
patterns: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {},
    optional={
        "detail-type": fields,
        "count": fields,
        "detail": st.fixed_dictionaries({"a": fields}) | st.fixed_dictionaries({"b": st.fixed_dictionaries({"a": fields})}),
    },
).filter(bool)

WRITTEN: dict[str, st.SearchStrategy[Any]] = {
    "where": filters.map(printed),
    "cesql": accepted_expressions,
    "cloudevents": subscription_filters,
    "vng": vng,
    "horizon": horizon,
    "horizon-simple": simple,
    "hermes": hermes_chains,
    "eventbridge": patterns,
}


@pytest.mark.parametrize("target", sorted(TARGETS))
@pytest.mark.parametrize("source", sorted(WRITTEN))
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_converted_filter_decides_as_before(source: str, target: str, data: st.DataObject) -> None:
    raw = data.draw(WRITTEN[source])
    try:
        converted = convert(source, raw, target)
    except FilterSyntaxError as refusal:
        assert str(refusal)
        return
    event = data.draw(events())
    assume(not _touched(converted, event))
    before, after = parse(source, raw), parse(target, converted.filter)
    assert matches(before, event) is matches(after, event), (raw, converted.filter, event)


def _touched(converted: Converted, event: Event) -> bool:
    """Whether a difference that was told applies to this event."""
    payload = PayloadReader(event.data)
    for difference in converted.differences:
        steps = difference.place.steps
        around = [payload.at(steps[:length]) for length in range(1, len(steps))]
        found = payload.at(steps)
        if isinstance(payload.document(), list) or any(isinstance(one, list) for one in around):
            return True
        if found is MISSING:
            continue
        if difference.kind in (SCALARS_ONLY, ARRAYS_OPENED) and (found is None or isinstance(found, (list, dict))):
            return True
        if difference.kind == TEXTS_ONLY and not isinstance(found, str):
            return True
        if isinstance(found, str) and any(ord(sign) > 0xFFFF for sign in found):
            return True
    return False


LOGICAL = """
(
  domain = "nl.vng.zaken"
  and
  (
    type = "nl.vng.zaken.status_gewijzigd"
    or
    type = "nl.vng.zaken.zaak_gesloten"
  )
)

or

(
  domain = "nl.vng.documenten"
  and
  vertrouwelijkheid = "normaal"
)
"""
AS_JSON = {
    "any": [
        {
            "all": [
                {"exact": {"domain": "nl.vng.zaken"}},
                {
                    "any": [
                        {"exact": {"type": "nl.vng.zaken.status_gewijzigd"}},
                        {"exact": {"type": "nl.vng.zaken.zaak_gesloten"}},
                    ]
                },
            ]
        },
        {"exact": {"domain": "nl.vng.documenten", "vertrouwelijkheid": "normaal"}},
    ]
}


@pytest.mark.parametrize("source", ["logical", "cesql"])
def test_vt_37_the_logical_expression_of_the_text_gives_exactly_its_json(source: str) -> None:
    assert json.dumps(convert(source, LOGICAL, "vng").filter) == json.dumps(AS_JSON)


def test_vt_37_and_back() -> None:
    back = convert("vng", AS_JSON, "where").filter
    assert json.dumps(convert("where", back, "vng").filter) == json.dumps(AS_JSON)
    assert json.dumps(convert("cesql", convert("vng", AS_JSON, "cesql").filter, "vng").filter) == json.dumps(AS_JSON)


SAID: list[tuple[str, Any, str, Any]] = [
    ("where", '@type = "a" and @subject = "b"', "cloudevents", {"exact": {"type": "a", "subject": "b"}}),
    ("where", '@type = "a" and not @type = "b"', "vng", {"all": [{"exact": {"type": "a"}}, {"not": {"exact": {"type": "b"}}}]}),
    ("where", '@type in ("a", "b")', "vng", {"any": [{"exact": {"type": "a"}}, {"exact": {"type": "b"}}]}),
    ("where", '@type like "a*"', "cloudevents", {"prefix": {"type": "a"}}),
    ("where", "@subject exists", "cloudevents", {"sql": "EXISTS subject"}),
    ("where", "true", "cloudevents", []),
    ("where", '@type = "a" or @subject starts with "b"', "cesql", "type = 'a' OR subject LIKE 'b%'"),
    ("where", '@subject = "b" or @type = "a"', "cesql", "(EXISTS subject AND subject = 'b') OR type = 'a'"),
    ("where", 'not @subject = "it\'s"', "cesql", "NOT (EXISTS subject AND subject = 'it\\'s')"),
    ("where", '@type ends with "100%"', "cesql", "type LIKE '%100\\%'"),
    ("cesql", "type LIKE 'a_%'", "where", 'text(@type) like "a?*"'),
    ("cesql", "type = 'a' XOR type = 'b'", "where", None),
    ("where", 'a.b = "x" and c[0] >= 2', "horizon", None),
    ("where", 'region in ("EU", "U+")', "hermes", [{"type": "jsonpath", "path": "$.region", "matcher": r"EU|U\+"}]),
    ("where", "n >= 1 and n < 5", "eventbridge", {"detail": {"n": [{"numeric": [">=", 1, "<", 5]}]}}),
    ("where", 'text(@count) = "5"', "eventbridge", {"count": ["5", 5]}),
    ("horizon", {"eq": {"field": "$.a", "value": 5}}, "where", "a = 5"),
    ("hermes", [{"type": "jsonpath", "path": "$.a", "matcher": "x.*"}], "where", r'a matches "\A(?:x.*)\z"'),
    ("eventbridge", {"detail": {"a": {"b": ["x"]}}}, "where", 'a.b = "x"'),
    ("horizon", {"eq": {"field": "$.a", "value": "x"}}, "hermes", [{"type": "jsonpath", "path": "$.a", "matcher": "x"}]),
]


@pytest.mark.parametrize(("source", "raw", "target", "said"), SAID)
def test_what_can_be_said_is_said(source: str, raw: Any, target: str, said: Any) -> None:
    written = convert(source, raw, target).filter
    assert said is None or written == said
    parse(target, written)


REFUSED: list[tuple[str, Any, str, str]] = [
    ("where", "total > 5", "cloudevents", "an attribute is written @name"),
    ("where", "total > 5", "cesql", "an attribute is written @name"),
    ("where", '@flag = "a"', "vng", "write text(@flag)"),
    ("where", '@subject contains "a"', "vng", "whole texts, prefixes and suffixes"),
    ("where", '@type matches "a"', "cesql", "no regular expressions"),
    ("where", '@type = "a"', "horizon", "not at attributes"),
    ("where", '@type = "a"', "hermes", "not at attributes"),
    ("where", "a is missing", "horizon", "where the place is missing"),
    ("where", "a = null", "horizon", "null is no value"),
    ("where", 'a = "x" or b = "y"', "hermes", "alternatives at one place"),
    ("where", 'c[0] = "x"', "eventbridge", "one element of an array"),
    ("where", 'a matches "x"', "eventbridge", "no regular expressions"),
    ("where", 'a starts with "x" and a ends with "y"', "eventbridge", "asked twice"),
    ("hermes", [{"type": "header", "header": "Trace-Id", "matcher": "x"}], "where", "only its own dialect"),
    ("horizon", {"ct": {"field": "$.a", "value": 5}}, "where", "only its own dialect"),
    ("eventbridge", {"detail": {"ip": [{"cidr": "10.0.0.0/8"}]}}, "horizon", "only its own dialect"),
    ("cesql", "LENGTH(subject) > 3", "where", "no other dialect has"),
    ("cesql", "retries = 5", "vng", "no other dialect has"),
    ("where", "a =", "vng", "a value is missing"),
    ("logical", "domain = 5", "vng", "compared as text"),
    ("logical", "domain.x", "vng", "operator is missing"),
    ("nosuch", "a", "vng", "not known"),
    ("where", "true", "nosuch", "no filter is written"),
]


@pytest.mark.parametrize(("source", "raw", "target", "reason"), REFUSED)
def test_what_cannot_be_said_is_refused_with_the_reason(source: str, raw: Any, target: str, reason: str) -> None:
    with pytest.raises(FilterSyntaxError, match=r".") as told:
        convert(source, raw, target)
    assert reason in str(told.value)


def test_differences_are_told_with_their_place() -> None:
    (only,) = convert("where", 'a.b = "x"', "horizon").differences
    assert str(only).startswith("a.b: an array counts")
    assert convert("where", '@type = "x"', "vng").differences == ()
