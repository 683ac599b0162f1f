"""The expressions in RFC 9535 filters: logic, comparisons, function calls, and the check that their types fit."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from tidings.filters import payload
from tidings.filters.jsonpath.compiled_path import ABSENT, Hits, Operand, PathRun, Test, remembered
from tidings.filters.jsonpath.cursor import Cursor
from tidings.filters.jsonpath.standard.functions import FUNCTIONS, StandardFunction, Type, calling, fitting
from tidings.filters.jsonpath.standard.literals import quoted
from tidings.filters.jsonpath.standard.steps import Segment, singular, steps_of, taken
from tidings.filters.jsonpath.values import ORDERS, equal, in_order

_BLANK = re.compile(r"[ \t\n\r]*")
_WORD = re.compile(r"[a-z][a-z0-9_]*")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_COMPARISON = re.compile(r"==|!=|<=|>=|<|>")
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}


@dataclass(frozen=True, slots=True)
class ExpressionPart:
    """An operand as read. `value` gives one value, `nodes` a list of them; `at` is where it began."""

    at: int
    type: Type
    value: Operand | None = None
    nodes: Operand | None = None
    literal: object = ABSENT


class FilterExpressions:
    """Reads what stands after `?`. `segments` reads the query after `$` or `@`."""

    def __init__(self, cursor: Cursor, segments: Callable[[], tuple[Segment, ...]]) -> None:
        self._cursor = cursor
        self._segments = segments

    def logical(self) -> Test:
        parts = [self._both()]
        while self._goes_on("||"):
            parts.append(self._both())
        return parts[0] if len(parts) == 1 else lambda current, run: any(part(current, run) for part in parts)

    def _both(self) -> Test:
        parts = [self._basic()]
        while self._goes_on("&&"):
            parts.append(self._basic())
        return parts[0] if len(parts) == 1 else lambda current, run: all(part(current, run) for part in parts)

    def _goes_on(self, sign: str) -> bool:
        """Whether blanks and the sign follow; blanks alone are left where they are."""
        before = self._cursor.at
        self._blank()
        if not self._cursor.takes(sign):
            self._cursor.at = before
            return False
        self._blank()
        return True

    def _basic(self) -> Test:
        cursor = self._cursor
        if cursor.takes("!"):
            self._blank()
            inner = self._parenthesized() if cursor.sees("(") else self._tested(self._part())
            return lambda current, run: not inner(current, run)
        if cursor.sees("("):
            return self._parenthesized()
        part = self._part()
        before = cursor.at
        self._blank()
        sign = cursor.match(_COMPARISON)
        if sign is None:
            cursor.at = before
            return self._tested(part)
        self._blank()
        return _comparison(sign, self._compared(part), self._compared(self._part()))

    def _parenthesized(self) -> Test:
        self._cursor.want("(")
        with self._cursor.deeper():
            self._blank()
            inner = self.logical()
            self._blank()
        self._cursor.want(")", "'&&', '||' or ')'")
        return inner

    def _tested(self, part: ExpressionPart) -> Test:
        """The part as a test of its own: a query that finds something, or a function that says true."""
        nodes, value = part.nodes, part.value
        if nodes is not None:
            return lambda current, run: bool(nodes(current, run))
        if part.type is not Type.LOGICAL or value is None:
            self._cursor.fail("a comparison: a value is neither true nor false", "the expression is no test", part.at)
        return lambda current, run: value(current, run) is True

    def _compared(self, part: ExpressionPart) -> Operand:
        if part.value is None or part.type is not Type.VALUE:
            self._cursor.fail(
                "a query for one value, a literal or a function that gives one", "this cannot be compared", part.at
            )
        return part.value

    def _part(self) -> ExpressionPart:
        cursor, at = self._cursor, self._cursor.at
        if cursor.sees("$", "@"):
            return self._query(at)
        if cursor.sees("'", '"'):
            return _constant(at, quoted(cursor))
        number = cursor.match(_NUMBER)
        if number is not None:
            return _constant(at, payload.exact(number))
        word = cursor.match(_WORD)
        if word in _WORDS:
            return _constant(at, _WORDS[word])
        if word is None or not cursor.sees("("):
            cursor.fail("$, @, a literal, '!', '(' or a function", at=at)
        return self._call(at, word)

    def _query(self, at: int) -> ExpressionPart:
        absolute = self._cursor.takes("$")
        if not absolute:
            self._cursor.want("@")
        segments = self._segments()
        steps = singular(segments)
        value = None if steps is None else _one(steps, absolute)
        return ExpressionPart(at, Type.VALUE if value else Type.NODES, value, _nodes(segments, absolute))

    def _call(self, at: int, name: str) -> ExpressionPart:
        function = FUNCTIONS.get(name)
        if function is None:
            self._cursor.fail(", ".join(FUNCTIONS), "this function is not known", at)
        self._cursor.want("(")
        with self._cursor.deeper():
            parts = self._arguments()
        self._cursor.want(")", "',' or ')'")
        if len(parts) != len(function.takes):
            self._cursor.fail(f"{len(function.takes)} arguments", f"{name} is given {len(parts)}", at)
        return ExpressionPart(at, function.gives, self._called(name, function, parts))

    def _called(self, name: str, function: StandardFunction, parts: list[ExpressionPart]) -> Operand:
        arguments = [self._argument(part, type) for part, type in zip(parts, function.takes, strict=True)]
        pattern = parts[-1].literal
        if function.gives is not Type.LOGICAL or not isinstance(pattern, str):
            return calling(function, arguments)
        with self._cursor.placing(parts[-1].at):
            return fitting(name, arguments[0], pattern)

    def _arguments(self) -> list[ExpressionPart]:
        self._blank()
        parts: list[ExpressionPart] = []
        if self._cursor.sees(")"):
            return parts
        while not parts or self._cursor.takes(","):
            self._blank()
            parts.append(self._part())
            self._blank()
        return parts

    def _argument(self, part: ExpressionPart, type: Type) -> Operand:
        wanted = part.nodes if type is Type.NODES else part.value
        if wanted is None or type is Type.VALUE is not part.type:
            self._cursor.fail(type.value, "the argument is of another type", part.at)
        return wanted

    def _blank(self) -> None:
        self._cursor.match(_BLANK)


def _constant(at: int, value: object) -> ExpressionPart:
    return ExpressionPart(at, Type.VALUE, lambda current, run: value, literal=value)


def _one(steps: tuple[str | int, ...], absolute: bool) -> Operand:
    def value(current: object, run: PathRun) -> object:
        run.work.spend(1 + len(steps))
        return taken(run.root if absolute else current, steps)

    return value


def _nodes(segments: tuple[Segment, ...], absolute: bool) -> Operand:
    step = steps_of(segments)

    def relative(current: object, run: PathRun) -> object:
        hits: Hits = []
        step(current, None, run, hits)
        return [value for value, _ in hits]

    return remembered(relative) if absolute else relative


def _comparison(sign: str, left: Operand, right: Operand) -> Test:
    match sign:
        case "==":
            return lambda current, run: _equal(left(current, run), right(current, run), run)
        case "!=":
            return lambda current, run: not _equal(left(current, run), right(current, run), run)
        case "<" | ">":
            order = ORDERS[sign]
            return lambda current, run: in_order(order, left(current, run), right(current, run), run.work)
    order = ORDERS[sign]

    def or_equal(current: object, run: PathRun) -> bool:
        one, other = left(current, run), right(current, run)
        return in_order(order, one, other, run.work) or _equal(one, other, run)

    return or_equal


def _equal(one: object, other: object, run: PathRun) -> bool:
    """Two queries that find nothing are equal."""
    if one is ABSENT or other is ABSENT:
        return one is other
    return equal(one, other, run.work)
