"""Horizon's `advancedSelectionFilter` (HOR-72 to HOR-91).

| written | means | refused |
|---|---|---|
| `{"eq": {"field": "$.a", "value": 5}}` | the one value at the path equals it | a value that is null or an object |
| `ne` | there is one value and it differs, other kinds too | |
| `lt` `le` `gt` `ge` | the one value is of the same kind and in that order; false < true; texts by UTF-16 | |
| `in`, `nin` | the one value equals some, or none, of the list | no list |
| `rx` | the one value is a text that the expression fits as a whole | no text; what RE2 cannot say |
| `ct`, `nct` | some, or none, of the values at the path equals it; `nct` holds for no values too | |
| `{"and": […]}`, `{"or": […]}` | all, some; of none: always, never | no list |

A path is json-path's; one that leads nowhere makes every operator false. Which values there are says `ScalarsPath`. A list as
value equals nothing, except in `in` and `nin`, whose inner lists equal nothing. Operator names may be written in any letter
case; only the first key counts (`warnings` tells the others). Refused too: unknown operators, an object without key, a missing
`field` or `value`, a path that cannot be read, more than 42 operators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tidings.errors import FilterSyntaxError
from tidings.filters.algebra import (
    AllOf,
    Always,
    Compare,
    Each,
    Exists,
    Filter,
    Literal,
    OneOf,
    Order,
    Quantifier,
    Text,
    TextOp,
    TextOrder,
    all_of,
    any_of,
    literal,
    there_but_not,
)
from tidings.filters.dialects.documents import placed
from tidings.filters.paths import ITEM, OnlyScalarPath, ScalarsPath

MAX_OPERATORS = 42
MAX_LISTS = 32
_ORDERS = {"lt": Order.LT, "le": Order.LE, "gt": Order.GT, "ge": Order.GE}
LEAVES = ("eq", "ne", "lt", "le", "gt", "ge", "rx", "in", "nin", "ct", "nct")
_OPERATORS = ", ".join((*LEAVES, "and", "or"))
_VALUES = "a text, number, boolean, or a list of them"


def parse(raw: object) -> Filter:
    """The filter that this document stands for. Raises FilterSyntaxError with the place, such as `and[1].rx.value`."""
    return _Reader().read(raw, "")


def operator_of(raw: Mapping[str, Any]) -> tuple[str, Any]:
    """The operator of a document that was parsed, in lower case, and what it is given."""
    name, inner = next(iter(raw.items()))
    return name.lower(), inner


def warnings(raw: object, at: str = "") -> Iterator[str]:
    """What a document that can be parsed holds beside what counts."""
    if not isinstance(raw, dict) or not raw:
        return
    (name, inner), *others = raw.items()
    place = _below(at, name)
    yield from (f"{_below(at, other)} is ignored: only the first operator of an object counts" for other, _ in others)
    if isinstance(inner, list):
        for number, part in enumerate(inner):
            yield from warnings(part, f"{place}[{number}]")
    elif isinstance(inner, dict):
        yield from (
            f"{place}.{key} is ignored: an operator has a field and a value" for key in inner.keys() - {"field", "value"}
        )


class _Reader:
    """Reads operators, counting them: nested ones count too."""

    def __init__(self) -> None:
        self._operators = 0

    def read(self, raw: object, at: str) -> Filter:
        if not isinstance(raw, dict) or not raw:
            raise FilterSyntaxError("an operator is missing", at=at, found=raw, expected=f"an object with one of {_OPERATORS}")
        written, inner = next(iter(raw.items()))
        name, place = str(written).lower(), _below(at, written)
        self._count(place)
        match name:
            case "and":
                return all_of(*self._parts(inner, place))
            case "or":
                return any_of(*self._parts(inner, place))
        if name not in LEAVES:
            raise FilterSyntaxError("this operator is not known", at=place, found=written, expected=_OPERATORS)
        return _leaf(name, inner, place)

    def _parts(self, raw: object, at: str) -> list[Filter]:
        if not isinstance(raw, list):
            raise FilterSyntaxError("operators are missing", at=at, found=raw, expected="a list of operators")
        return [self.read(part, f"{at}[{number}]") for number, part in enumerate(raw)]

    def _count(self, at: str) -> None:
        self._operators += 1
        if self._operators > MAX_OPERATORS:
            raise FilterSyntaxError("the filter has too many operators", at=at, expected=f"at most {MAX_OPERATORS}")


def _leaf(name: str, raw: object, at: str) -> Filter:
    if not isinstance(raw, dict):
        raise FilterSyntaxError("field and value are missing", at=at, found=raw, expected="an object with field and value")
    query = _query(raw.get("field"), f"{at}.field")
    if raw.get("value") is None:
        raise FilterSyntaxError("the value is missing", at=f"{at}.value", expected=_VALUES)
    value, place = raw["value"], f"{at}.value"
    match name:
        case "in" | "nin":
            return _set(name, query, value, place)
        case "rx":
            return _regex(query, value, place)
    return _compared(name, query, _value(value, place))


def _query(raw: object, at: str) -> str:
    if not isinstance(raw, str) or not raw:
        raise FilterSyntaxError("the path is missing", at=at, found=raw, expected="a JSONPath such as $.order.state")
    placed(at, lambda: OnlyScalarPath(raw))
    return raw


def _compared(name: str, query: str, value: Literal | None) -> Filter:
    """`value` is None for a list, which equals nothing."""
    one, many = OnlyScalarPath(query), ScalarsPath(query)
    match name:
        case "eq":
            return Compare(one, Order.EQ, value) if value else _never(one)
        case "ne":
            return Compare(one, Order.NE, value) if value else Exists(one)
        case "ct":
            return Each(many, Quantifier.SOME, Compare(ITEM, Order.EQ, value)) if value else _never(many)
        case "nct":
            return Each(many, Quantifier.NONE, Compare(ITEM, Order.EQ, value)) if value else Exists(many)
    return _ordered(_ORDERS[name], one, value) if value else _never(one)


def _ordered(op: Order, one: OnlyScalarPath, value: Literal) -> Filter:
    match value.value:
        case str(text):
            return TextOrder(one, op, text)
        case bool(border):
            return _booleans(op, one, border)
    return Compare(one, op, value)


def _booleans(op: Order, one: OnlyScalarPath, border: bool) -> Filter:
    """false < true, so an order is a set of booleans."""
    orders: Mapping[Order, Callable[[bool], bool]] = {
        Order.LT: lambda found: found < border,
        Order.LE: lambda found: found <= border,
        Order.GT: lambda found: found > border,
        Order.GE: lambda found: found >= border,
    }
    fitting = tuple(Literal(found) for found in (False, True) if orders[op](found))
    return OneOf(one, fitting) if fitting else _never(one)


def _set(name: str, query: str, raw: object, at: str) -> Filter:
    one = OnlyScalarPath(query)
    if not isinstance(raw, list):
        raise FilterSyntaxError(f"`{name}` needs a list", at=at, found=raw, expected="a list of texts, numbers and booleans")
    found = [_value(value, f"{at}[{number}]") for number, value in enumerate(raw)]
    values = tuple(dict.fromkeys(value for value in found if value))
    if name == "in":
        return OneOf(one, values) if values else _never(one)
    return there_but_not(OneOf(one, values)) if values else Exists(one)


def _regex(query: str, raw: object, at: str) -> Filter:
    if not isinstance(raw, str):
        raise FilterSyntaxError("`rx` needs a text", at=at, found=raw, expected="a regular expression")
    return placed(at, lambda: Text(OnlyScalarPath(query), TextOp.WHOLE, raw))


def _value(raw: object, at: str, depth: int = 1) -> Literal | None:
    """The value to compare with; None for a list of such values."""
    if isinstance(raw, list):
        if depth > MAX_LISTS:
            raise FilterSyntaxError("lists are nested too deeply", at=at, expected=f"at most {MAX_LISTS} levels")
        for number, inner in enumerate(raw):
            _value(inner, f"{at}[{number}]", depth + 1)
        return None
    if raw is None or isinstance(raw, dict):
        raise FilterSyntaxError("this cannot be compared with", at=at, found=raw, expected=_VALUES)
    return placed(at, lambda: literal(raw))


def _never(path: OnlyScalarPath | ScalarsPath) -> Filter:
    """Whatever is there, it is not so. The path stays, so that an explanation can tell what was found."""
    return AllOf((Exists(path), Always(False)))


def _below(at: str, name: object) -> str:
    return f"{at}.{name}" if at else str(name)
