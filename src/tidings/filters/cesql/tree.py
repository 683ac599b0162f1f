"""The tree of an expression. Nodes are told apart by identity; every node knows the stretch of text it was read from.

Operators are left-associative, so a long chain is deep on its left side only: whoever walks a tree follows `left` in a loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from tidings.filters.cesql.functions import CesqlFunction
from tidings.filters.cesql.values import Type, Value


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """A literal."""

    value: Value
    start: int
    end: int


@dataclass(frozen=True, slots=True, eq=False)
class Attribute:
    """A context attribute by its name in lower case."""

    name: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, eq=False)
class Present:
    """`EXISTS name`."""

    name: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, eq=False)
class Prefix:
    """`NOT` or `-` before an operand."""

    op: str
    operand: Node
    start: int
    end: int


@dataclass(frozen=True, slots=True, eq=False)
class FunctionCall:
    """A function with its arguments. `function` is None where no function has this name and number of arguments."""

    name: str
    function: CesqlFunction | None
    arguments: tuple[Node, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True, eq=False)
class Infix:
    """An operator between two operands."""

    left: Node
    op: str
    right: Node
    start: int
    end: int


@dataclass(frozen=True, slots=True, eq=False)
class Like:
    """`LIKE` or `NOT LIKE` and a pattern, which is in the wildcard form of `tidings.filters.text_patterns`."""

    left: Node
    pattern: str
    negated: bool
    start: int
    end: int


@dataclass(frozen=True, slots=True, eq=False)
class Among:
    """`IN` or `NOT IN` and a set."""

    left: Node
    elements: tuple[Node, ...]
    negated: bool
    start: int
    end: int


Chained: TypeAlias = Infix | Like | Among
Node: TypeAlias = Constant | Attribute | Present | Prefix | FunctionCall | Chained


def spine(node: Node) -> tuple[Node, list[Chained]]:
    """The operand at the far left, and the operators on the way from there up to this node."""
    above: list[Chained] = []
    while isinstance(node, Chained):
        above.append(node)
        node = node.left
    return node, above[::-1]


def result_type(node: Node) -> Type:
    """The type whose zero value the node gives when something inside it failed."""
    match node:
        case Prefix("-") | Infix(_, "+" | "-" | "*" | "/" | "%"):
            return int
        case FunctionCall(_, CesqlFunction() as function):
            return function.gives
    return bool


def children(node: Node) -> tuple[Node, ...]:
    """The operands, in the order of their evaluation."""
    match node:
        case Prefix(_, operand):
            return (operand,)
        case FunctionCall(_, _, arguments):
            return arguments
        case Infix(left, _, right):
            return left, right
        case Like(left):
            return (left,)
        case Among(left, elements):
            return left, *elements
    return ()


def walk(node: Node) -> Iterator[Node]:
    """Every node, each after its operands, in the order of evaluation."""
    first, above = spine(node)
    for child in children(first):
        yield from walk(child)
    yield first
    for operator in above:
        for child in children(operator)[1:]:
            yield from walk(child)
        yield operator
