"""Writes a filter as Hermes' chain: `jsonpath` filters, all of which must pass.

A matcher is compared with the text of a value, so only conditions on texts are written, and the differences tell the rest.
Refused: `or` between places, `not`, numbers and their order, attributes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidings.filters.algebra import AllOf, Always, AnyOf, Compare, Filter, Literal, OneOf, Order, Text, TextOp
from tidings.filters.conversion.differences import Differences, refuse
from tidings.filters.conversion.expressions import whole_expression
from tidings.filters.conversion.horizon import json_path
from tidings.filters.conversion.negation import pushed_down
from tidings.filters.conversion.plain_form import TEXTS_ONLY
from tidings.filters.paths import DataPath

_NEVER = {"type": "jsonpath", "path": "$.length()", "matcher": "never"}


def written(filter: Filter, differences: Differences) -> list[Any]:
    """The filter as a chain."""
    return list(_chain(pushed_down(filter), differences))


def _chain(filter: Filter, differences: Differences) -> Iterator[dict[str, Any]]:
    match filter:
        case AllOf(parts):
            for part in parts:
                yield from _chain(part, differences)
            return
        case Always(value):
            if not value:
                yield _NEVER
            return
        case AnyOf(parts):
            expressions = [_expression(part) for part in parts]
            paths = {path for path, _ in expressions}
            if len(paths) != 1:
                refuse(filter, "hermes", "filters are joined by `and`; only alternatives at one place can be said")
            yield _filter(expressions[0][0], "|".join(f"(?:{text})" for _, text in expressions), differences)
            return
    yield _filter(*_expression(filter), differences)


def _filter(path: DataPath, matcher: str, differences: Differences) -> dict[str, Any]:
    differences.add(path, TEXTS_ONLY)
    return {"type": "jsonpath", "path": json_path(path), "matcher": matcher}


def _expression(filter: Filter) -> tuple[DataPath, str]:
    """The place, and what fits its text."""
    match filter:
        case Compare(DataPath() as path, Order.EQ, Literal(str(text))):
            return path, _literally(path, text)
        case OneOf(DataPath() as path, values) if all(isinstance(value.value, str) for value in values):
            return path, "|".join(_literally(path, str(value.value)) for value in values)
        case Text(DataPath() as path):
            return path, whole_expression(filter)
        case Compare() | OneOf() | Text() if not isinstance(filter.path, DataPath):
            refuse(filter, "hermes", "it looks at the payload and at transport headers, not at attributes")
    return refuse(filter, "hermes", "it only asks whether the text of a value fits an expression")


def _literally(path: DataPath, text: str) -> str:
    return whole_expression(Text(path, TextOp.LIKE, text.replace("\\", "\\\\").replace("*", r"\*").replace("?", r"\?")))
