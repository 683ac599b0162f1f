"""A tree as a function of the attributes' values. Fails fast: the first error ends the evaluation (SQL-19, SQL-20)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import eq, ge, gt, le, lt, ne
from typing import Any, TypeAlias, assert_never

from tidings.filters import text_patterns
from tidings.filters.cesql.tree import (
    Among,
    Attribute,
    Chained,
    Constant,
    FunctionCall,
    Infix,
    Like,
    Node,
    Prefix,
    Present,
    spine,
)
from tidings.filters.cesql.values import Error, EvaluationFailed, Value, cast, fits, to_boolean, to_integer, to_string

Found: TypeAlias = tuple[Any, ...]
"""The values of an expression's attributes, in the order of its names; None for one that is missing."""

Run: TypeAlias = Callable[[Found], Value]
Step: TypeAlias = Callable[[Value, Found], Value]
"""What an operator makes of its left value."""

Watch: TypeAlias = Callable[[Node, Value | EvaluationFailed], None]
"""Is told what came of each part that was evaluated, in that order."""

_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}
_EQUALITIES: Mapping[str, Callable[[Any, Any], bool]] = {"=": eq, "!=": ne, "<>": ne}


class Compiler:
    """Makes functions of nodes. An attribute that `number_of` does not place is always missing."""

    def __init__(self, number_of: Mapping[str, int], watch: Watch | None = None) -> None:
        self._number_of = number_of
        self._watch = watch

    def run(self, node: Node) -> Run:
        """The node as a function that raises Failed."""
        first, above = spine(node)
        run = self._watched(first, self._operand(first))
        steps = [self._watched_step(operator, self._step(operator)) for operator in above]
        if not steps:
            return run
        if len(steps) == 1:
            (only,) = steps
            return lambda found: only(run(found), found)

        def chain(found: Found) -> Value:
            value = run(found)
            for step in steps:
                value = step(value, found)
            return value

        return chain

    def _operand(self, node: Node) -> Run:
        match node:
            case Constant(value):
                return lambda found: value
            case Attribute(name):
                return _attribute(name, self._number_of.get(name))
            case Present(name):
                return _present(self._number_of.get(name))
            case Prefix("NOT", operand):
                inner = self.run(operand)
                return lambda found: not to_boolean(inner(found))
            case Prefix(_, operand):
                inner = self.run(operand)
                return lambda found: _in_range(-to_integer(inner(found)))
            case FunctionCall():
                return self._call(node)
            case Infix() | Like() | Among():
                return self.run(node)
        assert_never(node)

    def _call(self, node: FunctionCall) -> Run:
        function = node.function
        if function is None:
            return _no_function(node)
        runs = [self.run(argument) for argument in node.arguments]
        types = (*function.takes, *[function.takes[-1]] * len(runs))[: len(runs)]
        call = function.call

        def called(found: Found) -> Value:
            values = [run(found) for run in runs]
            arguments = list(map(cast, values, types))
            try:
                return call(*arguments)
            except EvaluationFailed as failed:
                failed.node = node
                raise

        return called

    def _step(self, node: Chained) -> Step:
        match node:
            case Like(_, pattern, negated):
                fits_pattern = text_patterns.like_test(pattern)
                return lambda left, found: fits_pattern(to_string(left)) is not negated
            case Among(_, elements, negated):
                return _among([self.run(element) for element in elements], negated)
            case Infix(_, op, right):
                return _infix(op, self.run(right))
        assert_never(node)

    def _watched(self, node: Node, run: Run) -> Run:
        step = self._watched_step(node, lambda left, found: run(found))
        return run if self._watch is None else lambda found: step(False, found)

    def _watched_step(self, node: Node, step: Step) -> Step:
        watch = self._watch
        if watch is None:
            return step

        def watched(left: Value, found: Found) -> Value:
            try:
                value = step(left, found)
            except EvaluationFailed as failed:
                watch(node, failed)
                raise
            watch(node, value)
            return value

        return watched


def _attribute(name: str, number: int | None) -> Run:
    def attribute(found: Found) -> Value:
        value = None if number is None else found[number]
        if value is None:
            raise EvaluationFailed(Error.MISSING_ATTRIBUTE, f"there is no attribute {name}")
        return value if type(value) in (str, int, bool) else str(value)

    return attribute


def _present(number: int | None) -> Run:
    if number is None:
        return lambda found: False
    return lambda found: found[number] is not None


def _no_function(node: FunctionCall) -> Run:
    def missing(found: Found) -> Value:
        told = f"there is no function {node.name.upper()} of {len(node.arguments)} arguments"
        raise EvaluationFailed(Error.MISSING_FUNCTION, told)

    return missing


def _among(elements: list[Run], negated: bool) -> Step:
    def among(left: Value, found: Found) -> Value:
        kind = type(left)
        for element in elements:
            if cast(element(found), kind) == left:
                return not negated
        return negated

    return among


def _infix(op: str, right: Run) -> Step:
    match op:
        case "AND":
            return lambda left, found: to_boolean(left) and to_boolean(right(found))
        case "OR":
            return lambda left, found: to_boolean(left) or to_boolean(right(found))
        case "XOR":
            return _both(right, lambda left, other: to_boolean(left) is not to_boolean(other))
    if op in _EQUALITIES:
        same = _EQUALITIES[op]
        return _both(right, lambda left, other: same(cast(left, type(other)), other))
    work = _ORDERS.get(op) or _ARITHMETIC[op]
    return _both(right, lambda left, other: work(to_integer(left), to_integer(other)))


def _both(right: Run, work: Callable[[Value, Value], Value]) -> Step:
    """Both operands are evaluated before either is cast."""
    return lambda left, found: work(left, right(found))


def _in_range(number: int) -> int:
    if fits(number):
        return number
    raise EvaluationFailed(Error.MATH, f"{number} is no 32-bit integer")


def _divided(left: int, right: int) -> int:
    quotient = abs(left) // abs(_divisor(right))
    return _in_range(quotient if (left < 0) is (right < 0) else -quotient)


def _remainder(left: int, right: int) -> int:
    rest = abs(left) % abs(_divisor(right))
    return -rest if left < 0 else rest


def _divisor(number: int) -> int:
    if number == 0:
        raise EvaluationFailed(Error.MATH, "there is no division by 0")
    return number


_ARITHMETIC: Mapping[str, Callable[[int, int], int]] = {
    "+": lambda left, right: _in_range(left + right),
    "-": lambda left, right: _in_range(left - right),
    "*": lambda left, right: _in_range(left * right),
    "/": _divided,
    "%": _remainder,
}
