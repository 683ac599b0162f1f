"""Hermes' filter chains (HER-113 to HER-125): what each filter means, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from tests.builders import an_event
from tidings.errors import FilterSyntaxError
from tidings.events.avro.payloads import SchemaBook
from tidings.events.avro.schema import compiled
from tidings.filters import explain, matches, parse

EVENT = msgspec.structs.replace(
    an_event(
        b'{"name":"Bob","age":42,"price":0.55,"big":1e10,"ok":true,"no":null,"tags":["a","b"],"mixed":["a",null],'
        b'"o":{"a":1,"b":"x","name":"Eve"},"items":[{"id":"5007","n":1},{"id":"6","n":2}],"lines":"a\\nb","empty":[]}'
    ),
    transport={"trace-id": "vte12"},
)


def by_path(path: str, matcher: str, **more: str) -> dict[str, str]:
    return {"type": "jsonpath", "path": path, "matcher": matcher, **more}


HOLDS: list[Any] = [
    [],
    [by_path("$.name", "Bob")],
    [by_path("$.name", "^B.b$")],
    [by_path("name", "Bob")],
    [by_path("$.age", "42")],
    [by_path("$.price", "0.55")],
    [by_path("$.big", r"1\.0E10")],
    [by_path("$.ok", "true")],
    [by_path("$.tags", r'\["a","b"\]')],
    [by_path("$.o", r"\{a=1, b=x, name=Eve\}")],
    [by_path("$.tags[*]", "[ab]")],
    [by_path("$.tags[*]", "a", matchingStrategy="ANY")],
    [by_path("$.mixed[*]", "a", matchingStrategy="any")],
    [by_path(".name", "Bob|Eve")],
    [by_path("$.items[?(@.id == '5007')].n", "1")],
    [by_path("$.empty", r"\[\]")],
    [{"type": "header", "header": "Trace-Id", "matcher": "vte.*"}, by_path("$.name", "Bob")],
]

FAILS: list[Any] = [
    [by_path("$.name", "Bo")],
    [by_path("$.name", "bob")],
    [by_path("$.lines", "a.b")],
    [by_path("$.tags[*]", "a")],
    [by_path("$.tags[*]", "c", matchingStrategy="any")],
    [by_path("$.mixed[*]", ".*")],
    [by_path(".name", "Bob")],
    [by_path("$.no", ".*")],
    [by_path("$.absent", ".*")],
    [by_path("$..absent", ".*", matchingStrategy="any")],
    [by_path("$.empty[*]", ".*")],
    [by_path("$.tags.length()", ".*")],
    [{"type": "header", "header": "absent", "matcher": ".*"}],
    [by_path("$.name", "Bob"), by_path("$.age", "41")],
    [{"type": "avropath", "path": ".name", "matcher": ".*"}],
]


@pytest.mark.parametrize("chain", HOLDS)
def test_it_passes(chain: list[Any]) -> None:
    assert matches(parse("hermes", chain), EVENT)


@pytest.mark.parametrize("chain", FAILS)
def test_it_does_not_pass(chain: list[Any]) -> None:
    assert not matches(parse("hermes", chain), EVENT)


def test_a_body_that_is_no_json_has_no_values_but_headers() -> None:
    plain = msgspec.structs.replace(EVENT, data=b"Some text")
    assert not matches(parse("hermes", [by_path("$..*", ".*", matchingStrategy="any")]), plain)
    assert matches(parse("hermes", [{"type": "header", "header": "TRACE-ID", "matcher": "vte12"}]), plain)


ACTOR = {
    "type": "record",
    "name": "Actor",
    "fields": [{"name": "n", "type": "string"}, {"name": "w", "type": {"type": "array", "items": "string"}}],
}
CAKE = compiled(
    json.dumps(
        {
            "type": "record",
            "name": "Cake",
            "fields": [
                {"name": "id", "type": "string"},
                {"name": "no", "type": ["null", "int"]},
                {"name": "deco", "type": {"type": "map", "values": "boolean"}},
                {"name": "cast", "type": {"type": "array", "items": ACTOR}},
                {"name": "ppu", "type": "double"},
                {"name": "raw", "type": "bytes"},
            ],
        }
    )
)
AVRO = CAKE.from_json(
    b'{"id":"1","no":null,"deco":{"frosting":true},"cast":[{"n":"A","w":["x","y"]},{"n":"B","w":[]}],"ppu":0.5,"raw":"\\u00ff"}'
)


@pytest.mark.parametrize(
    ("path", "matcher", "passes"),
    [
        (".id", "1", True),
        ("id", "1", True),
        (".deco.frosting", "true", True),
        (".ppu", r"0\.5", True),
        (".raw", "ÿ", True),
        (".cast[*].n", "[AB]", True),
        (".cast[*].n", "A", False),
        (".cast[1].n", "B", True),
        (".cast[*].w[*]", "x|y", True),
        (".absent", "null", True),
        (".no", "null", True),
        (".cast[9]", "null", True),
        (".deco.absent", "null", True),
        (".absent.x", ".*", False),
        (".absent[0]", ".*", False),
        (".no.x", ".*", False),
        (".id.x", ".*", False),
        (".cast[9].n", ".*", False),
        (".id[*]", ".*", False),
    ],
)
def test_a_path_into_avro(path: str, matcher: str, passes: bool) -> None:
    chain = parse("hermes", [{"type": "avropath", "path": path, "matcher": matcher}])
    event = msgspec.structs.replace(an_event(AVRO), avro=CAKE.fingerprint)
    assert matches(chain, event, SchemaBook([CAKE.text])) is passes
    assert explain(chain, event, SchemaBook([CAKE.text])).matched is passes


def test_avro_that_cannot_be_decoded_does_not_pass_and_the_explanation_says_why() -> None:
    chain = parse("hermes", [{"type": "avropath", "path": ".id", "matcher": ".*"}])
    for data, words in ((AVRO[:-1], "ends before"), (None, "not known")):
        event = msgspec.structs.replace(an_event(data), avro=CAKE.fingerprint)
        told = explain(chain, event, SchemaBook([CAKE.text]))
        assert not told.matched and words in str(told)
    assert "not known" in str(explain(chain, msgspec.structs.replace(an_event(AVRO), avro=CAKE.fingerprint)))


@pytest.mark.parametrize(
    ("raw", "at"),
    [
        ({}, "filters"),
        ([5], "filters[0]"),
        ([{"type": "foo"}], "filters[0].type"),
        ([{"type": "jsonpath", "matcher": "x"}], "filters[0].path"),
        ([{"type": "jsonpath", "path": "$.a"}], "filters[0].matcher"),
        ([{"type": "header", "matcher": "x"}], "filters[0].header"),
        ([{"type": "header", "header": "a b", "matcher": "x"}], "filters[0].header"),
        ([{"type": "header", "header": "a", "matcher": "x", "matchingStrategy": "any"}], "filters[0].matchingStrategy"),
        ([by_path("$.a", "x"), by_path("$.a", "[")], "filters[1].matcher"),
        ([by_path("$.a", "(?=x)")], "filters[0].matcher"),
        ([by_path("$.a", "x", matchingStrategy="some")], "filters[0].matchingStrategy"),
        ([{"type": "avropath", "path": ".a[x]", "matcher": "x"}], "filters[0].path"),
        ([{"type": "avropath", "path": ".a..b", "matcher": "x"}], "filters[0].path"),
        ([{"type": "avropath", "path": "..a", "matcher": "x"}], "filters[0].path"),
        ([by_path("$.a", "x")] * 101, "filters"),
    ],
)
def test_it_is_refused_with_its_place(raw: Any, at: str) -> None:
    with pytest.raises(FilterSyntaxError) as told:
        parse("hermes", raw)
    assert told.value.at == at
    assert told.value.expected


def test_a_chain_may_have_a_hundred_filters() -> None:
    assert matches(parse("hermes", [by_path("$.a", "x")] * 100), an_event(b'{"a":"x"}'))


@pytest.mark.parametrize("path", ["$.a.length()", "$.a.length() ", "$.a.first()"])
def test_a_function_never_matches(path: str) -> None:
    assert not matches(parse("hermes", [by_path(path, ".*")]), an_event(b'{"a":["x"]}'))


def test_a_matcher_means_the_whole_value_and_may_be_empty() -> None:
    event = an_event(b'{"a":"xyx","empty":""}')
    assert not matches(parse("hermes", [by_path("$.a", "y?x")]), event)
    assert matches(parse("hermes", [by_path("$.a", "x.x")]), event)
    assert matches(parse("hermes", [by_path("$.empty", "")]), event)


def test_a_path_that_cannot_be_read_is_refused_with_its_place() -> None:
    with pytest.raises(FilterSyntaxError, match=r"filters\[0\]\.path"):
        parse("hermes", [by_path("$.a[", "x")])
