"""Values to small numbers: a vocabulary per path for what filters name, cuts per path for the numbers they compare with."""

from __future__ import annotations

import math
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import cached_property
from itertools import pairwise, repeat
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
_WHOLE = 2.0**53
_TRUE, _FALSE, _CONTAINER = object(), object(), object()
_BOOLEANS = {True: _TRUE, False: _FALSE}


class Vocabulary:
    """The values that filters name at one path, each with a code from 2."""

    def __init__(self) -> None:
        self._codes: dict[Any, int] = {MISSING: ABSENT}
        self._keys: list[Any] = []
        self.confusable = False
        self.numeric = False

    def __len__(self) -> int:
        return len(self._codes) + 1

    def add(self, literal: Literal) -> int:
        """The code of this value, a new one if need be."""
        key = literal.value
        if type(key) is not str:
            key = self._keyed(literal)
        code = self._codes.get(key)
        if code is None:
            code = self._codes[key] = len(self._codes) + 1
        return code

    def _keyed(self, literal: Literal) -> Any:
        if literal.is_number:
            self.numeric = True
            self.confusable |= literal.value in (0, 1)
        elif isinstance(literal.value, bool):
            self.confusable = True
            return _BOOLEANS[literal.value]
        return literal.value

    def key(self, code: int) -> Any:
        """What stands for the value of this code, as `key_of` gives it."""
        if len(self._keys) != len(self._codes):
            self._keys = list(self._codes)
        return self._keys[max(0, code - 1)]

    def codes(self, column: Column) -> Ints:
        """The code of every value of the column."""
        if self.confusable:
            column = list(map(key_of, column))
        try:
            return self._looked_up(column)
        except TypeError:  # an array or object among them
            return self._looked_up(list(map(hashable, column)))

    def code(self, value: Any) -> int:
        """The code of one value."""
        return self._codes.get(hashable(key_of(value)), UNNAMED)

    def _looked_up(self, column: Column) -> Ints:
        return np.fromiter(map(self._codes.get, column, repeat(UNNAMED)), np.int32, len(column))


def key_of(value: Any) -> Any:
    """The value, or what stands for it: as keys, true must not be 1."""
    return _BOOLEANS[value] if type(value) is bool else value


def hashable(value: Any) -> Any:
    """The value, or for an array or object, which nothing equals, something that can be looked up in vain."""
    return _CONTAINER if isinstance(value, (list, dict)) else value


class Cuts:
    """The numbers that filters compare with at one path. They cut the number line into pieces: below the first cut is 0, the
    first cut itself is 1, between the first and the second is 2, and so on. A comparison is a range of pieces."""

    def __init__(self, numbers: Iterable[int | Decimal]) -> None:
        self._cuts = sorted(set(numbers))
        self._nearest = [_near(cut) for cut in self._cuts]
        self._near = np.array(self._nearest, np.float64)
        self._near_or_nan = np.array([*self._nearest, math.nan], np.float64)
        self.pieces = 2 * len(self._cuts) + 1
        self.nearest = frozenset(self._nearest)
        """Floats near the cuts. Any other float is in a piece that is known without reading the number exactly."""

    @cached_property
    def marked(self) -> bool:
        """Whether floats can stand for pieces in sorted lists, see `mark`. Not where cuts are too large, or too near to others."""
        small = all(abs(near) < _WHOLE for near in self._nearest)
        return small and all(math.nextafter(a, math.inf) < b for a, b in pairwise(self._nearest))

    def mark(self, piece: int) -> float:
        """The lowest float of the piece: marks are in the order of pieces, and an int or float that is not `nearest` to a cut is
        between the mark of its own piece and the next."""
        if piece < 1:
            return -math.inf if piece == NO_NUMBER else -sys.float_info.max
        near = self._nearest[(piece - 1) // 2]
        return near if piece % 2 else math.nextafter(near, math.inf)

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
        low = np.searchsorted(self._near, numbers)
        pieces = (2 * low).astype(np.int32)
        equal = np.flatnonzero(self._near_or_nan[low] == numbers)
        if len(equal):
            exact, around = exactly(equal.tolist()), numbers[equal].tolist()
            pieces[equal] = [self._piece(number, *self._near_to(near)) for number, near in zip(exact, around, strict=True)]
        pieces[np.isnan(numbers)] = NO_NUMBER
        return pieces

    def piece(self, value: Any, exactly: Callable[[], Any]) -> int:
        """The piece of one value. `exactly` reads it without rounding."""
        if type(value) not in (int, float, Decimal):
            return NO_NUMBER
        low, high = self._near_to(_near(value))
        if low == high:
            return 2 * low
        return self._piece(exactly() if type(value) is float else value, low, high)

    def _near_to(self, number: float) -> tuple[int, int]:
        """The numbers of the cuts that are as near to a number as floats can tell: from, and up to but not including."""
        low = bisect_left(self._nearest, number)
        return low, bisect_right(self._nearest, number, low)

    def _piece(self, number: Any, low: int, high: int) -> int:
        return bisect_left(self._cuts, number, low, high) + bisect_right(self._cuts, number, low, high)


def _floats(column: Column) -> NDArray[np.float64]:
    """The numbers nearest to the values; NaN for what is no number."""
    kinds = set(map(type, column))
    try:
        if kinds <= {float, int}:
            return np.array(column, np.float64)
        if kinds <= {float, int, Decimal}:
            return np.fromiter(map(float, column), np.float64, len(column))
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
