"""The plain reading of the algebra: slow, obviously right, and the measure for everything faster. Never raises."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from operator import ge, gt, le, lt
from typing import Any, TypeAlias, assert_never

from tidings.events.avro.payloads import NO_SCHEMAS, SchemaBook
from tidings.events.model import Event
from tidings.filters import backtracking_regex, cesql, text_patterns
from tidings.filters.algebra import (
    AllOf,
    Always,
    AnyOf,
    Cesql,
    Compare,
    Each,
    Exists,
    Filter,
    InNetwork,
    Inside,
    Leaf,
    Literal,
    Not,
    OneOf,
    Order,
    Quantifier,
    SlowText,
    Text,
    TextOp,
    TextOrder,
    ValueKind,
)
from tidings.filters.event_values import Read, reading
from tidings.filters.paths import DataPath
from tidings.filters.payload import MISSING, dig

__all__ = ["Read", "Test", "holds", "matches", "reading", "test_of", "text_test"]

Test: TypeAlias = Callable[[object], bool]
"""Whether the value found satisfies a condition."""

NUMBERS = (int, Decimal)
_ORDERS: Mapping[Order, Callable[[Any, Any], bool]] = {Order.LT: lt, Order.LE: le, Order.GT: gt, Order.GE: ge}


def matches(filter: Filter, event: Event, book: SchemaBook = NO_SCHEMAS) -> bool:
    """Whether the filter holds for the event. `book` knows the schemas of Avro payloads."""
    return holds(filter, reading(event, book))


def holds(filter: Filter, read: Read) -> bool:
    """Whether the filter holds for the values that `read` gives."""
    match filter:
        case AllOf(parts):
            return all(holds(part, read) for part in parts)
        case AnyOf(parts):
            return any(holds(part, read) for part in parts)
        case Not(part):
            return not holds(part, read)
        case Always(value):
            return value
    return test_of(filter)(read(filter.path))


def test_of(leaf: Leaf) -> Test:
    """The condition as a function of the value found. The only place that says what conditions mean."""
    match leaf:
        case Compare(_, Order.EQ, value):
            return _equals(value)
        case Compare(_, Order.NE, value):
            equals = _equals(value)
            return lambda found: found is not MISSING and not equals(found)
        case Compare(_, op, value):
            return _ordered(op, value)
        case OneOf(_, values):
            return _one_of(values)
        case Text(_, op, pattern):
            fits = text_test(op, pattern)
            return lambda found: type(found) is str and fits(found)
        case SlowText(_, op, pattern, limit):
            fits = backtracking_regex.trying(pattern, op is TextOp.WHOLE, limit)
            return lambda found: type(found) is str and fits(found)
        case TextOrder(_, op, text):
            return _text_ordered(op, text)
        case Exists():
            return lambda found: found is not MISSING
        case Each(_, over, condition):
            each = _each(over, test_of(condition))
            return _sharing(condition.limit, each) if isinstance(condition, SlowText) else each
        case InNetwork(_, network):
            return _in_network(network)
        case Inside(_, kind, part):
            return _inside(kind, _on_item(part))
        case Cesql(_, text):
            passes = cesql.parse(text).passes
            return lambda found: type(found) is tuple and passes(found)
    assert_never(leaf)


def _equals(value: Literal) -> Test:
    wanted = value.value
    if value.is_number:
        return lambda found: type(found) in NUMBERS and found == wanted
    if isinstance(wanted, str):
        return lambda found: type(found) is str and found == wanted
    return lambda found: found is wanted


def _ordered(op: Order, value: Literal) -> Test:
    wanted, stands = value.value, _ORDERS[op]
    if isinstance(wanted, str):
        return lambda found: type(found) is str and stands(found, wanted)
    return lambda found: type(found) in NUMBERS and stands(found, wanted)


def _text_ordered(op: Order, text: str) -> Test:
    wanted, stands = _utf16(text), _ORDERS[op]
    return lambda found: type(found) is str and stands(_utf16(found), wanted)


def _utf16(text: str) -> bytes:
    """Bytes that are ordered as the UTF-16 code units of the text are."""
    return text.encode("utf-16-be", "surrogatepass")


def _each(over: Quantifier, test: Test) -> Test:
    match over:
        case Quantifier.EVERY:
            return lambda found: type(found) is tuple and len(found) > 0 and all(map(test, found))
        case Quantifier.SOME:
            return lambda found: type(found) is tuple and any(map(test, found))
        case Quantifier.NONE:
            return lambda found: type(found) is tuple and not any(map(test, found))
    assert_never(over)


def _sharing(limit: float, test: Test) -> Test:
    """The test of many values with a slow expression: all of them together take no longer than one may."""

    def shared(found: object) -> bool:
        with backtracking_regex.within(limit):
            return test(found)

    return shared


def _in_network(network: str) -> Test:
    known = ipaddress.ip_network(network, strict=False)

    def test(found: object) -> bool:
        if type(found) is not str:
            return False
        try:
            return ipaddress.ip_address(found) in known
        except ValueError:
            return False

    return test


def _inside(kind: ValueKind, test: Test) -> Test:
    objects = kind is ValueKind.OBJECT

    def inside(found: object) -> bool:
        if type(found) is not list:
            return found is not MISSING and isinstance(found, dict) is objects and test(found)
        return any(isinstance(item, dict) is objects and test(item) for item in opened(found))

    return inside


def opened(array: list[object]) -> Iterator[object]:
    """What the array holds, and what arrays in it hold."""
    waiting = array[::-1]
    while waiting:
        item = waiting.pop()
        if type(item) is list:
            waiting += item[::-1]
        else:
            yield item


def _on_item(part: Filter) -> Test:
    """What a part of `Inside` says about the item it looks at."""
    match part:
        case AllOf(parts):
            tests = [_on_item(one) for one in parts]
            return lambda item: all(test(item) for test in tests)
        case AnyOf(parts):
            tests = [_on_item(one) for one in parts]
            return lambda item: any(test(item) for test in tests)
        case Not(negated):
            inner = _on_item(negated)
            return lambda item: not inner(item)
        case Always(value):
            return lambda item: value
    test = test_of(part)
    if not isinstance(part.path, DataPath):
        return test
    steps = part.path.steps
    return lambda item: test(dig(item, steps))


def _one_of(values: tuple[Literal, ...]) -> Test:
    plain = frozenset(value.value for value in values if value.is_number or isinstance(value.value, str))
    others = tuple(value.value for value in values if not value.is_number and not isinstance(value.value, str))

    def test(found: object) -> bool:
        if type(found) is str or type(found) in NUMBERS:
            return found in plain
        return any(found is other for other in others)

    return test


def text_test(op: TextOp, pattern: str) -> Callable[[str], bool]:
    """Whether a text fits."""
    match op:
        case TextOp.PREFIX:
            return lambda text: text.startswith(pattern)
        case TextOp.SUFFIX:
            return lambda text: text.endswith(pattern)
        case TextOp.CONTAINS:
            return lambda text: pattern in text
        case TextOp.LIKE:
            return text_patterns.like_test(pattern)
        case TextOp.REGEX:
            return text_patterns.searching(pattern)
        case TextOp.WHOLE:
            return text_patterns.fitting(pattern)
    assert_never(op)
