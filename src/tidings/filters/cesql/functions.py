"""The functions of CESQL by name and number of arguments (SQL-10, SQL-23 to SQL-29)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tidings.filters.cesql.values import HIGHEST, LOWEST, Error, EvaluationFailed, Type, Value

MAX_TEXT = 1 << 20
"""Characters that a concatenation may give: an expression must not make a small event large."""

_WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"


@dataclass(frozen=True, slots=True)
class CesqlFunction:
    """One function. The last of `takes` goes for all further arguments where `most` allows them."""

    takes: tuple[Type, ...]
    gives: Type
    call: Callable[..., Value]
    least: int
    most: int | None


def function(name: str, arguments: int) -> CesqlFunction | None:
    """The function of this name, in any letter case, that takes so many arguments."""
    for known in FUNCTIONS.get(name.upper(), ()):
        if known.least <= arguments and (known.most is None or arguments <= known.most):
            return known
    return None


def _concatenated(separator: str, texts: tuple[str, ...]) -> str:
    if sum(map(len, texts)) + len(separator) * len(texts) > MAX_TEXT:
        raise EvaluationFailed(Error.FUNCTION_EVALUATION, f"the text is longer than {MAX_TEXT} characters")
    return separator.join(texts)


def _concat(*texts: str) -> str:
    return _concatenated("", texts)


def _concat_ws(separator: str, *texts: str) -> str:
    return _concatenated(separator, texts)


def _trim(text: str) -> str:
    return text.strip(_WHITE_SPACE)


def _left(text: str, length: int) -> str:
    _check_length(text, length)
    return text[:length]


def _right(text: str, length: int) -> str:
    _check_length(text, length)
    return text[max(0, len(text) - length) :]


def _check_length(text: str, length: int) -> None:
    if length < 0:
        raise EvaluationFailed(Error.FUNCTION_EVALUATION, f"the length {length} is negative", text)


def _substring(text: str, position: int, length: int = HIGHEST) -> str:
    if position == 0:
        return ""
    if abs(position) > len(text):
        raise EvaluationFailed(Error.FUNCTION_EVALUATION, f"the position {position} is outside a text of {len(text)}")
    if length < 0:
        raise EvaluationFailed(Error.FUNCTION_EVALUATION, f"the length {length} is negative")
    start = position - 1 if position > 0 else len(text) + position
    return text[start : start + length]


def _abs(number: int) -> int:
    if number == LOWEST:
        raise EvaluationFailed(Error.MATH, f"the absolute value of {LOWEST} is no 32-bit integer", HIGHEST)
    return abs(number)


def _same(value: Any) -> Any:
    return value


def _fixed(takes: tuple[Type, ...], gives: Type, call: Callable[..., Value]) -> CesqlFunction:
    return CesqlFunction(takes, gives, call, len(takes), len(takes))


FUNCTIONS: Mapping[str, tuple[CesqlFunction, ...]] = {
    "LENGTH": (_fixed((str,), int, len),),
    "LOWER": (_fixed((str,), str, str.lower),),
    "UPPER": (_fixed((str,), str, str.upper),),
    "TRIM": (_fixed((str,), str, _trim),),
    "CONCAT": (CesqlFunction((str,), str, _concat, 0, None),),
    "CONCAT_WS": (CesqlFunction((str,), str, _concat_ws, 1, None),),
    "LEFT": (_fixed((str, int), str, _left),),
    "RIGHT": (_fixed((str, int), str, _right),),
    "SUBSTRING": (_fixed((str, int), str, _substring), _fixed((str, int, int), str, _substring)),
    "ABS": (_fixed((int,), int, _abs),),
    "INT": (_fixed((int,), int, _same),),
    "BOOL": (_fixed((bool,), bool, _same),),
    "STRING": (_fixed((str,), str, _same),),
}
