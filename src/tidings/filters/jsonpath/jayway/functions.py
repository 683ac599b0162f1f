"""The functions at the end of json-path paths. What cannot be worked out makes the path missing.

| function | of | gives |
|---|---|---|
| `min` `max` `sum` `avg` `stddev` | the numbers in an array, and those given as arguments | a number; missing when there is none |
| `length` `size` | an array or object; with a path: what is inside of what that finds | how many; of anything else null |
| `keys` | an object | its names; of anything else null |
| `first` `last` `index(n)` | an array | that element; missing beyond the end |
| `concat(…)` | the texts in an array, and the arguments | one text |
| `append(…)` | an array | the array and the arguments behind it |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from itertools import chain
from typing import Any, Final, TypeAlias

from tidings.filters.java_text import whole_text
from tidings.filters.jsonpath.compiled_path import Lost, PathRun
from tidings.filters.jsonpath.values import JsonKind, exact, kind_of

_CHARACTERS_A_UNIT = 32

Function: TypeAlias = Callable[[Any, list[Any], PathRun], object]
"""Called with the value it stands behind and the values of its arguments."""


def _numbers(value: object, arguments: list[Any], run: PathRun) -> list[Any]:
    lists = [value if isinstance(value, list) else [], *(one if isinstance(one, list) else [one] for one in arguments)]
    run.work.spend(sum(map(len, lists)))
    found = [exact(one) for values in lists for one in values if kind_of(one) is JsonKind.NUMBER]
    if not found or any(isinstance(one, Decimal) and one.is_nan() for one in found):
        raise Lost
    return found


def _double(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        raise Lost from None


def _finite(number: float) -> Decimal:
    if not math.isfinite(number):
        raise Lost
    return Decimal(repr(number))


def _sum(numbers: list[Any]) -> object:
    if all(isinstance(number, int) for number in numbers):
        return sum(numbers)
    return _finite(sum(map(_double, numbers)))


def _average(numbers: list[Any]) -> object:
    return _finite(sum(map(_double, numbers)) / len(numbers))


def _deviation(numbers: list[Any]) -> object:
    doubles = [_double(number) for number in numbers]
    total, squares = sum(doubles), sum(number * number for number in doubles)
    spread = squares / len(doubles) - total * total / len(doubles) / len(doubles)
    return _finite(math.sqrt(spread) if spread >= 0 else math.nan)


def _of_numbers(made: Callable[[list[Any]], object]) -> Function:
    return lambda value, arguments, run: made(_numbers(value, arguments, run))


def _length(value: object, arguments: list[Any], run: PathRun) -> object:
    counted = arguments[0] if arguments and isinstance(arguments[0], list) else value
    return len(counted) if isinstance(counted, (list, dict)) else None


def _keys(value: object, arguments: list[Any], run: PathRun) -> object:
    if not isinstance(value, dict):
        return None
    run.work.spend(len(value))
    return list(value)


def _at(index: int) -> Function:
    return lambda value, arguments, run: _element(value, index)


def _index(value: object, arguments: list[Any], run: PathRun) -> object:
    if not arguments or not isinstance(arguments[0], int):
        raise Lost
    return _element(value, arguments[0])


def _element(value: object, index: int) -> object:
    if not isinstance(value, list) or not -len(value) <= index < len(value):
        raise Lost
    return value[index]


def _concatenated(value: object, arguments: list[Any], run: PathRun) -> object:
    texts = [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
    parts: list[str] = []
    given = [one for argument in arguments for one in (argument if isinstance(argument, list) else [argument])]
    # One after the other, so that what is too much ends before it is all written.
    for part in chain(texts, (whole_text(one) or "" for one in given)):
        run.work.spend(1 + len(part) // _CHARACTERS_A_UNIT)
        parts.append(part)
    return "".join(parts)


def _appended(value: object, arguments: list[Any], run: PathRun) -> object:
    if not isinstance(value, list):
        return value
    run.work.spend(len(value))
    return [*value, *arguments]


FUNCTIONS: Final[Mapping[str, Function]] = {
    "min": _of_numbers(min),
    "max": _of_numbers(max),
    "sum": _of_numbers(_sum),
    "avg": _of_numbers(_average),
    "stddev": _of_numbers(_deviation),
    "length": _length,
    "size": _length,
    "keys": _keys,
    "first": _at(0),
    "last": _at(-1),
    "index": _index,
    "concat": _concatenated,
    "append": _appended,
}
