"""Values to small numbers: a vocabulary per path for what filters name, cuts per path for the numbers they compare with."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from decimal import Decimal
from itertools import repeat
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tidings.filters.algebra import Literal, Order
from tidings.filters.payload import MISSING
from tidings.filters.routing.columns import Column

Ints: TypeAlias = NDArray[np.int32]

ABSENT, UNNAMED = 0, 1
"""The codes of no value, and of a value that no filter names."""

HIGHEST = 2**31 - 1
NO_NUMBER = -1
_TRUE, _FALSE, _CONTAINER = object(), object(), object()
_BOOLEANS = {True: _TRUE, False: _FALSE}


class Vocabulary:
    """The values that filters name at one path, each with a code from 2."""

    def __init__(self) -> None:
        self._codes: dict[Any, int] = {MISSING: ABSENT}
        self._confusable = False
        self.numeric = False

    def __len__(self) -> int:
        return len(self._codes) + 1

    def add(self, literal: Literal) -> int:
        """The code of this value, a new one if need be."""
        key = literal.value
        if isinstance(key, bool):
            key, self._confusable = _BOOLEANS[key], True  # type: ignore[assignment]
        elif literal.is_number:
            self.numeric = True
            self._confusable |= key in (0, 1)
        return self._codes.setdefault(key, len(self._codes) + 1)

    def codes(self, column: Column) -> Ints:
        """The code of every value of the column."""
        if self._confusable:
            column = [_BOOLEANS[value] if type(value) is bool else value for value in column]
        try:
            return self._looked_up(column)
        except TypeError:  # an array or object among them
            return self._looked_up([_CONTAINER if isinstance(value, (list, dict)) else value for value in column])

    def _looked_up(self, column: Column) -> Ints:
        return np.fromiter(map(self._codes.get, column, repeat(UNNAMED)), np.int32, len(column))


class Cuts:
    """The numbers that filters compare with at one path. They cut the number line into pieces: below the first cut is 0, the
    first cut itself is 1, between the first and the second is 2, and so on. A comparison is a range of pieces."""

    def __init__(self, numbers: Iterable[int | Decimal]) -> None:
        self._cuts = sorted(set(numbers))
        self._near = np.array([_near(cut) for cut in self._cuts], np.float64)
        self.pieces = 2 * len(self._cuts) + 1

    def range(self, op: Order, number: int | Decimal) -> tuple[int, int]:
        """The lowest and highest piece that satisfies the comparison."""
        cut = 2 * bisect_left(self._cuts, number) + 1
        match op:
            case Order.LT:
                return 0, cut - 1
            case Order.LE:
                return 0, cut
            case Order.GT:
                return cut + 1, HIGHEST
        return cut, HIGHEST

    def codes(self, column: Column, exactly: Callable[[list[int]], Column]) -> Ints:
        """The piece of every value of the column, -1 for what is no number. `exactly` reads some of them without rounding.

        Rounding to a float keeps order, so a float says for certain on which side of a cut the number is, unless it is equal.
        """
        numbers = _floats(column)
        low, high = np.searchsorted(self._near, numbers, "left"), np.searchsorted(self._near, numbers, "right")
        pieces = (low + high).astype(np.int32)
        equal = np.flatnonzero(low != high)
        if len(equal):
            exact = exactly(equal.tolist())
            between = zip(exact, low[equal].tolist(), high[equal].tolist(), strict=True)
            pieces[equal] = [self._piece(number, *around) for number, *around in between]
        pieces[np.isnan(numbers)] = NO_NUMBER
        return pieces

    def _piece(self, number: Any, low: int, high: int) -> int:
        return bisect_left(self._cuts, number, low, high) + bisect_right(self._cuts, number, low, high)


def _floats(column: Column) -> NDArray[np.float64]:
    """The numbers nearest to the values; NaN for what is no number."""
    if set(map(type, column)) <= {float, int}:
        try:
            return np.array(column, np.float64)
        except OverflowError:
            pass
    return np.fromiter(
        (_near(value) if type(value) in (int, float, Decimal) else np.nan for value in column), np.float64, len(column)
    )


def _near(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        return np.inf if number > 0 else -np.inf
