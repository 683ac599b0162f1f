"""An expression: parsed and compiled once, evaluated as often as wanted, without ever raising."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from tidings.errors import FilterSyntaxError
from tidings.filters.cesql.compiled import Compiler, Found, Run
from tidings.filters.cesql.functions import FUNCTIONS
from tidings.filters.cesql.parser import Parser
from tidings.filters.cesql.tokens import Token
from tidings.filters.cesql.tree import Attribute, Constant, FunctionCall, Node, Present, result_type, walk
from tidings.filters.cesql.values import Error, EvaluationFailed, Value, zero

_NOT_ADDRESSABLE = "data"


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """One text, ready to be evaluated. `names` are the attributes it looks at; `lint` holds sentences for its author."""

    text: str
    tree: Node
    names: tuple[str, ...]
    lint: tuple[str, ...]
    run: Run

    def of(self, found: Found) -> tuple[Value, Error | None]:
        """The value and the error, if there was one, for the values of `names` in their order; None is missing."""
        try:
            return self.run(found), None
        except EvaluationFailed as failed:
            return _failed(self.tree, failed)

    def passes(self, found: Found) -> bool:
        """True only for the boolean true without an error (SQL-12)."""
        try:
            return self.run(found) is True
        except EvaluationFailed:
            return False


class EvaluatedStep(NamedTuple):
    """What came of one part of an expression; `error` says the kind, `about` the reason."""

    text: str
    value: Value
    error: Error | None
    about: str


def parse(text: object) -> Expression:
    """The expression, unknown functions included. Raises FilterSyntaxError with the column."""
    if not isinstance(text, str):
        raise FilterSyntaxError("the expression is no text", found=text, expected="a text such as: type = 'order.created'")
    return _parsed(text)


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Expression:
    parser = Parser(text)
    tree = parser.whole()
    names = tuple(
        dict.fromkeys(
            node.name for node in walk(tree) if isinstance(node, (Attribute, Present)) and node.name != _NOT_ADDRESSABLE
        )
    )
    run = Compiler(_numbers(names)).run(tree)
    return Expression(text, tree, names, tuple(_told(*place) for place in parser.mixed), run)


def accepted(text: object) -> Expression:
    """The expression, as a filter may use it. Raises FilterSyntaxError for unknown functions too (SUB-05)."""
    expression = parse(text)
    for node in walk(expression.tree):
        if isinstance(node, FunctionCall) and node.function is None:
            raise FilterSyntaxError(
                f"there is no such function of {len(node.arguments)} arguments",
                at=f"column {node.start + 1}",
                found=node.name,
                expected=", ".join(FUNCTIONS),
            )
    return expression


def evaluate(expression: Expression, attributes: Mapping[str, object]) -> tuple[Value, Error | None]:
    """The value for an event's attributes, and the kind of error if there was one."""
    return expression.of(_found(expression, attributes))


def passes(expression: Expression, attributes: Mapping[str, object]) -> bool:
    """Whether an event with these attributes satisfies the expression as a filter."""
    return expression.passes(_found(expression, attributes))


def steps(expression: Expression, found: Found) -> list[EvaluatedStep]:
    """What came of every part that was evaluated, in that order; the last one is the whole. Literals are left out."""
    seen: list[tuple[Node, EvaluatedStep]] = []

    def watch(node: Node, outcome: Value | EvaluationFailed) -> None:
        written = expression.text[node.start : node.end]
        if isinstance(outcome, EvaluationFailed):
            seen.append((node, EvaluatedStep(written, *_failed(node, outcome), outcome.about)))
        elif not isinstance(node, Constant) or node is expression.tree:
            seen.append((node, EvaluatedStep(written, outcome, None, "")))

    try:
        Compiler(_numbers(expression.names), watch).run(expression.tree)(found)
    except EvaluationFailed as failed:
        # Operators to the right of what failed were not reached; the whole has its answer all the same.
        if seen[-1][0] is not expression.tree:
            watch(expression.tree, failed)
    return [step for _, step in seen]


def _failed(node: Node, failed: EvaluationFailed) -> tuple[Value, Error]:
    """What a node gives when this failure came out of it (SQL-19)."""
    own = failed.value if failed.node is node else None
    return (zero(result_type(node)) if own is None else own), failed.error


def _found(expression: Expression, attributes: Mapping[str, object]) -> Found:
    return tuple(attributes.get(name) for name in expression.names)


def _numbers(names: tuple[str, ...]) -> dict[str, int]:
    return {name: number for number, name in enumerate(names)}


def _told(operator: Token, before: str) -> str:
    return (
        f"{before} is followed by {operator.text} at column {operator.column} without parentheses; it is read from left to "
        "right here and from right to left elsewhere: write the parentheses"
    )
