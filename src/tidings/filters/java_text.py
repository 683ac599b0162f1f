"""Values as text, the way Java writes them: what Horizon's simple filter and Hermes' matchers compare."""

from __future__ import annotations

import math
from decimal import Decimal

import msgspec

_PLAIN_FROM, _PLAIN_BELOW = -3, 7
_DOUBLE_DIGITS = 17

_quoted = msgspec.json.Encoder().encode


def scalar_text(value: object) -> str | None:
    """A JSON scalar as text: every fraction is a double. None for arrays and objects, which have no text (HOR-93)."""
    match value:
        case str():
            return value
        case None | bool() | int():
            return _constant(value)
        case float() | Decimal():
            return double_text(float(value))
    return None


def whole_text(value: object) -> str | None:
    """Any JSON value as text; None for null, and for what is nested too deeply to be written (HER-120)."""
    try:
        return None if value is None else _told(value)
    except RecursionError:
        return None


def double_text(number: float) -> str:
    """A double as `Double.toString` writes it: 0.55, 12.0, 1.0E10."""
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    sign, digits, exponent = Decimal(repr(number)).as_tuple()
    assert isinstance(exponent, int)
    figures = "".join(map(str, digits)).rstrip("0") or "0"
    point = len(digits) + exponent if any(digits) else 1
    minus = "-" if sign else ""
    if _PLAIN_FROM < point <= _PLAIN_BELOW:
        whole, fraction = figures[: max(point, 0)].ljust(point, "0"), "0" * -point + figures[max(point, 0) :]
        return f"{minus}{whole or '0'}.{fraction or '0'}"
    return f"{minus}{figures[0]}.{figures[1:] or '0'}E{point - 1}"


def _constant(value: bool | int | None) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    # Through Decimal, because Python refuses to print a whole number of many digits.
    return str(value) if value.bit_length() < 64 else f"{Decimal(value):f}"


def _number(value: Decimal) -> str:
    """What a double cannot hold is a `BigDecimal`, which keeps its digits."""
    if not value.is_finite() or len(value.as_tuple().digits) <= _DOUBLE_DIGITS:
        return double_text(float(value))
    return str(value)


def _told(value: object) -> str:
    """The text of a value on its own or inside an object: `{a=1, b=x}`."""
    match value:
        case str():
            return value
        case Decimal():
            return _number(value)
        case float():
            return double_text(value)
        case list():
            return _json(value)
        case dict():
            return "{" + ", ".join([f"{name}={_told(inner)}" for name, inner in value.items()]) + "}"
        case None | bool() | int():
            return _constant(value)
    return str(value)


def _json(value: object) -> str:
    """The text of an array and of everything inside it: compact JSON."""
    match value:
        case str():
            return _quoted(value).decode()
        case list():
            return "[" + ",".join([_json(inner) for inner in value]) + "]"
        case dict():
            return "{" + ",".join([f"{_json(name)}:{_json(inner)}" for name, inner in value.items()]) + "}"
    return _told(value)
