"""Conditions as functions of (columns, event number), for what the index leaves to test on few candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from tidings.filters.algebra import (
    AllOf,
    Always,
    AnyOf,
    Cesql,
    Compare,
    Exists,
    Filter,
    InNetwork,
    Inside,
    Leaf,
    Not,
    OneOf,
    Order,
    Text,
)
from tidings.filters.meaning import test_of
from tidings.filters.paths import Path
from tidings.filters.routing.columns import Column

Predicate: TypeAlias = Callable[[list[Column], int], bool]


def predicate(filter: Filter, number_of: Mapping[Path, int]) -> Predicate:
    """The filter as a function; `number_of` tells the column of each path."""
    match filter:
        case AllOf(parts):
            return _every([predicate(part, number_of) for part in parts])
        case AnyOf(parts):
            return _some([predicate(part, number_of) for part in parts])
        case Not(part):
            inner = predicate(part, number_of)
            return lambda columns, event: not inner(columns, event)
        case Always(value):
            return lambda columns, event: value
    test, number = test_of(filter), number_of[filter.path]
    return lambda columns, event: test(columns[number][event])


def _every(parts: list[Predicate]) -> Predicate:
    def every(columns: list[Column], event: int) -> bool:
        for part in parts:  # noqa: SIM110 - a generator would cost as much as the tests
            if not part(columns, event):
                return False
        return True

    return every


def _some(parts: list[Predicate]) -> Predicate:
    def some(columns: list[Column], event: int) -> bool:
        for part in parts:  # noqa: SIM110
            if part(columns, event):
                return True
        return False

    return some


def leaves(filter: Filter) -> Iterator[Leaf]:
    """Every condition of the tree."""
    match filter:
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from leaves(part)
        case Not(part):
            yield from leaves(part)
        case Compare() | OneOf() | Text() | Exists() | InNetwork() | Inside() | Cesql():
            yield filter


def compares_numbers(filter: Filter) -> bool:
    """Whether some condition needs numbers at their exact value."""
    return any(map(_compares_numbers, leaves(filter)))


def _compares_numbers(leaf: Leaf) -> bool:
    match leaf:
        case Compare(_, _, value):
            return value.is_number
        case OneOf(_, values):
            return any(value.is_number for value in values)
    return isinstance(leaf, Inside)


def is_range(filter: Filter) -> bool:
    """Whether it is a comparison of order with a number."""
    return isinstance(filter, Compare) and filter.op not in (Order.EQ, Order.NE) and filter.value.is_number
