"""Bad Avro: what is said of it, and where it is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidings.errors import AvroFault
from tidings.events.avro.schema import AvroSchema

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "paid", "type": "boolean"},
        {
            "name": "lines",
            "type": {"type": "array", "items": {"type": "record", "name": "Line", "fields": [{"name": "n", "type": "int"}]}},
        },
        {"name": "tags", "type": {"type": "map", "values": "long"}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "OLD"]}},
        {"name": "note", "type": ["null", "string"]},
    ],
}
SOUND = b"\x02a" + b"\x01" + b"\x04\x02\x04\x00" + b"\x02\x02k\x06\x00" + b"\x02" + b"\x02\x04hi"


def schema(raw: Any = ORDER) -> AvroSchema:
    return AvroSchema(json.dumps(raw))


def test_the_sound_one_is_sound() -> None:
    assert schema().json(SOUND) == b'{"id":"a","paid":true,"lines":[{"n":1},{"n":2}],"tags":{"k":3},"state":"OLD","note":"hi"}'
    assert schema().faults(SOUND) == []


@pytest.mark.parametrize(
    ("data", "pointer", "what"),
    [
        (b"", "/id", "the payload ends inside a number (byte 0)"),
        (SOUND[:-1], "/note", "the string has 2 bytes and the payload ends before (byte 14)"),
        (SOUND + b"\x00", "", "the value ends at byte 17 and the payload has 18"),
        (b"\x04\xff\xfe" + SOUND[2:], "/id", "the string is not UTF-8 (byte 1)"),
        (b"\x03" + SOUND[1:], "/id", "the length of the string is negative (byte 0)"),
        (SOUND[:2] + b"\x07" + SOUND[3:], "/paid", "a boolean is the byte 0 or 1, not 7 (byte 2)"),
        (SOUND[:5] + b"\x80\x80\x80\x80\x20" + SOUND[6:], "/lines/1/n", "an int has 32 bits and 4294967296 has more (byte 5)"),
        (SOUND[:10] + b"\xff" * 11, "/tags/k", "the number has more than 64 bits (byte 10)"),
        (SOUND[:12] + b"\x04" + SOUND[13:], "/state", "the enum has no symbol 2 (byte 12)"),
        (SOUND[:13] + b"\x04" + SOUND[14:], "/note", "the union of null, string has no branch 2 (byte 13)"),
        (SOUND[:13] + b"\x01" + SOUND[14:], "/note", "the union of null, string has no branch -1 (byte 13)"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(data: bytes, pointer: str, what: str) -> None:
    with pytest.raises(AvroFault) as refused:
        schema().check(data)
    assert (refused.value.what, refused.value.pointer) == (what, pointer)
    (fault,) = schema().faults(data)
    assert (fault.attribute, fault.pointer, fault.detail) == ("data", pointer, what)


def test_blocks_with_their_size_are_read_and_their_size_is_checked() -> None:
    numbers = schema({"type": "array", "items": "int"})
    assert numbers.value(b"\x03\x04\x02\x04\x00") == [1, 2]
    with pytest.raises(AvroFault, match="another size"):
        numbers.check(b"\x03\x06\x02\x04\x00")


MANY = b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"
"""Nearly 2^63."""


@pytest.mark.parametrize(
    "items", ["null", {"type": "record", "name": "R", "fields": []}, {"type": "fixed", "name": "F", "size": 0}]
)
def test_items_that_take_no_bytes_are_bounded(items: Any) -> None:
    for raw in ({"type": "array", "items": items}, {"type": "array", "items": {"type": "array", "items": items}}):
        one = schema(raw)
        for data in (MANY + b"\x00", b"\x02" + MANY + b"\x00\x00", MANY * 5):
            with pytest.raises(AvroFault):
                one.value(data)
    assert schema({"type": "array", "items": items}).value(b"\x06\x00") is not None


def test_a_few_bytes_do_not_become_millions_of_values() -> None:
    wide = {"type": "record", "name": "W", "fields": [{"name": f"f{n}", "type": "null"} for n in range(4_000)]}
    raw = {
        "type": "array",
        "items": {"type": "record", "name": "R", "fields": [{"name": "w", "type": wide}, {"name": "b", "type": "boolean"}]},
    }
    with pytest.raises(AvroFault, match="too many values"):
        schema(raw).value(b"\x80\x80\x08" + b"\x00" * 65_536 + b"\x00")


def test_an_event_without_data_is_a_fault() -> None:
    assert "there is none" in schema().faults(None)[0].detail
