"""JSON Schema: what fits, what is told about the rest, and what no schema may do."""

from __future__ import annotations

from typing import Any

import pytest

from tidings.errors import Malformed
from tidings.events.schema import MOST_FAULTS, Schema

ORDER = {
    "type": "object",
    "properties": {"total": {"type": "number", "minimum": 0}, "a/b~c": {"type": "array", "items": {"type": "string"}}},
    "required": ["total"],
}


def details(document: Any, data: bytes | None) -> list[str]:
    return [fault.sentence for fault in Schema.compiled(document).faults(data)]


def test_a_fitting_payload_has_no_faults() -> None:
    assert details(ORDER, b'{"total": 5, "other": 1e400}') == []
    assert details(True, b"null") == []


@pytest.mark.parametrize(
    ("data", "detail"),
    [
        (b"{}", 'at the top: "total" is a required property'),
        (b'{"total": -1}', "at /total: -1 is less than the minimum of 0"),
        (b'{"total": 1, "a/b~c": ["x", 5]}', 'at /a~1b~0c/1: 5 is not of type "string"'),
    ],
)
def test_a_fault_names_its_place(data: bytes, detail: str) -> None:
    (fault,) = Schema.compiled(ORDER).faults(data, index=3)
    assert (fault.index, fault.attribute, fault.code, fault.sentence) == (3, "data", "schema", detail)


@pytest.mark.parametrize("data", [None, b"", b"{", b"\xff", b'{"total":1,"total":2}'])
def test_what_is_not_json_cannot_fit(data: bytes | None) -> None:
    assert len(details(ORDER, data)) == 1


def test_faults_and_their_texts_are_bounded() -> None:
    found = details({"items": {"type": "integer"}}, b'["' + b'x","' * 500 + b'"]')
    assert len(found) == MOST_FAULTS
    (long,) = details({"type": "integer"}, b'"' + b"x" * 5_000 + b'"')
    assert len(long) < 300


def laughing(levels: int) -> dict[str, Any]:
    """A small schema that doubles with every level."""
    steps = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)}
    return {"$defs": {**steps, f"d{levels}": {}}, "$ref": "#/$defs/d0"}


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(levels):
        schema = {"not": schema}
    return schema


@pytest.mark.parametrize(
    "document",
    [
        {"$ref": "https://example.com/order.json"},
        {"$ref": "file:///etc/passwd"},
        {"properties": {"a": {"$ref": "other.json#/a"}}},
        {"$ref": "#/$defs/missing"},
        {"$schema": "https://example.com/meta"},
        {"type": "nonsense"},
        {"minimum": "5"},
        {"pattern": "(?=look)"},
        {"pattern": "(a)\\1"},
        {"pattern": "("},
        {"pattern": "(a{1000}){1000}"},
        {"patternProperties": {"(?!x)": True}},
        {"properties": {"a": {"$id": "https://example.com/inner"}}},
        laughing(60),
        nested(100),
        nested(900),
        5,
        [],
        "x",
    ],
)
def test_a_schema_that_is_none_or_too_much_is_refused_when_it_is_made(document: Any) -> None:
    with pytest.raises(Malformed):
        Schema.compiled(document)


def test_references_within_the_schema_work() -> None:
    tree = {"$defs": {"tree": {"type": "object", "additionalProperties": {"$ref": "#/$defs/tree"}}}, "$ref": "#/$defs/tree"}
    assert details(tree, b'{"a": {"b": {}}}') == []
    assert details(tree, b'{"a": {"b": 5}}') == ['at /a/b: 5 is not of type "object"']
    assert (
        details({"$id": "https://example.com/x", "$ref": "#a", "$defs": {"q": {"$anchor": "a", "type": "null"}}}, b"null") == []
    )
    assert details({"$ref": "https://json-schema.org/draft/2020-12/schema"}, b'{"type": "object"}') == []


def branching() -> dict[str, Any]:
    """A schema whose explanation doubles with every level of the payload."""
    branch = {"type": "object", "properties": {"x": {"$ref": "#"}}, "required": ["x"]}
    return {"anyOf": [{"type": "string"}, branch, {**branch, "maxProperties": 1}]}


def test_a_deep_payload_costs_no_more_with_a_schema_that_branches() -> None:
    assert details(branching(), b'{"x":' * 100 + b"1" + b"}" * 100) == ["the data does not match the schema"]
    assert details(branching(), b'{"x":' * 100 + b'"s"' + b"}" * 100) == []
    assert details(branching(), b'{"x":1}')[0].startswith("at the top:")


def test_a_pattern_takes_linear_time() -> None:
    assert len(details({"pattern": "^(a+)+$"}, b'"' + b"a" * 60_000 + b'b"')) == 1


def test_older_drafts_are_understood() -> None:
    assert details({"$schema": "http://json-schema.org/draft-07/schema#", "exclusiveMinimum": 5}, b"5") != []


MANY = b"[" + b"1," * 2_000 + b"1]"


def test_where_finding_all_faults_would_take_minutes_only_the_first_is_told() -> None:
    """2,000 numbers that break 1,000 rules each."""
    assert details({"items": {"allOf": [{"type": "string"}] * 1_000}}, MANY) == ['at /0: 1 is not of type "string"']
    choices = {"items": {"anyOf": [{"type": "string"}] * 1_000}}
    assert details(choices, MANY) == ["the data does not match the schema"]


@pytest.mark.parametrize(
    ("document", "refusal"),
    [
        ({"enum": list(range(100_000))}, "the schema is too large; expected at most 100000 values"),
        ({"pattern": "a" * 2_001}, "at most 2000 characters"),
        (
            {"allOf": [{"pattern": f"a{n}"} for n in range(501)]},
            "too many regular expressions, found 501; expected at most 500",
        ),
        ({"patternProperties": {f"{'a' * 1_990}{n}": True for n in range(60)}}, "100000 characters in all"),
        ({"pattern": "(?=a)b"}, "cannot be used as a regular expression at /pattern; expected one that is not too large"),
    ],
)
def test_a_schema_that_would_take_long_to_compile_is_refused(document: Any, refusal: str) -> None:
    with pytest.raises(Malformed) as refused:
        Schema.compiled(document)
    assert refusal in str(refused.value)
