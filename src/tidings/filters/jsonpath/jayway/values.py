"""How predicates of json-path compare values: a text and a number meet, on the left one's terms.

A text on the left equals a number that is written like it ("5007" and 5007, not "5007.0"). A number on the left equals a text
that stands for the same number. In `<` and the like they do not meet.
"""

from __future__ import annotations

import re
from decimal import Decimal
from operator import eq
from typing import Any

from tidings.filters import payload
from tidings.filters.java_text import double_text
from tidings.filters.jsonpath.values import JsonKind, compared, equal, exact, kind_of
from tidings.filters.jsonpath.work import Work

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_LONGEST_INT = 13_000


def same(one: object, other: object, work: Work) -> bool:
    """Whether the left value equals the right one. Nothing equals what is not there."""
    left, right = kind_of(one), kind_of(other)
    if left is JsonKind.TEXT and right is JsonKind.NUMBER:
        return equal(one, written(other), work)
    if left is JsonKind.NUMBER and right is JsonKind.TEXT:
        return _stands_for(other, one, work)
    return equal(one, other, work)


def strictly_same(one: object, other: object, work: Work) -> bool:
    return kind_of(one) is kind_of(other) and same(one, other, work)


def written(number: Any) -> str:
    """The number as it is written in a path."""
    return str(_decimal(number))


def text_of(number: Any) -> str:
    """The number of a document as text; a fraction has gone through a double before."""
    return written(number) if isinstance(number, int) else str(Decimal(double_text(float(number))))


def _decimal(number: Any) -> object:
    # Python refuses to print whole numbers of many digits.
    return Decimal(number) if isinstance(number, int) and number.bit_length() > _LONGEST_INT else exact(number)


def _stands_for(text: Any, number: object, work: Work) -> bool:
    work.spend_on(text, text)
    return _NUMBER.fullmatch(text) is not None and compared(eq, number, payload.exact(text), work)
