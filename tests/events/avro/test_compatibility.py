"""Which schemas read what others wrote: the table of the Avro specification."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.events.avro.test_schemas import field, record
from tidings.errors import Malformed
from tidings.events.avro import compatibility
from tidings.events.avro.compatibility import unreadable
from tidings.events.avro.parser import tree_of

ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
LESS = {"type": "enum", "name": "E", "symbols": ["A"]}


def compared(reader: Any, writer: Any) -> str:
    return unreadable(tree_of(json.dumps(reader)), tree_of(json.dumps(writer)))


@pytest.mark.parametrize(
    ("reader", "writer"),
    [
        ("int", "int"),
        ("double", "int"),
        ("bytes", "string"),
        (["null", "int"], "int"),
        ("long", ["int", "long"]),
        (["null", "string", "int"], ["null", "int"]),
        (record(field("a", "int"), field("b", "int", default=1)), record(field("a", "int"))),
        (record(field("a", "int")), record(field("a", "int"), field("b", "int"))),
        (record(field("new", "int", aliases=["old"])), record(field("old", "int"))),
        (record(name="x.R"), record(name="y.R")),
        ({"type": "record", "name": "N", "aliases": ["R"], "fields": []}, record()),
        (ENUM, LESS),
        ({**LESS, "default": "A"}, ENUM),
        (record(field("r", ["null", "R"])), record(field("r", ["null", "R"]))),
        ({"type": "map", "values": "long"}, {"type": "map", "values": "int"}),
    ],
)
def test_readable(reader: Any, writer: Any) -> None:
    assert compared(reader, writer) == ""


@pytest.mark.parametrize(
    ("reader", "writer", "why"),
    [
        ("int", "long", "the top: long cannot be read as int"),
        ("string", "int", "int cannot be read as string"),
        ("int", ["null", "int"], "null cannot be read as int"),
        (["null", "int"], ["null", "string"], "no branch that reads string"),
        (
            record(field("a", "int"), field("b", "int")),
            record(field("a", "int")),
            "the top: the field b is new and has no default",
        ),
        (
            record(field("a", {"type": "array", "items": "int"})),
            record(field("a", {"type": "array", "items": "string"})),
            "/a/items:",
        ),
        (record(name="A"), record(name="B"), "B cannot be read as A"),
        (LESS, ENUM, "lacks the symbol B"),
        ({"type": "fixed", "name": "F", "size": 2}, {"type": "fixed", "name": "F", "size": 3}, "3 bytes"),
        ({"type": "map", "values": "int"}, {"type": "array", "items": "int"}, "array cannot be read as map"),
        (
            record(field("r", ["null", "R"]), field("x", "int")),
            record(field("r", ["null", "R"]), field("x", "string")),
            "/x: string cannot be read as int",
        ),
    ],
)
def test_not_readable(reader: Any, writer: Any, why: str) -> None:
    assert why in compared(reader, writer)


def test_comparing_what_has_too_many_types_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compatibility, "_MOST_PAIRS", 100)
    wide = [record(field("x", "int"), name=f"n{n}.R") for n in range(60)]
    with pytest.raises(Malformed, match="too many types"):
        compared(wide, [record(field("x", "string"), name=f"n{n}.R") for n in range(60)])
