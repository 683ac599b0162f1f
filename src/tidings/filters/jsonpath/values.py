"""Kinds, equality and order of decoded JSON values: exact at any size, and paid for from the work of the evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from enum import Enum
from operator import eq, ge, gt, le, lt
from typing import Any, Final

from tidings.filters.jsonpath.work import Work


class JsonKind(Enum):
    """What a value is. True is no number."""

    NULL = "null"
    BOOLEAN = "a boolean"
    NUMBER = "a number"
    TEXT = "a text"
    ARRAY = "an array"
    OBJECT = "an object"
    NONE = "nothing"


_KINDS: dict[type, JsonKind] = {
    type(None): JsonKind.NULL,
    bool: JsonKind.BOOLEAN,
    int: JsonKind.NUMBER,
    float: JsonKind.NUMBER,
    Decimal: JsonKind.NUMBER,
    str: JsonKind.TEXT,
    list: JsonKind.ARRAY,
    dict: JsonKind.OBJECT,
}

_HOLDING = (JsonKind.ARRAY, JsonKind.OBJECT)

ORDERS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {"<": lt, "<=": le, ">": gt, ">=": ge}


def kind_of(value: object) -> JsonKind:
    """Subclasses count as what they derive from: a number may keep its spelling in a class of its own."""
    known = _KINDS.get(type(value))
    if known is not None:
        return known
    return next((kind for one, kind in _KINDS.items() if isinstance(value, one)), JsonKind.NONE)


def exact(number: Any) -> Any:
    """The number as something that compares exactly: a float stands for the shortest text that gives it."""
    return Decimal(repr(float(number))) if isinstance(number, float) else number


def equal(one: object, other: object, work: Work) -> bool:
    """Equal as JSON, arrays and objects through and through."""
    kind = kind_of(one)
    if kind is not kind_of(other):
        return False
    return _through(one, other, work) if kind in _HOLDING else _same(one, other, kind, work)


def _through(one: object, other: object, work: Work) -> bool:
    pairs = [(one, other)]
    while pairs:
        one, other = pairs.pop()
        kind = kind_of(one)
        if kind is not kind_of(other):
            return False
        if kind in _HOLDING:
            inner = _inner(one, other, work)
            if inner is None:
                return False
            pairs.extend(inner)
        elif not _same(one, other, kind, work):
            return False
    return True


def _same(one: Any, other: Any, kind: JsonKind, work: Work) -> bool:
    if kind is JsonKind.NUMBER:
        return compared(eq, one, other, work)
    work.spend_on(one, other)
    return kind is not JsonKind.NONE and bool(one == other)


def _inner(one: Any, other: Any, work: Work) -> list[tuple[object, object]] | None:
    """The pairs inside two arrays or two objects; None when they are unequal already."""
    work.spend(1)
    if len(one) != len(other):
        return None
    work.spend(len(one))
    if isinstance(one, dict):
        return [(value, other[name]) for name, value in one.items()] if one.keys() == other.keys() else None
    return list(zip(one, other, strict=True))


def compared(order: Callable[[Any, Any], bool], one: Any, other: Any, work: Work) -> bool:
    """Whether two numbers, or two texts, stand in this order. What is no number (NaN) stands in none."""
    work.spend_on(one, other)
    if type(one) is not type(other):
        work.spend(_rewriting(one) + _rewriting(other))
    try:
        return order(exact(one), exact(other))
    except ArithmeticError:
        return False


def _rewriting(number: Any) -> int:
    """What it costs to make a decimal number of a whole one, which takes the square of its length."""
    return number.bit_length() // 64 if isinstance(number, int) else 0


def in_order(order: Callable[[Any, Any], bool], one: object, other: object, work: Work) -> bool:
    """Two numbers, or two texts in the order of their Unicode code points; nothing else has an order."""
    kind = kind_of(one)
    if kind is not kind_of(other) or kind not in (JsonKind.NUMBER, JsonKind.TEXT):
        return False
    return compared(order, one, other, work)
