"""Moves `not` down to the conditions, for dialects that have none of their own."""

from __future__ import annotations

from tidings.filters.algebra import AllOf, Always, AnyOf, Filter, Not, all_of, any_of


def pushed_down(filter: Filter, negated: bool = False) -> Filter:
    """The same filter, in which `Not` stands before conditions only."""
    match filter:
        case AllOf(parts) | AnyOf(parts):
            inner = [pushed_down(part, negated) for part in parts]
            return all_of(*inner) if isinstance(filter, AllOf) is not negated else any_of(*inner)
        case Not(part):
            return pushed_down(part, not negated)
        case Always(value):
            return Always(value is not negated)
    return Not(filter) if negated else filter
