"""Routing of Avro payloads: every way of matching agrees with the plain reading, each event by the schema that wrote it."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import an_event
from tests.filters.documents import all_filters
from tests.filters.made_up import events
from tests.filters.test_agreement import a_batch, way
from tidings.events.avro.payloads import SchemaBook
from tidings.events.avro.schema import compiled
from tidings.events.model import Event
from tidings.filters import Router, RouteSpec, explain, matches, parse
from tidings.filters.algebra import Filter

__all__ = ["way"]

_A = ["null", "string", "long", "double", "boolean", {"type": "map", "values": "string"}]
_B = {"type": "record", "name": "B", "fields": [{"name": "a", "type": ["null", "string", "bytes"]}]}
_C = {"type": "array", "items": ["null", "string", "int"]}
ONE = compiled(
    json.dumps(
        {
            "type": "record",
            "name": "R",
            "fields": [{"name": "a", "type": _A}, {"name": "b", "type": ["null", _B]}, {"name": "c", "type": _C}],
        }
    )
)
TWO = compiled(
    json.dumps(
        {"type": "record", "name": "R", "fields": [{"name": "c", "type": ["null", _C]}, {"name": "a", "type": "string"}]}
    )
)
BOOK = SchemaBook([ONE.text, TWO.text])

_texts = st.sampled_from(["a", "ab", "1", "true", "EU", "null", ""])
_values = st.none() | _texts | st.booleans() | st.sampled_from([1, 0, 1.5, 1e10]) | st.dictionaries(_texts, _texts, max_size=2)
_items = st.lists(st.none() | _texts | st.sampled_from([0, 1]), max_size=3)
_ones = st.fixed_dictionaries({"a": _values, "b": st.none() | st.fixed_dictionaries({"a": st.none() | _texts}), "c": _items})
_twos = st.fixed_dictionaries({"c": st.none() | _items, "a": _texts})


@st.composite
def avro_events(draw: st.DrawFn) -> Event:
    """Some written by the one schema, some by the other, some not Avro at all."""
    event = draw(events())
    schema = draw(st.sampled_from([ONE, ONE, TWO, None]))
    if schema is None:
        return event
    data = schema.from_value(draw(_ones if schema is ONE else _twos))
    return msgspec.structs.replace(
        event, attributes={**event.attributes, "datacontenttype": "avro/binary"}, data=data, avro=schema.fingerprint
    )


def avropath(path: str, matcher: str, **more: str) -> Filter:
    return parse("hermes", [{"type": "avropath", "path": path, "matcher": matcher, **more}])


_avro = st.builds(
    avropath,
    st.sampled_from([".a", ".b.a", ".c[0]", ".c[1]", ".b", ".c", ".a.ab", ".z"]),
    st.sampled_from(["a", "ab", "1", "true", "null", "a.*", ".*", "[ab]+", "1.0E10", r"\{.*", "1.5"]),
) | st.builds(
    lambda matcher, over: avropath(".c[*]", matcher, matchingStrategy=over),
    st.sampled_from(["a", "null", "a|b", "[a-z]+", "1"]),
    st.sampled_from(["all", "any"]),
)


@pytest.mark.usefixtures("way")
@settings(max_examples=100, deadline=None)
@given(filters=st.lists(_avro | _avro | all_filters, min_size=1, max_size=8), published=st.lists(avro_events(), max_size=10))
def test_the_router_agrees_with_the_plain_reading(filters: list[Filter], published: list[Event]) -> None:
    specs = [RouteSpec(lane, frozenset({1}), one, 0) for lane, one in enumerate(filters)]
    found = Router(specs, schemas=BOOK).route(a_batch(published, [1] * len(published)))
    assert found.aside == []
    routed = set(zip(found.lanes.tolist(), found.events.tolist(), strict=True))
    assert routed == {
        (lane, n) for lane, one in enumerate(filters) for n, event in enumerate(published) if matches(one, event, BOOK)
    }


@settings(max_examples=100, deadline=None)
@given(filter=_avro | all_filters, event=avro_events())
def test_an_explanation_agrees_with_the_plain_reading(filter: Filter, event: Event) -> None:
    assert explain(filter, event, BOOK).holds is matches(filter, event, BOOK)


def avro_event(value: object, avro: str = ONE.fingerprint) -> Event:
    return msgspec.structs.replace(an_event(ONE.from_value({"a": value, "b": None, "c": []})), avro=avro)


@pytest.mark.usefixtures("way")
def test_an_event_is_decoded_once_for_all_filters(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[bytes] = []
    value = type(ONE).value
    monkeypatch.setattr(type(ONE), "value", lambda self, data: decoded.append(data) or value(self, data))
    specs = [RouteSpec(n, frozenset({1}), avropath(f".{'abc'[n % 3]}", f"{n}"), 0) for n in range(60)]
    found = Router(specs, schemas=BOOK).route(a_batch([avro_event("0"), avro_event("3")], [1, 1]))
    assert found.lanes.tolist() == [0, 3]
    assert len(decoded) == 2


@pytest.mark.usefixtures("way")
def test_an_event_whose_schema_is_not_known_is_set_aside() -> None:
    specs = [RouteSpec(n, frozenset({1}), avropath(".a", f"{n}"), 0) for n in range(20)]
    found = Router(specs, schemas=BOOK).route(a_batch([avro_event("1", "0" * 16), avro_event("1")], [1, 1]))
    assert list(zip(found.lanes.tolist(), found.events.tolist(), strict=True)) == [(1, 1)]
    (aside,) = found.aside
    assert (aside.event, aside.lane) == (0, None)
    assert "the Avro schema 0000000000000000 that it was written by is not known" in aside.reason


def test_schemas_that_come_later_are_known_to_routes_that_are_compiled_already() -> None:
    book = SchemaBook()
    router = Router([RouteSpec(1, frozenset({1}), avropath(".a", "1"), 0)], schemas=book)
    batch = a_batch([avro_event("1")], [1])
    assert router.route(batch).aside
    book.add([ONE.text])
    assert router.updated([RouteSpec(1, frozenset({1}), avropath(".a", "1"), 0)]).route(batch).lanes.tolist() == [1]


@pytest.mark.parametrize(
    ("where", "matches_it"),
    [("a = 1.5", True), ("a > 1", True), ("a = '1.5'", False), ("z = 1", False)],
)
def test_other_filters_see_an_avro_payload_as_json(where: str, matches_it: bool) -> None:
    written = parse("where", where)
    assert matches(written, avro_event(1.5), BOOK) is matches_it
    assert matches(parse("horizon", {"eq": {"field": "$.a", "value": "x"}}), avro_event("x"), BOOK)
