"""What the strict walk lets through is what fastavro reads, and JSON carries a value there and back."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any

import fastavro
from hypothesis import example, given
from hypothesis import strategies as st

from tests.events.avro.made_up import written
from tidings.errors import AvroFault
from tidings.events.avro.schema import AvroSchema


def bytes_of(schema: Any, value: Any) -> bytes:
    out = BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def shown(value: Any) -> Any:
    """The value as JSON has it, floats apart."""
    match value:
        case bytes():
            return value.decode("latin-1")
        case list():
            return [shown(one) for one in value]
        case dict():
            return {key: shown(one) for key, one in value.items()}
        case float():
            return round(value, 3) if abs(value) < 1e6 else None
    return value


@given(written())
def test_what_fastavro_writes_is_let_through_and_decoded_to_the_same(made: tuple[Any, Any]) -> None:
    raw, _ = made
    schema, data = AvroSchema(json.dumps(raw)), bytes_of(*made)
    schema.check(data)
    decoded = fastavro.schemaless_reader(BytesIO(data), fastavro.parse_schema(raw), None)
    assert json.dumps(shown(schema.value(data)), default=str) == json.dumps(shown(finite(decoded)), default=str)


def finite(value: Any) -> Any:
    match value:
        case float() if value in (float("inf"), float("-inf")):
            return "Infinity" if value > 0 else "-Infinity"
        case list():
            return [finite(one) for one in value]
        case dict():
            return {key: finite(one) for key, one in value.items()}
    return value


@given(written(), st.data())
def test_bytes_that_are_changed_are_refused_or_read_and_nothing_else_happens(
    made: tuple[Any, Any], data: st.DataObject
) -> None:
    schema, sound = AvroSchema(json.dumps(made[0])), bytearray(bytes_of(*made))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(sound)))
        sound[place : place + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
    changed = bytes(sound)
    try:
        schema.check(changed)
    except AvroFault:
        return
    schema.value(changed)
    schema.json(changed)


@given(written())
@example((["null", "bytes"], b"\xff\x00"))
@example(("float", 0.10000000149011612))
@example((["int", "float"], 0.0))
def test_a_value_comes_back_from_its_json(made: tuple[Any, Any]) -> None:
    """Where a union does not tell its branch by the JSON, the value is the same all the same: 0.0 may become the int 0."""
    schema, data = AvroSchema(json.dumps(made[0])), bytes_of(*made)
    text = schema.json(data)
    again = schema.from_json(text)
    schema.check(again)
    assert json.loads(schema.json(again)) == json.loads(text)
