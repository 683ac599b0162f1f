"""What must hold whenever a CESQL expression holds, in the common algebra: the index finds candidates by it, the expression itself
decides. Never more than that: `a = 'x' OR b = 'y'` does not pass when `a` is missing, whatever `b` is (SQL-12).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tidings.errors import FilterSyntaxError
from tidings.filters import cesql
from tidings.filters.algebra import (
    AllOf,
    Always,
    AnyOf,
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
    there_but_not,
)
from tidings.filters.cesql.tree import Among, Attribute, Constant, Infix, Like, Node, Prefix, Present
from tidings.filters.cesql.values import Value, to_string
from tidings.filters.paths import AttributePath, AttributeTextPath

_EVERYTHING = Always(True)
_INTEGER = re.compile(r"[+-]?[0-9]+")


def implied(leaf: Cesql) -> Filter:
    """A condition that holds for every event that the expression passes. Always(True) where nothing useful is known."""
    try:
        return _simplified(_implied(cesql.parse(leaf.text).tree))
    except FilterSyntaxError:  # a name that no attribute can have
        return _EVERYTHING


def _implied(node: Node) -> Filter:
    """What holds when the node is true, or can be cast to true."""
    above: list[Infix] = []
    while isinstance(node, Infix) and node.op in ("AND", "OR"):
        above.append(node)
        node = node.left
    found = _single(node)
    for one in reversed(above):
        join, kind = (all_of, AllOf) if one.op == "AND" else (any_of, AnyOf)
        found = join(*_parts(found, kind), _implied(one.right))
    return found


def _parts(filter: Filter, kind: type[AllOf] | type[AnyOf]) -> tuple[Filter, ...]:
    """The parts of a chain of the same kind, so that it stays flat."""
    return filter.parts if isinstance(filter, kind) else (filter,)


def _single(node: Node) -> Filter:
    match node:
        case Present(name):
            return Exists(AttributePath(name))
        case Prefix("NOT", Present(name)):
            return Not(Exists(AttributePath(name)))
        case Infix(Attribute(name), "=", Constant(str(text))):
            return Compare(AttributeTextPath(name), Order.EQ, literal(text))
        case Infix(Attribute(name), "!=" | "<>", Constant(str(text))):
            return Compare(AttributeTextPath(name), Order.NE, literal(text))
        case Like(Attribute(name), pattern, negated):
            fits = Text(AttributeTextPath(name), TextOp.LIKE, pattern)
            return there_but_not(fits) if negated else fits
        case Among(Attribute(name), elements, False):
            return _among(name, elements)
    return _EVERYTHING


def _among(name: str, elements: tuple[Node, ...]) -> Filter:
    texts: list[str] = []
    for element in elements:
        if not isinstance(element, Constant) or not _is_plain(element.value):
            return _EVERYTHING
        texts += _texts(element.value)
    return OneOf(AttributeTextPath(name), tuple(literal(text) for text in dict.fromkeys(texts)))


def _is_plain(value: Value) -> bool:
    """Whether no integer or boolean attribute equals it but one with the same text: '05' is cast to 5, whose text is '5'."""
    if not isinstance(value, str):
        return True
    if value.lower() in ("true", "false"):
        return value == value.lower()
    return not _INTEGER.fullmatch(value) or (len(value) <= 11 and str(int(value)) == value)


def _texts(value: Value) -> Iterator[str]:
    """The texts of the attributes that an element of a set equals once it is cast to their type."""
    yield to_string(value)
    if isinstance(value, bool):
        yield str(int(value))
    elif isinstance(value, int):
        yield to_string(bool(value))


def _simplified(filter: Filter) -> Filter:
    """Without what is always true; of several conditions that must hold, texts are left out where a value selects better."""
    match filter:
        case AnyOf(parts):
            found = [_simplified(part) for part in parts]
            return _EVERYTHING if _EVERYTHING in found else any_of(*found)
        case AllOf(parts):
            found = [inner for part in parts for inner in _parts(_simplified(part), AllOf) if inner != _EVERYTHING]
            return all_of(*(_selecting(found) or found))
    return filter


def _selecting(found: Iterable[Filter]) -> list[Filter]:
    return [part for part in found if isinstance(part, OneOf) or (isinstance(part, Compare) and part.op is Order.EQ)]
