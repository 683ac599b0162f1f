"""Scopes: what a topic's exposure offers a subscription, and what is wrong with scopes.

subscription names   the exposure has          it gets
none                 a scope `default`         that one
none                 none called so            everything
some                 all of them               what any of them selects, the parts that all of their paths choose (HOR-103, HOR-104)
some                 not all of them           nothing, so that a scope that is removed never opens the topic (HOR-106)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tidings.registry.model import DEFAULT_SCOPE, Exposure, FilterText, ProjectionText, Scope
from tidings.registry.rules.faults import Fault
from tidings.registry.rules.names import name_fault

SCOPES = 100


class Offer(NamedTuple):
    """What of a topic's events a subscription gets: those that one of `select` matches (none: all), as `scope` leaves them."""

    select: tuple[FilterText, ...] = ()
    scope: ProjectionText | None = None


EVERYTHING = Offer()


def offered(scopes: Mapping[str, Scope], wanted: Sequence[str]) -> Offer | None:
    """What these scopes come to for a subscription that wants those; None: it wants one that is not there."""
    names = wanted or ([DEFAULT_SCOPE] if DEFAULT_SCOPE in scopes else [])
    if any(name not in scopes for name in names):
        return None
    if not names:
        return EVERYTHING
    chosen = [scope for name, scope in scopes.items() if name in names]
    select = tuple(scope.filter for scope in chosen if scope.filter is not None)
    return Offer(select, union([scope.projection for scope in chosen if scope.projection is not None]))


def union(projections: Sequence[ProjectionText]) -> ProjectionText | None:
    """All their paths, each once, in order. Scopes of one exposure have the same mode and syntax."""
    if not projections:
        return None
    paths = dict.fromkeys(path for one in projections for path in one.paths)
    return ProjectionText(mode=projections[-1].mode, paths=tuple(paths), syntax=projections[-1].syntax)


def scopes_faults(exposure: Exposure) -> Iterator[Fault]:
    """What is wrong with an exposure's scopes, but for the meaning of their filters and paths."""
    if len(exposure.scopes) > SCOPES:
        yield "scopes", f"at most {SCOPES} scopes"
    for name in exposure.scopes:
        fault = name_fault(name)
        if fault:
            yield f"scopes.{name[:50]}", fault
    projections = [scope.projection for scope in exposure.scopes.values() if scope.projection is not None]
    if len({(one.mode, one.syntax) for one in projections}) > 1:
        # A subscription may use several at once, and what one leaves out another one must not bring back.
        yield "scopes", "all scopes of a topic include or all exclude, with paths written in the same way"


def wanted_faults(scopes: Sequence[str]) -> Iterator[Fault]:
    """What is wrong with the scopes that a subscription names, whatever its topics offer."""
    if len(scopes) > SCOPES:
        yield "scopes", f"at most {SCOPES} scopes"
    if len(set(scopes)) < len(scopes):
        yield "scopes", "a scope is named twice"


def unknown_faults(topic: str, scopes: Mapping[str, Scope], wanted: Sequence[str]) -> Iterator[Fault]:
    """The scopes that a topic asked for by name does not offer, with those that it does."""
    known = ", ".join(scopes) or "none"
    for number, name in enumerate(wanted):
        if name not in scopes:
            yield f"scopes[{number}]", f"the topic {topic} has no scope {name[:80]!r}; it has {known}"
