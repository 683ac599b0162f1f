"""Own cases of Hermes' filters in the format of its vectors, by the rules HER-113 to HER-125."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.suites.hermes import difference

MESSAGE = {
    "id": "0001",
    "n": 42,
    "d": 0.55,
    "e": 10000000000.0,
    "b": True,
    "z": None,
    "arr": [1, "x", None],
    "o": {"a": 1, "b": "x"},
    "list": [{"t": "A", "v": 1}, {"t": "B", "v": 5007}, {"t": "A", "id": "5007"}],
    "txt": "a\nb",
    "u": "Zażółć",
    "neg": -1,
    "small": 1e-07,
    "big": 12345678901234567890,
    "deep": {"name": "Bob", "x": {"name": "Al"}},
    "empty": [],
    "eo": {},
    "f1": 1.0,
    "f100": 100.0,
    "f7": 10000000.0,
    "f6": 9999999.0,
    "f3": 0.001,
    "f4": 0.0001,
    "dec": 123456789.125,
}

JSONPATH = [
    ("$.id", "0001", "all", True),
    ("$.id", "000", "all", False),
    ("$.id", "000.", "all", True),
    ("id", "0001", "all", True),
    (".id", "0001", "all", False),
    ("$.n", "42", "all", True),
    ("$.d", "0.55", "all", True),
    ("$.e", "1.0E10", "all", True),
    ("$.b", "true", "all", True),
    ("$.b", "TRUE", "all", False),
    ("$.z", ".*", "all", False),
    ("$.z", "null", "all", False),
    ("$.arr", '\\[1,"x",null\\]', "all", True),
    ("$.o", "\\{a=1, b=x\\}", "all", True),
    ("$.missing", ".*", "all", False),
    ("$.list[*].t", "[AB]", "all", True),
    ("$.list[*].t", "A", "all", False),
    ("$.list[*].t", "A", "any", True),
    ("$.list[*].t", "A", "ANY", True),
    ("$.list[*].t", "C", "any", False),
    ("$.list[?(@.v == 1)].t", "A", "all", True),
    ("$.list[?(@.id == 5007)].t", "A", "all", True),
    ("$.list[?(@.id == '5007')].t", "A", "all", True),
    ("$.list[?(@.v == '5007')].t", "B", "all", True),
    ("$.list[?(@.v > 1)].t", "B", "all", True),
    ("$.list[5].t", ".*", "all", False),
    ("$.list[-1].t", "A", "all", True),
    ("$.list[0:2].t", "A", "all", False),
    ("$.list[0:2].t", "A", "any", True),
    ("$.txt", "a.b", "all", False),
    ("$.txt", "a\nb", "all", True),
    ("$.txt", "(?s)a.b", "all", True),
    ("$.u", "Za.*", "all", True),
    ("$.u", "\\p{L}+", "all", True),
    ("$.neg", "-1", "all", True),
    ("$.neg", "^-1$", "all", True),
    ("$.small", "1.0E-7", "all", True),
    ("$.big", "12345678901234567890", "all", True),
    ("$..name", "Bob", "all", False),
    ("$..name", "Bob", "any", True),
    (".name", "Bob", "any", True),
    ("$..name", "Bob|Al", "all", True),
    ("$.empty", "\\[\\]", "all", True),
    ("$.eo", "\\{\\}", "all", True),
    ("$.empty[*]", ".*", "all", False),
    ("$.empty[*]", ".*", "any", False),
    ("$.f1", "1.0", "all", True),
    ("$.f100", "100.0", "all", True),
    ("$.f7", "1.0E7", "all", True),
    ("$.f6", "9999999.0", "all", True),
    ("$.f3", "0.001", "all", True),
    ("$.f4", "1.0E-4", "all", True),
    ("$.dec", "1.23456789125E8", "all", True),
    ("$.list.length()", "3", "all", False),
    ("$.n.sum()", ".*", "all", False),
    ("$.[?(@.n > 1)].id", "0001", "all", True),
    ("$.id", "(?i)0001", "all", True),
    ("$.deep.name", "(?!Al).*", "all", True),
    ("$.id", "0*1", "all", True),
    ("$.deep.*", "Bob", "all", False),
    ("$.o.*", "1|x", "all", True),
    ("$.list[?(@.id)].id", "5007", "all", True),
    ("$.list[?(!@.id)].t", "A|B", "all", True),
    ("$.list[?(@.t in ['A'])].t", "A", "all", True),
    ("$.list[?(@.t =~ /a/i)].t", "A", "all", True),
    ("$['id','n']", "\\{id=0001, n=42\\}", "all", True),
]

SCHEMA = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "s", "type": "string"},
        {"name": "i", "type": "int"},
        {"name": "l", "type": "long"},
        {"name": "f", "type": "double"},
        {"name": "b", "type": "boolean"},
        {"name": "opt", "type": ["null", "string"], "default": None},
        {"name": "arr", "type": {"type": "array", "items": "string"}},
        {"name": "m", "type": {"type": "map", "values": "int"}},
        {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["X", "Y"]}},
        {
            "name": "recs",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Q",
                    "fields": [{"name": "k", "type": "string"}, {"name": "w", "type": {"type": "array", "items": "int"}}],
                },
            },
        },
    ],
}
RECORD = {
    "s": "txt",
    "i": 5,
    "l": 9007199254740993,
    "f": 10000000000.0,
    "b": False,
    "opt": None,
    "arr": ["a", "b"],
    "m": {"k1": 1, "k2": 2},
    "e": "Y",
    "recs": [{"k": "p", "w": [1, 2]}, {"k": "q", "w": []}],
}

AVROPATH = [
    (".s", "txt", "all", True),
    ("s", "txt", "all", True),
    (".i", "5", "all", True),
    (".l", "9007199254740993", "all", True),
    (".f", "1.0E10", "all", True),
    (".b", "false", "all", True),
    (".opt", "null", "all", True),
    (".opt", ".*", "all", True),
    (".opt", "x", "all", False),
    (".arr[0]", "a", "all", True),
    (".arr[5]", "null", "all", True),
    (".arr[*]", "a", "all", False),
    (".arr[*]", "a", "any", True),
    (".arr[*]", "a|b", "all", True),
    (".m.k1", "1", "all", True),
    (".m.zz", "null", "all", True),
    (".m.zz.y", ".*", "all", False),
    (".zz", "null", "all", True),
    (".zz.y", "null", "all", False),
    (".s.y", ".*", "all", False),
    (".e", "Y", "all", True),
    (".recs[*].k", "p|q", "all", True),
    (".recs[0].w[*]", "1|2", "all", True),
    (".recs[*].w[*]", "1|2", "all", True),
    (".recs[1].w[0]", "null", "all", True),
    (".recs[1].w[*]", ".*", "all", False),
    (".recs[9].k", ".*", "all", False),
    (".recs[0].w[1]", "2", "all", True),
]

HEADERS: list[tuple[dict[str, str], dict[str, str], bool]] = [
    ({"Trace": "a.*"}, {"trace": "abc"}, True),
    ({"Trace": "a"}, {"trace": "abc"}, False),
    ({"x": ".*"}, {}, False),
    ({"x": ""}, {"x": ""}, True),
    ({}, {}, True),
    ({"a": "1", "b": "2"}, {"a": "1", "b": "2"}, True),
    ({"a": "1", "b": "2"}, {"a": "1"}, False),
]


def a_filter(type: str, path: str, matcher: str, strategy: str) -> dict[str, Any]:
    return {"type": type, "path": path, "matcher": matcher, "matchingStrategy": strategy}


@pytest.mark.parametrize(("path", "matcher", "strategy", "expected"), JSONPATH)
def test_a_message_in_json_passes_or_not(path: str, matcher: str, strategy: str, expected: bool) -> None:
    chain = [a_filter("jsonpath", path, matcher, strategy)]
    assert difference({"filters": chain, "message": MESSAGE, "expected": expected}, {}) is None


@pytest.mark.parametrize(("path", "matcher", "strategy", "expected"), AVROPATH)
def test_a_message_in_avro_passes_or_not(path: str, matcher: str, strategy: str, expected: bool) -> None:
    chain = [a_filter("avropath", path, matcher, strategy)]
    vector = {"filters": chain, "message": RECORD, "schema": "record", "expected": expected}
    assert difference(vector, {"record": SCHEMA}) is None


@pytest.mark.parametrize(("matchers", "headers", "expected"), HEADERS)
def test_a_message_passes_by_its_headers_or_not(matchers: dict[str, str], headers: dict[str, str], expected: bool) -> None:
    chain = [{"type": "header", "header": name, "matcher": matcher} for name, matcher in matchers.items()]
    assert difference({"filters": chain, "message": {}, "headers": headers, "expected": expected}, {}) is None
