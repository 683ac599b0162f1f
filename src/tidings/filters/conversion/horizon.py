"""Writes a filter as Horizon's `advancedSelectionFilter`.

| plain | written |
|---|---|
| `=`, `!=`, `<` … | `eq`, `ne`, `lt` … |
| one of, there and none of | `in`, `nin` |
| text conditions | `rx` |
| the place is there | `nct` with a list, which nothing equals |
| and, or | `and`, `or` |

Refused: attributes; null; what holds where a place is missing, since no operator does.
"""

from __future__ import annotations

from typing import Any

from tidings.filters.algebra import AllOf, Always, AnyOf, Compare, Exists, Filter, Leaf, Not, OneOf, Order, Text
from tidings.filters.conversion.differences import Differences, refuse
from tidings.filters.conversion.expressions import whole_expression
from tidings.filters.conversion.negation import pushed_down
from tidings.filters.conversion.plain_form import ORDER_OF_TEXTS, SCALARS_ONLY
from tidings.filters.paths import DataPath

_WORDS = {Order.EQ: "eq", Order.NE: "ne", Order.LT: "lt", Order.LE: "le", Order.GT: "gt", Order.GE: "ge"}


def written(filter: Filter, differences: Differences) -> dict[str, Any]:
    """The filter as operators with paths and values."""
    return _of(pushed_down(filter), differences)


def _of(filter: Filter, differences: Differences) -> dict[str, Any]:
    match filter:
        case AllOf((Exists(path), Not(OneOf(other, values)))) if path == other:
            return _operator(filter, path, "nin", [value.value for value in values], differences)
        case AllOf(parts):
            return {"and": [_of(part, differences) for part in parts]}
        case AnyOf(parts):
            return {"or": [_of(part, differences) for part in parts]}
        case Always(value):
            return {"and" if value else "or": []}
        case Not():
            refuse(filter, "horizon", "no operator holds where the place is missing")
    return _leaf(filter, differences)


def _leaf(leaf: Leaf, differences: Differences) -> dict[str, Any]:
    match leaf:
        case Compare(path, op, value):
            if op not in (Order.EQ, Order.NE) and isinstance(value.value, str) and isinstance(path, DataPath):
                differences.add(path, ORDER_OF_TEXTS)
            return _operator(leaf, path, _WORDS[op], value.value, differences)
        case OneOf(path, values):
            return _operator(leaf, path, "in", [value.value for value in values], differences)
        case Exists(path):
            return _operator(leaf, path, "nct", [], differences)
        case Text(path):
            return _operator(leaf, path, "rx", whole_expression(leaf), differences)
    return refuse(leaf, "horizon", "it has no such operator")


def _operator(leaf: Filter, path: object, name: str, value: object, differences: Differences) -> dict[str, Any]:
    if not isinstance(path, DataPath):
        refuse(leaf, "horizon", "it looks at the payload only, not at attributes")
    if value is None or (isinstance(value, list) and None in value):
        refuse(leaf, "horizon", "null is no value there")
    if name != "nct":
        differences.add(path, SCALARS_ONLY)
    return {name: {"field": json_path(path), "value": value}}


def json_path(path: DataPath) -> str:
    """The place as a JSONPath."""
    return "$" + "".join(map(_step, path.steps))


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    if step.isidentifier() and step.isascii():
        return f".{step}"
    escaped = step.replace("\\", "\\\\").replace("'", "\\'")
    return f"['{escaped}']"
