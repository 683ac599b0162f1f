"""The operators of json-path predicates, each a function of what is on its left and on its right.

| operator | holds when |
|---|---|
| `==` `!=` `<` `<=` `>` `>=` | as `jayway_values` compares; `!=` also for what is not there |
| `===` `!==` | the same, for values of one kind only |
| `=~` | the text of the value fits the pattern as a whole; of an array, some element's |
| `in` `nin` | the value is (not) in the list |
| `subsetof` `anyof` `noneof` | all, some, none of the list on the left are in the one on the right |
| `contains` | the list or text on the left holds the value |
| `size` | the text or list is that long |
| `empty` | `empty true`: the text, list or object has nothing in it; `empty false`: it has |

An operand that cannot be what the operator needs makes the whole predicate false, also under `!`: `Unfit`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from tidings.filters.jsonpath import patterns
from tidings.filters.jsonpath.compiled_path import PathRun
from tidings.filters.jsonpath.jayway.values import same, strictly_same, text_of
from tidings.filters.jsonpath.values import ORDERS, JsonKind, in_order, kind_of


class Unfit(Exception):
    """An operand is not what the operator needs. Never leaves a predicate."""


Operator: TypeAlias = Callable[[Any, Any, PathRun], bool]


def _listed(value: object) -> list[object]:
    if not isinstance(value, list):
        raise Unfit
    return value


def _held(values: list[object], value: object, run: PathRun) -> bool:
    run.work.spend(1 + len(values))
    return any(same(value, one, run.work) for one in values)


def _in(left: object, right: object, run: PathRun) -> bool:
    if isinstance(right, dict):
        return False
    return _held(_listed(right), left, run)


def _lists(left: object, right: object) -> tuple[list[object], list[object]] | None:
    """Both as lists; None when one is an object, of which nothing holds."""
    if isinstance(left, dict) or isinstance(right, dict):
        return None
    return _listed(left), _listed(right)


def _subset_of(left: object, right: object, run: PathRun) -> bool:
    lists = _lists(left, right)
    return lists is not None and all(_held(lists[1], one, run) for one in lists[0])


def _any_of(left: object, right: object, run: PathRun) -> bool:
    lists = _lists(left, right)
    return lists is not None and any(_held(lists[1], one, run) for one in lists[0])


def _none_of(left: object, right: object, run: PathRun) -> bool:
    return _lists(left, right) is not None and not _any_of(left, right, run)


def _contains(left: object, right: object, run: PathRun) -> bool:
    if isinstance(left, str) and isinstance(right, str):
        run.work.spend_on(left, left)
        return right in left
    return isinstance(left, list) and _held(left, right, run)


def _size(left: object, right: object, run: PathRun) -> bool:
    if kind_of(right) is not JsonKind.NUMBER or not isinstance(left, (str, list)):
        return False
    return same(len(left), right, run.work)


def _empty(left: object, right: object, run: PathRun) -> bool:
    if not isinstance(left, (str, list, dict)):
        return False
    if not isinstance(right, bool):
        raise Unfit
    return (not left) is right


def _ordering(order: Callable[[Any, Any], bool]) -> Operator:
    return lambda left, right, run: in_order(order, left, right, run.work)


OPERATORS: Final[Mapping[str, Operator]] = {
    "==": lambda left, right, run: same(left, right, run.work),
    "!=": lambda left, right, run: not same(left, right, run.work),
    "===": lambda left, right, run: strictly_same(left, right, run.work),
    "!==": lambda left, right, run: not strictly_same(left, right, run.work),
    **{sign: _ordering(order) for sign, order in ORDERS.items()},
    "in": _in,
    "nin": lambda left, right, run: not _in(left, right, run),
    "subsetof": _subset_of,
    "anyof": _any_of,
    "noneof": _none_of,
    "contains": _contains,
    "size": _size,
    "empty": _empty,
}


def fitting(fits: patterns.Fits, value: object, run: PathRun) -> bool:
    """What `=~` says of a value. What has no text counts as the empty text."""
    if isinstance(value, list):
        run.work.spend(len(value))
        return any(patterns.tried(fits, _text(one), run) for one in value)
    return patterns.tried(fits, _text(value), run)


def _text(value: object) -> str:
    match kind_of(value):
        case JsonKind.TEXT:
            return str(value)
        case JsonKind.NUMBER:
            return text_of(value)
        case JsonKind.BOOLEAN:
            return "true" if value else "false"
    return ""
