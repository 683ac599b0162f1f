"""A filter as alternatives: it holds when some term holds, a term when all its tests do. Bounded: what would grow stays a tree."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from tidings.filters.algebra import AllOf, Always, AnyOf, Cesql, Compare, Filter, Literal, Not, OneOf, Order
from tidings.filters.paths import Path
from tidings.filters.routing.implied_conditions import implied

MAX_TERMS = 16
_MAX_TESTS = 32


class Tested(NamedTuple):
    """A condition that must hold, or must not. Mostly a single condition; a whole tree where splitting it would grow."""

    filter: Filter
    negated: bool

    @property
    def plain(self) -> Filter:
        return Not(self.filter) if self.negated else self.filter


Term: TypeAlias = tuple[Tested, ...]


def terms_of(filter: Filter) -> tuple[Term, ...]:
    """The terms. None at all: never holds. An empty term: always holds."""
    terms = tuple(_terms(filter, False))
    return ((),) if () in terms else terms


def _terms(filter: Filter, negated: bool) -> list[Term]:
    match filter:
        case Always(value):
            return [] if value is negated else [()]
        case Not(part):
            return _terms(part, not negated)
        case AllOf(parts) if not negated:
            return _every(parts, False)
        case AnyOf(parts) if negated:
            return _every(parts, True)
        case AllOf(parts) | AnyOf(parts):
            return _some(filter, _folded(parts) if not negated else parts, negated)
        case Cesql() if not negated:
            return [(*term, Tested(filter, False)) for term in _terms(implied(filter), False)]
    return [(Tested(filter, negated),)]


def _some(whole: Filter, parts: Iterable[Filter], negated: bool) -> list[Term]:
    terms = [term for part in parts for term in _terms(part, negated)]
    if len(terms) > MAX_TERMS:
        return [(Tested(whole, negated),)]
    return terms


def _every(parts: Iterable[Filter], negated: bool) -> list[Term]:
    """The product of the parts' terms. A part that would make it too large is left whole, to be tested last."""
    product: list[Term] = [()]
    for part in parts:
        inner = _terms(part, negated)
        longest = max(map(len, product), default=0) + max(map(len, inner), default=0)
        if len(product) * len(inner) > MAX_TERMS or (len(inner) > 1 and longest > _MAX_TESTS):
            inner = [(Tested(part, negated),)]
        product = [before + after for before in product for after in inner]
    return product


def _folded(parts: tuple[Filter, ...]) -> list[Filter]:
    """Alternatives with equalities on one path become one set: `a = 1 or a = 2 or b = 3` has two parts."""
    sets: dict[Path, list[Literal]] = {}
    others: list[Filter] = []
    for part in parts:
        match part:
            case Compare(path, Order.EQ, value):
                sets.setdefault(path, []).append(value)
            case OneOf(path, values):
                sets.setdefault(path, []).extend(values)
            case _:
                others.append(part)
    return [OneOf(path, tuple(dict.fromkeys(values))) for path, values in sets.items()] + others
