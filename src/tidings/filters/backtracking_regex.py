"""Expressions that RE2 cannot say, where the operator allows them: tried by backtracking, each attempt for a limited time.

Attempts that belong together (the elements of an array, the conditions of one event) share an allowance, so that many short
attempts cannot take long either. Whoever gave an allowance can ask afterwards why an attempt was given up.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from math import inf
from typing import Any

import regex

from tidings.errors import FilterSyntaxError

_LONGEST = 2000
_MOST_PIECES = 20_000
"""What an expression may come to with its repeats written out, as the engine does: `((a{999}){999}){999}` would take all memory."""

_PIECE = re.compile(r"\\[pPNx]\{[^}]*\}|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{(?P<least>\d{1,9})(?:,\d*)?\}|.", re.DOTALL)

_allowed: ContextVar[bool] = ContextVar("backtracking is allowed", default=False)


class Allowance:
    """What attempts may still take together, in seconds, and why one of them was given up."""

    __slots__ = ("cause", "left")

    def __init__(self, seconds: float) -> None:
        self.left = seconds
        self.cause = ""


_allowance: ContextVar[Allowance | None] = ContextVar("what attempts may take", default=None)


@contextmanager
def allowing(allowed: bool = True) -> Iterator[None]:
    """While a filter is parsed under rules that allow it, expressions may be such that only backtracking can try them."""
    token = _allowed.set(allowed)
    try:
        yield
    finally:
        _allowed.reset(token)


def is_allowed() -> bool:
    """Whether the rules of the filter that is being parsed allow such expressions."""
    return _allowed.get()


@contextmanager
def within(seconds: float = inf) -> Iterator[Allowance]:
    """All attempts in here take this long at the most, together, and no longer than an allowance around it has left."""
    around = _allowance.get()
    given = Allowance(seconds if around is None else min(seconds, around.left))
    began, token = given.left, _allowance.set(given)
    try:
        yield given
    finally:
        _allowance.reset(token)
        if around is not None:
            around.cause = around.cause or given.cause
            if given.left != began:
                around.left -= began - given.left


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> Any:
    """The expression for backtracking. Raises FilterSyntaxError with the reason."""
    if len(pattern) > _LONGEST:
        raise FilterSyntaxError("the regular expression is too long", found=pattern, expected=f"at most {_LONGEST} characters")
    if _pieces(pattern) > _MOST_PIECES:
        expected = f"at most {_MOST_PIECES} parts with all repeats written out"
        raise FilterSyntaxError("the regular expression repeats too much", found=pattern, expected=expected)
    try:
        return regex.compile(pattern, regex.VERSION0)
    except (regex.error, RecursionError, OverflowError, ValueError) as error:
        raise FilterSyntaxError(f"the regular expression is refused: {error}", found=pattern) from error


def _pieces(pattern: str) -> int:
    """How many parts the expression has with its repeats written out."""
    groups, last = [0], 0
    for piece in _PIECE.finditer(pattern):
        if piece["least"] is not None or piece[0] == "+":
            # The engine writes `a+` as `aa*`. What stands before was counted once.
            times = 2 if piece[0] == "+" else max(int(piece["least"]), 1)
            groups[-1] += last * (times - 1)
            last *= times
        elif piece[0] == "(":
            groups.append(1)
        elif piece[0] == ")" and len(groups) > 1:
            last = groups.pop()
            groups[-1] += last
        else:
            last = 1
            groups[-1] += 1
    return sum(groups)


def trying(pattern: str, whole: bool, limit: float = inf) -> Callable[[str], bool]:
    """Whether the expression is found, or fits the whole text. After `limit` seconds, or what is allowed, it is not."""
    expression = compiled(pattern)
    attempt = expression.fullmatch if whole else expression.search

    def found(text: str) -> bool:
        with within(limit) as given:
            if given.left <= 0:
                given.cause = "the regular expression was not tried: those before it used up the time"
                return False
            began, whole_time = time.process_time(), given.left
            try:
                # Without a limit of its own it would not even look at the clock.
                return attempt(text, timeout=min(given.left, 60.0)) is not None
            except (TimeoutError, MemoryError, RecursionError):
                given.cause = f"the regular expression was given up after {whole_time * 1000:.0f} ms, which counts as no match"
                return False
            finally:
                given.left -= time.process_time() - began

    return found
