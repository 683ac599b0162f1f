"""Expressions that RE2 cannot say, where the operator allows them: tried by backtracking, each attempt for a limited time.

Attempts that belong together (the elements of an array, the conditions of one event) share an allowance, so that many short
attempts cannot take long either. Whoever gave an allowance can ask afterwards why an attempt was given up.
"""

from __future__ import annotations

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
    try:
        return regex.compile(pattern, regex.VERSION0)
    except (regex.error, RecursionError, OverflowError, ValueError) as error:
        raise FilterSyntaxError(f"the regular expression is refused: {error}", found=pattern) from error


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
