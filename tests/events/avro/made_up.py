"""Made-up Avro schemas, and values that fastavro writes by them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

_WORDS = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
_VALUES: Mapping[str, st.SearchStrategy[Any]] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "bytes": st.binary(max_size=6),
    "string": _texts,
}


@st.composite
def schemas(draw: st.DrawFn, depth: int = 3) -> Any:
    """A schema without recursion, as JSON has it."""
    return draw(_schema(depth, [0]))


@st.composite
def _schema(draw: st.DrawFn, depth: int, named: list[int]) -> Any:
    kinds = ["word"] if depth == 0 else ["word", "record", "array", "map", "union", "enum", "fixed", "option"]
    match draw(st.sampled_from(kinds)):
        case "word":
            return draw(st.sampled_from(_WORDS))
        case "record":
            names = draw(st.lists(st.sampled_from("abcd"), unique=True, max_size=3))
            fields = [{"name": name, "type": draw(_schema(depth - 1, named))} for name in names]
            return {"type": "record", "name": _name(named), "fields": fields}
        case "array":
            return {"type": "array", "items": draw(_schema(depth - 1, named))}
        case "map":
            return {"type": "map", "values": draw(_schema(depth - 1, named))}
        case "enum":
            return {"type": "enum", "name": _name(named), "symbols": ["A", "B", "C"]}
        case "fixed":
            return {"type": "fixed", "name": _name(named), "size": draw(st.integers(0, 4))}
        case "option":
            inner = draw(_schema(depth - 1, named).filter(lambda one: not isinstance(one, list) and one != "null"))
            return ["null", inner]
    return draw(st.lists(st.sampled_from(_WORDS), unique=True, min_size=1, max_size=4))


def _name(named: list[int]) -> str:
    named[0] += 1
    return f"N{named[0]}"


def values(schema: Any) -> st.SearchStrategy[Any]:
    """Values that fit the schema, as fastavro takes them."""
    match schema:
        case str():
            return _VALUES[schema]
        case list():
            return st.one_of([values(branch) for branch in schema])
        case {"type": "record", "fields": fields}:
            return st.fixed_dictionaries({field["name"]: values(field["type"]) for field in fields})
        case {"type": "array", "items": items}:
            return st.lists(values(items), max_size=3)
        case {"type": "map", "values": inner}:
            return st.dictionaries(_texts, values(inner), max_size=3)
        case {"type": "enum", "symbols": symbols}:
            return st.sampled_from(symbols)
        case {"type": "fixed", "size": size}:
            return st.binary(min_size=size, max_size=size)
    raise AssertionError(schema)


@st.composite
def written(draw: st.DrawFn) -> tuple[Any, Any]:
    """A schema and a value of it."""
    schema = draw(schemas())
    return schema, draw(values(schema))
