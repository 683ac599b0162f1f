"""Conditions as functions of the values of an event, for what the index leaves to test on few candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from tidings.filters.algebra import (
    AllOf,
    Always,
    AnyOf,
    Compare,
    Exists,
    Filter,
    Leaf,
    Not,
    OneOf,
    Order,
    SlowText,
    Text,
    TextOrder,
)
from tidings.filters.matches import holds, test_of
from tidings.filters.paths import (
    AttributePath,
    AttributeTextPath,
    AvroTextPath,
    AvroTextsPath,
    DataPath,
    HeaderPath,
    Path,
)
from tidings.filters.routing.columns import is_column

Predicate: TypeAlias = Callable[[Any, int], bool]
"""Takes where the values are (a table and the event's number, or a row and 0)."""

LeafTest: TypeAlias = Callable[[Leaf], Predicate]
"""Makes a predicate of one condition; it knows where its value is to be found."""


def predicate(filter: Filter, leaf_test: LeafTest) -> Predicate:
    """The filter as a function. What costs more is tested last."""
    match filter:
        case AllOf(parts):
            return _every([predicate(part, leaf_test) for part in sorted(parts, key=is_costly)])
        case AnyOf(parts):
            return _some([predicate(part, leaf_test) for part in sorted(parts, key=is_costly)])
        case Not(part):
            inner = predicate(part, leaf_test)
            return lambda values, event: not inner(values, event)
        case Always(value):
            return lambda values, event: value
    return leaf_test(filter)


def in_table(number_of: Mapping[Path, int]) -> LeafTest:
    """Conditions on the columns of a table."""

    def leaf_test(leaf: Leaf) -> Predicate:
        number = number_of.get(leaf.path)
        if number is None:
            return _read_apart(leaf)
        test = test_of(leaf)
        return lambda table, event: test(table.columns[number][event])

    return leaf_test


def in_row(number_of: Mapping[Path, int]) -> LeafTest:
    """Conditions on the values of one row."""

    def leaf_test(leaf: Leaf) -> Predicate:
        number = number_of.get(leaf.path)
        if number is None:
            return _read_apart(leaf)
        test = test_of(leaf)
        return lambda row, event: test(row.values[number])

    return leaf_test


def _read_apart(leaf: Leaf) -> Predicate:
    """A condition on what no column holds: the plain reading, for the candidates only."""
    return lambda values, event: holds(leaf, values.stored.reading(event))


def _every(parts: list[Predicate]) -> Predicate:
    def every(values: Any, event: int) -> bool:
        for part in parts:  # noqa: SIM110 - a generator would cost as much as the tests
            if not part(values, event):
                return False
        return True

    return every


def _some(parts: list[Predicate]) -> Predicate:
    def some(values: Any, event: int) -> bool:
        for part in parts:  # noqa: SIM110
            if part(values, event):
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
        case Always():
            return
        case _:
            yield filter


def columns_of(filters: Iterable[Filter]) -> dict[Path, None]:
    """The paths of all conditions that can be columns, in the order of their first use."""
    return {leaf.path: None for filter in filters for leaf in leaves(filter) if is_column(leaf.path)}


def is_plain(leaf: Filter) -> bool:
    """Whether the index may take the condition apart: it looks at one value that can be a column."""
    return isinstance(leaf, (Compare, OneOf, Text, Exists)) and is_column(leaf.path)


def is_costly(filter: Filter) -> bool:
    """Whether some condition is more than a look at a value."""
    return any(not is_plain(leaf) for leaf in leaves(filter))


def needs_exact_numbers(filter: Filter) -> bool:
    """Whether some condition needs numbers at their exact value, or as they are spelled."""
    return any(_needs_exact(leaf) for leaf in leaves(filter))


def _needs_exact(leaf: Leaf) -> bool:
    match leaf:
        case Compare(_, _, value) if value.is_number:
            return True
        case OneOf(_, values) if any(value.is_number for value in values):
            return True
        case Compare() | OneOf() | Text() | TextOrder() | SlowText() | Exists():
            return is_made(leaf.path)
    return True


def is_made(path: Path) -> bool:
    """Whether the path makes something of the JSON value at its place, which it must then see as it is spelled."""
    return not isinstance(path, (DataPath, AttributePath, AttributeTextPath, HeaderPath, AvroTextPath, AvroTextsPath))


def is_range(filter: Filter) -> bool:
    """Whether it is a comparison of order with a number."""
    return isinstance(filter, Compare) and filter.op not in (Order.EQ, Order.NE) and filter.value.is_number
