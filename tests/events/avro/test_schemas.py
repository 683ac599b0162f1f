"""Which schemas are read, and what is said of the others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidings.errors import Malformed
from tidings.events.avro.schema import AvroSchema

REC: dict[str, Any] = {"type": "record", "name": "R", "fields": []}


def record(*fields: Any, name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def field(name: str, type: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type, **more}


@pytest.mark.parametrize(
    ("raw", "place", "what"),
    [
        ("strin", "the top", "no type of this name"),
        (7, "the top", "not a number"),
        ({}, "the top", "type is missing"),
        ({"type": "array"}, "the top", "items is missing"),
        ({"type": "array", "items": {"type": "map", "values": "x"}}, "/items/values", "no type"),
        ([], "the top", "1 to 100"),
        (["int", "int"], "/1", "twice"),
        (["null", ["int"]], "/1", "union"),
        (record(field("a", "int"), field("a", "int")), "/fields/1/name", "two fields"),
        (record(field("a-b", "int")), "/fields/0/name", "cannot be one"),
        (record({"name": "a"}), "/fields/0", "type is missing"),
        (record(field("a", REC)), "/fields/0/type/name", "taken"),
        (record(field("a", "S"), field("b", record(name="S"))), "/fields/0/type", "no type of this name"),
        ({"type": "enum", "name": "E", "symbols": ["A", "A"]}, "/symbols", "twice"),
        ({"type": "enum", "name": "E", "symbols": ["A"], "default": "B"}, "/default", "not one of the symbols"),
        ({"type": "fixed", "name": "F", "size": -1}, "/size", "number of bytes"),
        ({"type": "record", "fields": []}, "/name", "missing"),
        (record(field("a", "int", default="x")), "field a of R", "expected a number, found a text"),
        (record(field("a", ["null", "int"], default=1.5)), "field a of R", "default does not fit"),
        (record(field("r", "R")), "", "without end"),
        (record(field("r", ["R", "null"], default={})), "field r of R", "without end"),
    ],
)
def test_a_schema_that_is_none_is_refused_with_its_place(raw: Any, place: str, what: str) -> None:
    with pytest.raises(Malformed) as refused:
        AvroSchema(json.dumps(raw))
    assert what in str(refused.value)
    assert refused.value.at == place


def test_what_is_not_json_is_refused() -> None:
    with pytest.raises(Malformed, match="JSON"):
        AvroSchema('{"type": "string"')


def doubling(levels: int) -> Any:
    types = [record(field("a", "boolean"), name="T0")]
    types += [record(field("a", f"T{n}"), field("b", f"T{n}"), name=f"T{n + 1}") for n in range(levels)]
    return record(*(field(f"f{n}", one) for n, one in enumerate(types)))


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(doubling(40)),
        json.dumps([record(name=f"R{n}") for n in range(101)]),
        json.dumps(record(*(field(f"f{n}", "int") for n in range(5_001)))),
        json.dumps(record(*(field(f"f{n}", record(name=f"R{n}")) for n in range(1_001)))),
        '{"type":"array","items":' * 70 + '"int"' + "}" * 70,
        '["null",' * 50_000,
        '"' + "a" * (257 << 10) + '"',
    ],
)
def test_a_schema_bomb_is_refused(text: str) -> None:
    with pytest.raises(Malformed):
        AvroSchema(text)


def test_a_chain_of_types_that_nests_too_deeply_is_refused() -> None:
    types = [record(name="T0"), *(record(field("a", f"T{n}"), name=f"T{n + 1}") for n in range(100))]
    with pytest.raises(Malformed, match="nest too deeply"):
        AvroSchema(json.dumps(record(*(field(f"f{n}", one) for n, one in enumerate(types)))))


def test_names_take_the_namespace_around_them() -> None:
    inner = {"type": "record", "name": "In", "fields": [field("x", "int")]}
    raw = {
        "type": "record",
        "name": "Out",
        "namespace": "a.b",
        "fields": [field("i", inner), field("j", "a.b.In"), field("k", "In")],
    }
    schema = AvroSchema(json.dumps(raw))
    data = schema.from_json(b'{"i":{"x":1},"j":{"x":2},"k":{"x":3}}')
    assert (data, schema.json(data)) == (b"\x02\x04\x06", b'{"i":{"x":1},"j":{"x":2},"k":{"x":3}}')


def test_logical_types_are_shown_as_what_they_annotate() -> None:
    """HER-76: Hermes' converter knows no logical types."""
    raw = record(
        field("at", {"type": "long", "logicalType": "timestamp-millis"}), field("d", {"type": "int", "logicalType": "date"})
    )
    schema = AvroSchema(json.dumps(raw))
    assert schema.json(schema.from_json(b'{"at":1700000000000,"d":3}')) == b'{"at":1700000000000,"d":3}'


def test_a_schema_that_holds_itself_is_read_as_deep_as_64_levels() -> None:
    schema = AvroSchema(json.dumps(record(field("r", ["null", "R"]))))
    schema.check(b"\x02" * 63 + b"\x00")
    with pytest.raises(Malformed, match="more than 64 levels"):
        schema.value(b"\x02" * 100_000 + b"\x00")
