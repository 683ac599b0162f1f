"""Hypothesis strategies: filters of every shape, and events that often nearly match them."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from tidings.events.model import Event
from tidings.filters.algebra import (
    Always,
    Compare,
    Exists,
    Filter,
    Literal,
    Not,
    OneOf,
    Order,
    Text,
    TextOp,
    all_of,
    any_of,
    literal,
    there_but_not,
)
from tidings.filters.paths import AttributePath, AttributeTextPath, DataPath, Path

HUGE = 2**53
NUMBERS = ("0", "1", "-1", "1.0", "1.5", "0.1", "1e0", "10", "100", str(HUGE), str(HUGE + 1), f"{HUGE}.5", "9" * 40, "1e400")
ODD_NUMBERS = (
    *NUMBERS,
    "-0",
    "1.00000000000000000000001",
    "9" * 5000,
    "1e-400",
    "1e99999999999999999999",
    "-1e99999999999999999999",
)
TEXTS = ("", "a", "ab", "abc", "b", "aXb", "1", "true", "EU", "é", "a\nb", "*", "𝄞", 'say "a"')
STEPS = ("a", "b", "c", "odd name", "in", '"', "é\n")
PATTERNS = ("a*", "*b", "a*b", "?", "a?b", "*", "", r"\*", "*X*", "??*")
EXPRESSIONS = ("a", "^a", "b$", "^a.b$", "(a+)+$", "[0-9]", "é|E", "")

texts = st.one_of(st.sampled_from(TEXTS), st.sampled_from(TEXTS), st.text(max_size=4))
scalars = (
    st.sampled_from([None, True, False])
    | st.sampled_from(NUMBERS).map(lambda n: int(n) if n.isdecimal() else Decimal(n))
    | texts
)
literals = scalars.map(literal)

data_paths = st.lists(st.sampled_from(STEPS) | st.integers(0, 2), min_size=1, max_size=3).map(lambda s: DataPath(tuple(s)))
names = st.sampled_from(["type", "subject", "flag", "count", "datacontenttype"])
paths: st.SearchStrategy[Path] = data_paths | data_paths | names.map(AttributePath) | names.map(AttributeTextPath)
usual = st.sampled_from([DataPath(("a",)), DataPath(("a",)), DataPath(("b", "a")), DataPath(("c", 0)), AttributePath("type")])
common_paths: st.SearchStrategy[Path] = st.one_of(usual, usual, usual, paths)


@st.composite
def leaves(draw: st.DrawFn, looking_at: st.SearchStrategy[Path] = common_paths) -> Filter:
    path = draw(looking_at)
    match draw(st.integers(0, 6)):
        case 0 | 1:
            return Compare(path, draw(st.sampled_from([Order.EQ, Order.NE])), draw(literals))
        case 2:
            ordered = literals.filter(lambda value: value.is_number or isinstance(value.value, str))
            return Compare(path, draw(st.sampled_from([Order.LT, Order.LE, Order.GT, Order.GE])), draw(ordered))
        case 3:
            return _maybe_negated(draw, OneOf(path, tuple(draw(st.lists(literals, min_size=1, max_size=5)))))
        case 4 | 5:
            op = draw(st.sampled_from([op for op in TextOp if op is not TextOp.WHOLE]))
            known = {TextOp.LIKE: st.sampled_from(PATTERNS), TextOp.REGEX: st.sampled_from(EXPRESSIONS)}
            return _maybe_negated(draw, Text(path, op, draw(known.get(op, texts))))
    return Exists(path)


def _maybe_negated(draw: st.DrawFn, leaf: OneOf | Text) -> Filter:
    return there_but_not(leaf) if draw(st.booleans()) else leaf


def trees(conditions: st.SearchStrategy[Filter]) -> st.SearchStrategy[Filter]:
    return st.recursive(
        conditions,
        lambda inner: (
            inner.map(Not)
            | st.lists(inner, min_size=1, max_size=4).map(lambda parts: all_of(*parts))
            | st.lists(inner, min_size=1, max_size=4).map(lambda parts: any_of(*parts))
        ),
        max_leaves=12,
    )


filters = trees(leaves() | st.booleans().map(Always))
"""What the `where` language can say."""


def all_filters_with(others: st.SearchStrategy[Filter]) -> st.SearchStrategy[Filter]:
    """The same and others, as they are and joined."""
    return filters | others | trees(leaves() | others)


def number_text(text: str) -> Any:
    """A number that `written` puts into the payload as it is spelled."""
    return {"$number": text}


payload_scalars = st.sampled_from([None, True, False]) | st.sampled_from(ODD_NUMBERS).map(number_text) | texts
documents = st.recursive(
    payload_scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*STEPS, "z"]), inner, max_size=5),
    max_leaves=10,
)


usual_documents = st.fixed_dictionaries(
    {},
    optional={
        "a": payload_scalars,
        "b": st.fixed_dictionaries({"a": payload_scalars}),
        "c": st.lists(payload_scalars, max_size=2),
    },
)


def written(value: Any) -> str:
    """JSON text with numbers spelled as they were given."""
    match value:
        case {"$number": str(text)}:
            return text
        case dict():
            return "{" + ",".join(f"{json.dumps(name)}:{written(inner)}" for name, inner in value.items()) + "}"
        case list():
            return "[" + ",".join(map(written, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


NOT_JSON = (
    b"",
    b"{",
    b'{"a":1}{',
    b'{"a":1},{"a":2}',
    b'{"a":[1',
    b"2]}",
    b"\xff",
    b'{"z":"\xff","a":1}',
    b'{"a":"\xff","b":{"a":1}}',
)
DEEP = (b'{"a":1,"z":' + b"[" * 700 + b"]" * 700 + b"}",)

datas = (
    st.none()
    | documents.map(lambda document: written(document).encode())
    | usual_documents.map(lambda document: written(document).encode())
    | usual_documents.map(lambda document: written(document).encode())
    | usual_documents.map(lambda document: written(document).encode())
    | st.sampled_from(NOT_JSON + DEEP)
    | st.binary(max_size=8)
)

TYPES = ("application/json", "application/problem+json; charset=utf-8", "text/plain", "application/octet-stream")


@st.composite
def events(draw: st.DrawFn) -> Event:
    attributes: dict[str, Any] = {
        "specversion": "1.0",
        "id": "1",
        "source": "/s",
        "type": draw(st.sampled_from(["a", "ab", "EU"])),
    }
    optional = {
        "subject": texts.filter(bool),
        "flag": st.booleans() | texts,
        "count": st.sampled_from([0, 1, -1, 10, "1"]),
        "datacontenttype": st.sampled_from(TYPES[:1] * 6 + TYPES),
    }
    for name, values in optional.items():
        if draw(st.booleans()):
            attributes[name] = draw(values)
    transport = draw(st.sampled_from([{}, {}, {"trace-id": "a"}, {"Trace-Id": "EU", "other": "1"}]))
    return Event(attributes, draw(datas), draw(st.sampled_from([False, False, False, True])), transport)


__all__ = ["Literal", "events", "filters", "leaves", "scalars", "written"]
