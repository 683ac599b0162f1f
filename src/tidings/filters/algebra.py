"""What a filter is: a small tree of frozen values. Dialects make them, `meaning` reads them, `Router` indexes them.

A condition looks at the value found at its path. The rules are these, for every dialect:

* Missing: the path leads nowhere (no such attribute or member, an index beyond the end, a member of something that is no
  object, a payload that is no JSON). Every condition on a missing value is false, `!=` included; `Not` of it is true.
* null is a value: it exists, equals only null, and is neither less nor greater than anything.
* `=` holds for two values of the same kind that are equal. Kinds are null, boolean, number, text, array, object;
  true is not 1 and "1" is not 1. Numbers are compared by their exact value at any size: 1 = 1.0, and
  9007199254740993 is not 9007199254740992. Texts are compared character by character, case matters.
* `!=` holds for every value that is there and is not equal, whatever its kind.
* `< <= > >=` hold between two numbers, or between two texts (in the order of their Unicode code points), else never.
* `OneOf` holds when the value equals one of the values given.
* Text operators hold for texts only. The empty text begins, ends and is contained in every text.
* `TextOrder` is the order of texts by UTF-16 code units, which is Java's; it differs from `Compare` beyond U+FFFF only.
* `Each` looks at several values: `every` needs at least one, `no` holds for none at all, and where the path leads nowhere
  none of them holds.
* Arrays and objects, empty ones too, exist but equal nothing that can be written here; they are not searched, but by
  `Inside`, which opens arrays.
* `AllOf`, `AnyOf` and `Not` are plain two-valued logic: there is no "unknown".
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import TypeAlias

from tidings.errors import FilterSyntaxError
from tidings.filters import cesql, text_patterns
from tidings.filters.paths import ITEM, AttributesPath, DataPath, Path, ValuesPath

Scalar: TypeAlias = bool | int | Decimal | str | None

_DIGITS_OF_INT = 13_000
"""Bits beyond which a whole number is kept as Decimal: Python will not print such an int."""


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """A value as a filter gives it. Unlike in Python, true is not 1. Build it with `literal`."""

    value: Scalar

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal):
            return NotImplemented
        return isinstance(self.value, bool) is isinstance(other.value, bool) and self.value == other.value

    def __hash__(self) -> int:
        return hash((isinstance(self.value, bool), self.value))

    @property
    def is_number(self) -> bool:
        return isinstance(self.value, (int, Decimal)) and not isinstance(self.value, bool)


def literal(value: object) -> Literal:
    """The literal for a JSON scalar. Raises FilterSyntaxError for anything else, and for text that is no Unicode."""
    match value:
        case None | bool():
            return Literal(value)
        case int():
            return Literal(value if value.bit_length() < _DIGITS_OF_INT else Decimal(value))
        case float():
            return literal(Decimal(repr(value)))
        case Decimal() if value.is_finite():
            return Literal(value)
        case str():
            text_patterns.check(value)
            return Literal(value)
    raise FilterSyntaxError("this is no value to compare with", found=value, expected="a text, number, boolean or null")


class Order(StrEnum):
    """How `Compare` compares."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


@dataclass(frozen=True, slots=True)
class Compare:
    """The value at the path stands in this order to the literal."""

    path: Path
    op: Order
    value: Literal

    def __post_init__(self) -> None:
        if self.op in (Order.EQ, Order.NE) or self.value.is_number or isinstance(self.value.value, str):
            return
        raise FilterSyntaxError(f"nothing is {self.op} this", found=self.value.value, expected="a number or a text")


@dataclass(frozen=True, slots=True)
class OneOf:
    """The value at the path equals one of the literals."""

    path: Path
    values: tuple[Literal, ...]

    def __post_init__(self) -> None:
        if not self.values:
            raise FilterSyntaxError("a set needs at least one value")


class TextOp(StrEnum):
    """What `Text` looks for."""

    PREFIX = "starts with"
    SUFFIX = "ends with"
    CONTAINS = "contains"
    LIKE = "like"
    REGEX = "matches"
    WHOLE = "fully matches"


@dataclass(frozen=True, slots=True)
class Text:
    """The value at the path is a text that fits the pattern. `LIKE` fits the whole text, `REGEX` is searched for in it,
    `WHOLE` is a regular expression that fits the whole text."""

    path: Path
    op: TextOp
    pattern: str

    def __post_init__(self) -> None:
        text_patterns.check(self.pattern)
        if self.op in (TextOp.REGEX, TextOp.WHOLE):
            text_patterns.check_expression(self.pattern)
        if self.op is TextOp.LIKE:
            text_patterns.like_parts(self.pattern)


@dataclass(frozen=True, slots=True)
class SlowText:
    """Like `Text` with `REGEX` or `WHOLE`, for an expression that RE2 cannot say: it is tried by backtracking, for `limit`
    seconds at the most, after which it does not hold. Build it with `expressions.RegexRules`."""

    path: Path
    op: TextOp
    pattern: str
    limit: float


@dataclass(frozen=True, slots=True)
class TextOrder:
    """The value at the path is a text that stands in this order to the given one, code unit by code unit in UTF-16."""

    path: Path
    op: Order
    text: str

    def __post_init__(self) -> None:
        text_patterns.check(self.text)
        if self.op in (Order.EQ, Order.NE):
            raise FilterSyntaxError("this is no order", found=self.op, expected="<, <=, > or >=")


@dataclass(frozen=True, slots=True)
class Exists:
    """There is a value at the path; null is one."""

    path: Path


class Quantifier(StrEnum):
    """How many of several values must satisfy a condition."""

    EVERY = "every"
    SOME = "some"
    NONE = "no"


@dataclass(frozen=True, slots=True)
class Each:
    """Every one, some or none of the values at the path satisfies the condition, which looks at `ITEM`."""

    path: ValuesPath
    over: Quantifier
    condition: Compare | OneOf | Text | SlowText

    def __post_init__(self) -> None:
        if self.condition.path != ITEM:
            raise FilterSyntaxError("this condition looks elsewhere", found=self.condition.path, expected="one of the values")


@dataclass(frozen=True, slots=True)
class InNetwork:
    """The value at the path is the text of an IP address in this network."""

    path: Path
    network: str

    def __post_init__(self) -> None:
        try:
            ipaddress.ip_network(self.network, strict=False)
        except ValueError as error:
            raise FilterSyntaxError(
                "this is no network", found=self.network, expected="10.0.0.0/24 or 2001:db8::/32"
            ) from error


class ValueKind(StrEnum):
    """What `Inside` looks for. Null is a value; an array is neither, its elements are looked at instead."""

    VALUE = "value"
    OBJECT = "object"


@dataclass(frozen=True, slots=True)
class Inside:
    """What is at the path, or some element of it if that is an array (at any depth), is of this kind and satisfies the part,
    which looks at `ITEM` or at places inside it."""

    path: DataPath
    kind: ValueKind
    part: Filter


@dataclass(frozen=True, slots=True)
class Cesql:
    """The expression is the boolean true, without an error, for the attributes it names (SQL-12). Build it with `cesql_of`."""

    path: AttributesPath
    text: str


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every part holds. Build it with `all_of`: two parts at least."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Some part holds. Build it with `any_of`: two parts at least."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The part does not hold."""

    part: Filter


@dataclass(frozen=True, slots=True)
class Always:
    """Holds for every event, or for none."""

    value: bool


Leaf: TypeAlias = Compare | OneOf | Text | SlowText | TextOrder | Exists | Each | InNetwork | Inside | Cesql
Filter: TypeAlias = Leaf | AllOf | AnyOf | Not | Always


def all_of(*parts: Filter) -> Filter:
    """Every one of them; of none: always."""
    match parts:
        case ():
            return Always(True)
        case (part,):
            return part
    return AllOf(parts)


def any_of(*parts: Filter) -> Filter:
    """At least one of them; of none: never."""
    match parts:
        case ():
            return Always(False)
        case (part,):
            return part
    return AnyOf(parts)


def cesql_of(text: object) -> Cesql:
    """The condition that an expression stands for. Raises FilterSyntaxError with the column."""
    expression = cesql.accepted(text)
    return Cesql(AttributesPath(expression.names), expression.text)


def there_but_not(leaf: OneOf | Text) -> Filter:
    """The value is there and the condition does not hold: what dialects mean by `not in` and `not like`."""
    return AllOf((Exists(leaf.path), Not(leaf)))
