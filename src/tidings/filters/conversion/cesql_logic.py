"""A CESQL expression as conditions of the algebra, exactly: an error anywhere is "does not pass", in a `not` too.

An expression is true, false or an error. Each part is therefore read twice: when it is true, and when it is false. Errors come
from attributes that are missing, so `a OR b` is simply one or the other where `b` cannot be true while `a` is an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from tidings.errors import FilterSyntaxError
from tidings.filters import cesql
from tidings.filters.algebra import (
    Always,
    Cesql,
    Compare,
    Exists,
    Filter,
    Not,
    OneOf,
    Order,
    Text,
    TextOp,
    all_of,
    any_of,
    literal,
)
from tidings.filters.cesql.tree import Among, Attribute, Constant, Infix, Like, Node, Prefix, Present
from tidings.filters.paths import AttributeTextPath

ALWAYS_THERE = frozenset({"specversion", "id", "source", "type"})
"""Attributes that every event has."""

TEXTS = ALWAYS_THERE | {"subject", "time", "datacontenttype", "dataschema"}
"""Attributes whose values are texts, whatever was sent."""

_MAX_PARTS = 500


@dataclass(frozen=True, slots=True)
class _Read:
    """When a part is true and when it is false; `names`: without them it may be an error; `needs`: it is true only with them."""

    true: Filter
    false: Filter
    names: frozenset[str]
    needs: frozenset[str]
    size: int = 1


def conditions_of(filter: Cesql) -> Filter:
    """The conditions that the expression stands for. Raises FilterSyntaxError for what only CESQL can say."""
    return _read(cesql.accepted(filter.text).tree, filter.text).true


def _read(node: Node, text: str) -> _Read:
    match node:
        case Constant(bool(value)):
            return _Read(Always(value), Always(not value), frozenset(), frozenset())
        case Present(name):
            there = Exists(AttributeTextPath(name)) if name != "data" else Always(False)
            return _Read(there, Not(there), frozenset(), frozenset({name}))
        case Prefix("NOT", operand):
            inner = _read(operand, text)
            return _Read(inner.false, inner.true, inner.names, frozenset(), inner.size)
        case Infix(left, "AND" | "OR" | "XOR" as op, right):
            return _joined(op, _read(left, text), _read(right, text))
        case Infix(Attribute(name), "=" | "!=" | "<>" as op, Constant(str(value))):
            return _leaf(name, Compare(_path(node, name, text), Order.EQ, literal(value)), op != "=")
        case Infix(Constant(str(value)), "=" | "!=" | "<>" as op, Attribute(name)) if name in TEXTS:
            return _leaf(name, Compare(_path(node, name, text), Order.EQ, literal(value)), op != "=")
        case Like(Attribute(name), pattern, negated):
            return _leaf(name, Text(_path(node, name, text), TextOp.LIKE, pattern), negated)
        case Among(Attribute(name), elements, negated) if name in TEXTS:
            values = [element.value for element in elements if isinstance(element, Constant)]
            if len(values) == len(elements) and all(isinstance(value, str) for value in values):
                return _leaf(name, OneOf(_path(node, name, text), tuple(map(literal, values))), negated)
    return _refuse(node, text)


def _joined(op: str, left: _Read, right: _Read) -> _Read:
    names = left.names | right.names
    match op:
        case "AND":
            guarded = _asked_for(left)
            # What is true only where the attribute is there need not be told so: `EXISTS x AND x = 'a'`.
            true = right.true if guarded & right.needs else all_of(left.true, right.true)
            names, needs = left.names | (right.names - guarded), left.needs | right.needs
            false = any_of(left.false, all_of(left.true, right.false))
        case "OR":
            # The right side is asked only when the left one is false, which must be said where it could be an error instead.
            safe = left.names <= right.needs | ALWAYS_THERE
            true = any_of(left.true, right.true if safe else all_of(left.false, right.true))
            false, needs = all_of(left.false, right.false), left.needs & right.needs
        case _:
            true = any_of(all_of(left.true, right.false), all_of(left.false, right.true))
            false, needs = any_of(all_of(left.true, right.true), all_of(left.false, right.false)), frozenset()
    size = left.size + right.size + (0 if op == "OR" and left.names <= right.needs | ALWAYS_THERE else left.size)
    size = 2 * (left.size + right.size) if op == "XOR" else size
    if size > _MAX_PARTS:
        expected = f"at most {_MAX_PARTS} parts"
        raise FilterSyntaxError("the expression is too long to be said in another dialect", expected=expected)
    return _Read(true, false, names, needs, size)


def _asked_for(read: _Read) -> frozenset[str]:
    """The attribute whose existence is all that a part says."""
    match read.true:
        case Exists(AttributeTextPath(name)):
            return frozenset({name})
    return frozenset()


def _leaf(name: str, holds: Filter, negated: bool) -> _Read:
    there = Exists(AttributeTextPath(name))
    fails = Not(holds) if name in ALWAYS_THERE else all_of(there, Not(holds))
    needs = frozenset({name})
    return _Read(fails, holds, needs, needs) if negated else _Read(holds, fails, needs, needs)


def _path(node: Node, name: str, text: str) -> AttributeTextPath:
    if name == "data":
        _refuse(node, text)
    return AttributeTextPath(name)


def _refuse(node: Node, text: str) -> NoReturn:
    reason = "it is no plain condition on the text of an attribute"
    if isinstance(node, (Infix, Among)):
        reason = "CESQL casts the values by rules that no other dialect has"
    raise FilterSyntaxError(
        f"only CESQL can say this: {reason}", at=f"column {node.start + 1}", found=text[node.start : node.end]
    )
