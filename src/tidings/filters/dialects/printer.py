"""Writes a filter in the `where` language: `where.parse(printed(f)) == f` for every filter that this language can say.

What only other dialects can say (several values, JSONPath, headers) is written in the same style, for people.
"""

from __future__ import annotations

from typing import assert_never

from tidings.filters.algebra import (
    AllOf,
    Always,
    AnyOf,
    Cesql,
    Compare,
    Each,
    Exists,
    Filter,
    InNetwork,
    Inside,
    Leaf,
    Literal,
    Not,
    OneOf,
    SlowText,
    Text,
    TextOrder,
)
from tidings.filters.dialects.where_tokens import BARE, RESERVED
from tidings.filters.paths import (
    AttributePath,
    AttributesPath,
    AttributeTextPath,
    AvroTextPath,
    AvroTextsPath,
    DataPath,
    HeaderPath,
    ItemPath,
    MemberTextPath,
    OnlyScalarPath,
    Path,
    QueryTextPath,
    QueryTextsPath,
    ScalarsPath,
)

_OR, _AND, _NOT, _LEAF = range(4)


def printed(filter: Filter) -> str:
    """The filter as text that `where.parse` reads back to an equal filter."""
    match filter:
        case AllOf((Exists(path), Not((OneOf() | Text()) as leaf))) if leaf.path == path:
            return _condition(leaf, "not ")
        case AllOf(parts):
            return " and ".join(_within(part, _NOT) for part in parts)
        case AnyOf(parts):
            return " or ".join(_within(part, _AND) for part in parts)
        case Not(Exists(path)):
            return f"{printed_path(path)} is missing"
        case Not(part):
            return f"not {_within(part, _NOT)}"
        case Always(value):
            return "true" if value else "false"
    return _condition(filter, "")


def _within(part: Filter, least: int) -> str:
    text = printed(part)
    return text if _binding(part) >= least else f"({text})"


def _binding(filter: Filter) -> int:
    match filter:
        case AllOf((Exists(path), Not((OneOf() | Text()) as leaf))) if leaf.path == path:
            return _LEAF
        case AllOf():
            return _AND
        case AnyOf():
            return _OR
        case Not():
            return _NOT
    return _LEAF


def _condition(leaf: Leaf, negation: str, looking_at: str = "") -> str:
    path = looking_at or printed_path(leaf.path)
    match leaf:
        case Compare(_, op, value):
            return f"{path} {op} {printed_literal(value)}"
        case OneOf(_, values):
            return f"{path} {negation}in ({', '.join(map(printed_literal, values))})"
        case Text(_, op, pattern) | SlowText(_, op, pattern):
            return f"{path} {negation}{op} {_quoted(pattern)}"
        case TextOrder(_, op, text):
            return f"{path} {op} {_quoted(text)}"
        case Exists():
            return f"{path} exists"
        case Each(_, over, condition):
            return _condition(condition, "", f"{over} value of {path}")
        case InNetwork(_, network):
            return f"{path} in network {network}"
        case Inside(_, kind, part):
            return f"some {kind} of {path}: ({printed(part)})"
        case Cesql(_, text):
            return f"sql({_quoted(text)})"
    assert_never(leaf)


def printed_path(path: Path) -> str:
    """The path as it is written in a filter."""
    match path:
        case AttributePath(name):
            return f"@{name}"
        case AttributeTextPath(name):
            return f"text(@{name})"
        case AttributesPath(names):
            return ", ".join(f"@{name}" for name in names)
        case DataPath(steps):
            return _steps(steps)
        case HeaderPath(name):
            return f"header({name})"
        case MemberTextPath(names):
            return f"text({_steps(names)})"
        case ScalarsPath(query) | OnlyScalarPath(query):
            return query
        case QueryTextPath(query) | QueryTextsPath(query):
            return f"text({query})"
        case AvroTextPath(steps) | AvroTextsPath(steps):
            return f"avro({_steps(steps)})"
        case ItemPath():
            return "value"
    assert_never(path)


def _steps(steps: tuple[str | int | None, ...]) -> str:
    return "".join(map(_step, steps)).removeprefix(".")


def _step(step: str | int | None) -> str:
    if isinstance(step, str):
        return f".{_member(step)}"
    return "[*]" if step is None else f"[{step}]"


def _member(name: str) -> str:
    return name if BARE.fullmatch(name) and name.lower() not in RESERVED else _quoted(name)


def printed_literal(literal: Literal) -> str:
    """The value as it is written in a filter."""
    match literal.value:
        case None:
            return "null"
        case bool(value):
            return "true" if value else "false"
        case str(text):
            return _quoted(text)
        case number:
            return str(number)


def _quoted(text: str) -> str:
    doubled = text.replace('"', '""')
    return f'"{doubled}"'
