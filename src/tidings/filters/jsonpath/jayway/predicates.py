"""The text of json-path predicates: `[?( … )]` with `&&`, `||`, `!`, parentheses, and the operators of `jayway_operators`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from tidings.filters.jsonpath import patterns
from tidings.filters.jsonpath.compiled_path import Operand, PathRun, Test
from tidings.filters.jsonpath.cursor import Cursor
from tidings.filters.jsonpath.jayway.literals import blank, literal
from tidings.filters.jsonpath.jayway.operands import existence, operand
from tidings.filters.jsonpath.jayway.operators import OPERATORS, Unfit, fitting
from tidings.filters.jsonpath.jayway.steps import Token

_OPERATOR = re.compile(r"[=!<>~]+|[A-Za-z]+")
_REGEX = re.compile(r"/((?:\\.|[^\\/])*)/([A-Za-z]*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison. `exists` for paths, `fits` for patterns."""

    at: int
    value: Operand | None = None
    exists: Test | None = None
    fits: patterns.Fits | None = None


class Predicates:
    """Reads predicates at the cursor. `path` reads the tokens after `$` or `@`."""

    def __init__(self, cursor: Cursor, path: Callable[[], tuple[Token, ...]]) -> None:
        self._cursor = cursor
        self._path = path

    def predicate(self) -> Test:
        """The test in parentheses."""
        test = self._parenthesized()

        def passes(current: object, run: PathRun) -> bool:
            try:
                return test(current, run)
            except Unfit:
                return False

        return passes

    def _parenthesized(self) -> Test:
        self._cursor.want("(")
        with self._cursor.deeper():
            test = self._some()
        self._cursor.want(")", "an operator, '&&', '||' or ')'")
        blank(self._cursor)
        return test

    def _some(self) -> Test:
        parts = [self._every()]
        while self._cursor.takes("||"):
            parts.append(self._every())
        return parts[0] if len(parts) == 1 else lambda current, run: any(part(current, run) for part in parts)

    def _every(self) -> Test:
        parts = [self._one()]
        while self._cursor.takes("&&"):
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else lambda current, run: all(part(current, run) for part in parts)

    def _one(self) -> Test:
        """A comparison, a test for existence, or one of them negated; with the blanks around it."""
        cursor = self._cursor
        blank(cursor)
        if cursor.takes("!"):
            with cursor.deeper():
                return self._negated()
        return self._parenthesized() if cursor.sees("(") else self._relation()

    def _negated(self) -> Test:
        blank(self._cursor)
        if not self._cursor.sees("$", "@"):
            inner = self._one()
            return lambda current, run: not inner(current, run)
        exists = self._side().exists
        assert exists is not None
        if not self._cursor.sees(")", "&&", "||"):
            self._cursor.fail("')', '&&' or '||': to negate a comparison, put it in parentheses")
        return lambda current, run: not exists(current, run)

    def _relation(self) -> Test:
        left = self._side()
        at = self._cursor.at
        sign = self._cursor.match(_OPERATOR)
        if sign is None:
            if left.exists is None:
                self._cursor.fail("an operator", "a value alone is no test")
            return left.exists
        right = self._right()
        if sign == "=~":
            return self._regex(left, right)
        return self._operation(sign, at, left, right)

    def _right(self) -> Side:
        blank(self._cursor)
        return self._side()

    def _side(self) -> Side:
        cursor, at = self._cursor, self._cursor.at
        if cursor.sees("$", "@"):
            absolute = cursor.takes("$")
            cursor.at = at + 1
            tokens = self._path()
            side = Side(at, operand(tokens, absolute), existence(tokens, absolute))
        elif cursor.sees("/"):
            side = self._pattern(at)
        else:
            value = literal(cursor)
            side = Side(at, lambda current, run: value)
        blank(cursor)
        return side

    def _pattern(self, at: int) -> Side:
        found = _REGEX.match(self._cursor.text, at)
        if found is None:
            self._cursor.fail("'/' to end the pattern")
        self._cursor.at = found.end()
        with self._cursor.placing(at):
            return Side(at, fits=patterns.java(found[1], found[2]))

    def _regex(self, left: Side, right: Side) -> Test:
        value, fits = (left.value, right.fits) if left.fits is None else (right.value, left.fits)
        if value is None or fits is None:
            self._cursor.fail("a pattern between slashes on one side of =~", at=right.at)
        return lambda current, run: fitting(fits, value(current, run), run)

    def _operation(self, sign: str, at: int, left: Side, right: Side) -> Test:
        operator = OPERATORS.get(sign.lower())
        if operator is None:
            self._cursor.fail(" ".join(OPERATORS), "this operator is not known", at)
        one, other = left.value, right.value
        if one is None or other is None:
            self._cursor.fail("=~ with a pattern", "a pattern cannot be compared", left.at if one is None else right.at)
        return lambda current, run: operator(one(current, run), other(current, run), run)
