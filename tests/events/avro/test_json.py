"""JSON to Avro and back, as Hermes does it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.events.avro.test_schemas import field, record
from tidings.errors import AvroFault, Malformed
from tidings.events.avro.metadata import METADATA
from tidings.events.avro.schema import AvroSchema

META = field(METADATA, ["null", {"type": "map", "values": "string"}], default=None)


def schema(*fields: Any) -> AvroSchema:
    return AvroSchema(json.dumps(record(*fields)))


@pytest.mark.parametrize(
    ("type", "given", "shown"),
    [
        ("int", "5", "5"),
        ("int", "5.0", "5"),
        ("long", "-9223372036854775808", "-9223372036854775808"),
        ("float", "0.1", "0.1"),
        ("double", "0.1", "0.1"),
        ("double", "7", "7.0"),
        ("double", '"NaN"', '"NaN"'),
        ("double", '"-Infinity"', '"-Infinity"'),
        ("bytes", '"\\u00ff\\u0000"', '"ÿ\\u0000"'),
        ({"type": "fixed", "name": "F", "size": 2}, '"ab"', '"ab"'),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, '"B"', '"B"'),
        ({"type": "map", "values": "int"}, '{"a":1}', '{"a":1}'),
        (["null", "string"], "null", "null"),
        (["null", "string"], '"x"', '"x"'),
        (["int", "string", "double"], "1.5", "1.5"),
        (["null", {"type": "array", "items": ["null", "long"]}], "[null,1]", "[null,1]"),
        ([record(field("a", "int"), name="A"), record(field("b", "int"), name="B")], '{"b":2}', '{"b":2}'),
    ],
)
def test_values_there_and_back(type: Any, given: str, shown: str) -> None:
    one = schema(field("x", type))
    assert one.json(one.from_json(f'{{"x":{given}}}'.encode())).decode() == f'{{"x":{shown}}}'


@pytest.mark.parametrize(
    ("type", "given", "pointer", "what"),
    [
        ("int", "2147483648", "/x", "beyond an int"),
        ("long", "9223372036854775808", "/x", "beyond a long"),
        ("int", "1.5", "/x", "whole number"),
        ("int", "true", "/x", "expected a number, found true"),
        ("string", "5", "/x", "expected a text, found a number"),
        ("float", "1e300", "/x", "too large"),
        ("bytes", '"€"', "/x", "U+00FF"),
        ({"type": "fixed", "name": "F", "size": 2}, '"a"', "/x", "expected 2 bytes"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, '"Z"', "/x", "expected one of A"),
        ({"type": "array", "items": "int"}, "[1,null]", "/x/1", "found null"),
        ({"type": "map", "values": "int"}, '{"a":1,"b~/":"x"}', "/x/b~0~1", "found a text"),
        (["null", "int"], '"x"', "/x", "expected one of null, int, found a text"),
        (["null", record(field("a", record(field("b", "int"), name="B")), name="A")], '{"a":{}}', "/x/a/b", "missing"),
    ],
)
def test_what_does_not_fit_is_told_with_its_place(type: Any, given: str, pointer: str, what: str) -> None:
    with pytest.raises(AvroFault) as refused:
        schema(field("x", type)).from_json(f'{{"x":{given}}}'.encode())
    assert what in refused.value.what
    assert refused.value.pointer == pointer


def test_defaults_are_filled_in_and_what_is_not_a_field_is_dropped() -> None:
    inner = record(field("n", "int", default=7), name="In")
    one = schema(
        field("a", "string"), field("i", inner, default={}), field("l", {"type": "array", "items": "int"}, default=[1])
    )
    assert one.json(one.from_json(b'{"a":"x","more":1}')) == b'{"a":"x","i":{"n":7},"l":[1]}'
    with pytest.raises(AvroFault, match="no default"):
        one.from_json(b"{}")


def test_avro_json_names_the_branches_of_unions() -> None:
    one = schema(field("x", ["null", "string", record(field("b", ["null", "int"]), name="B")]))
    assert one.json(one.from_avro_json(b'{"x":{"string":"a"}}')) == b'{"x":"a"}'
    assert one.json(one.from_avro_json(b'{"x":{"B":{"b":{"int":1}}}}')) == b'{"x":{"b":1}}'
    assert one.json(one.from_avro_json(b'{"x":null}')) == b'{"x":null}'
    for wrong, pointer in ((b'{"x":"a"}', "/x"), (b'{"x":{"B":{"b":1}}}', "/x/B/b"), (b'{"x":{"int":1}}', "/x")):
        with pytest.raises(AvroFault) as refused:
            one.from_avro_json(wrong)
        assert refused.value.pointer == pointer


def test_metadata_is_filled_in_and_not_shown() -> None:
    one = schema(field("a", "string"), META, field("z", "double"))
    data = one.from_json(b'{"a":"x","z":0.5}')
    filled = one.with_metadata(data, {"messageId": "1", "timestamp": "2"})
    assert one.json(filled) == b'{"a":"x","z":0.5}'
    assert one.json(filled, metadata=True) == b'{"a":"x","__metadata":{"messageId":"1","timestamp":"2"},"z":0.5}'
    assert one.with_metadata(filled, {}) != filled
    assert one.json(one.with_metadata(filled, {"messageId": "3"}), metadata=True).count(b"messageId") == 1
    with pytest.raises(AvroFault):
        one.with_metadata(b"\x09", {"a": "b"})


@pytest.mark.parametrize(
    ("root", "fault"),
    [
        (record(META), ""),
        (record(field(METADATA, [{"type": "map", "values": "string"}, "null"])), ""),
        (record(field("a", "int")), "no field __metadata"),
        ("string", "no field __metadata"),
        (record(field(METADATA, {"type": "map", "values": "string"})), "not a union"),
        (record(field(METADATA, ["null", {"type": "map", "values": "int"}])), "not a union"),
        (record(field(METADATA, ["null", "string"])), "not a union"),
    ],
)
def test_what_metadata_must_be(root: Any, fault: str) -> None:
    found = AvroSchema(json.dumps(root)).metadata_fault
    assert fault in found and bool(found) is bool(fault)


def test_a_schema_without_metadata_leaves_payloads_as_they_are() -> None:
    one = schema(field("a", "int"))
    assert one.with_metadata(b"\x02", {"messageId": "1"}) == b"\x02"


def test_unions_that_could_be_tried_without_end_are_given_up() -> None:
    raw = {
        "type": "record",
        "name": "A",
        "fields": [
            field("n", ["null", "A", record(field("n", ["null", "A", "B"]), field("q", "int"), name="B")]),
            field("p", "int"),
        ],
    }
    text: Any = {"n": None}
    for _ in range(60):
        text = {"n": text}
    with pytest.raises(Malformed):
        AvroSchema(json.dumps(raw)).from_json(json.dumps(text).encode())
