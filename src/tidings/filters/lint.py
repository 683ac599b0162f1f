"""Advice about a filter that can be evaluated but may not mean what its author thinks."""

from __future__ import annotations

from tidings.filters import cesql
from tidings.filters.algebra import AllOf, AnyOf, Cesql, Filter, Not


def advice(filter: Filter) -> list[str]:
    """Sentences for the author; none when nothing is odd (SQL-22)."""
    match filter:
        case AllOf(parts) | AnyOf(parts):
            return [sentence for part in parts for sentence in advice(part)]
        case Not(part):
            return advice(part)
        case Cesql(_, text):
            return list(cesql.parse(text).lint)
    return []
