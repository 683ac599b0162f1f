"""What paths make of a whole column of found values. Mostly nothing: that all are texts is seen faster than asked of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from itertools import chain
from typing import Any

from tidings.filters.event_values import made_of
from tidings.filters.paths import MemberTextPath, OnlyScalarPath, Path, QueryTextPath, ScalarsPath
from tidings.filters.payload import MISSING

_TEXTS: frozenset[type] = frozenset({str, type(MISSING)})
_SCALARS: frozenset[type] = frozenset({str, int, bool, float, Decimal})
_KEPT: Mapping[type, frozenset[type]] = {
    MemberTextPath: _TEXTS,
    QueryTextPath: _TEXTS,
    OnlyScalarPath: _SCALARS | {type(MISSING)},
}
"""The kinds of values that the path gives as they are."""


def column_made_of(path: Path) -> Callable[[list[Any]], list[Any]]:
    """What the path gives for each of many values found at its place."""
    made, kept, several = made_of(path), _KEPT.get(type(path), frozenset()), isinstance(path, ScalarsPath)

    def column(found: list[Any]) -> list[Any]:
        kinds = set(map(type, found))
        if kinds <= kept:
            return found
        if several and kinds == {list} and _SCALARS.issuperset(map(type, chain.from_iterable(found))):
            return list(map(tuple, found))
        return list(map(made, found))

    return column
