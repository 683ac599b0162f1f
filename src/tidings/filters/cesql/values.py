"""Values, zero values, casts and kinds of errors (SQL-08, SQL-11, SQL-21)."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TypeAlias

Value: TypeAlias = bool | int | str
Type: TypeAlias = type[bool] | type[int] | type[str]

LOWEST, HIGHEST = -(2**31), 2**31 - 1
_INTEGER = re.compile(r"([+-]?)0*([0-9]{1,10})")


class Error(StrEnum):
    """What went wrong while an expression was evaluated."""

    PARSE = "parse"
    MATH = "math"
    CAST = "cast"
    MISSING_ATTRIBUTE = "missingAttribute"
    MISSING_FUNCTION = "missingFunction"
    FUNCTION_EVALUATION = "functionEvaluation"
    GENERIC = "generic"


class EvaluationFailed(Exception):
    """Ends an evaluation (SQL-19). `value` is what the failing function gives where that is no zero value."""

    def __init__(self, error: Error, about: str, value: Value | None = None) -> None:
        super().__init__(error)
        self.error = error
        self.about = about
        self.value = value
        self.node: object = None
        """The call that gives `value`; what is around it gives its own zero value."""


def zero(kind: Type) -> Value:
    """The zero value of a type: false, 0 or the empty string."""
    return kind()


def fits(number: int) -> bool:
    """Whether it is a 32-bit integer."""
    return LOWEST <= number <= HIGHEST


def cast(value: Value, kind: Type) -> Value:
    """The value as this type. Raises Failed where there is no such value."""
    if type(value) is kind:
        return value
    if kind is str:
        return to_string(value)
    return to_boolean(value) if kind is bool else to_integer(value)


def to_string(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def to_boolean(value: Value) -> bool:
    if not isinstance(value, str):
        return bool(value)
    word = value.lower()
    if word in ("true", "false"):
        return word == "true"
    raise EvaluationFailed(Error.CAST, f"{_shown(value)} is no boolean")


def to_integer(value: Value) -> int:
    if not isinstance(value, str):
        return int(value)
    found = _INTEGER.fullmatch(value)
    number = int(found[1] + found[2]) if found else HIGHEST + 1
    if fits(number):
        return number
    raise EvaluationFailed(Error.CAST, f"{_shown(value)} is no 32-bit integer")


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:60]}…")
