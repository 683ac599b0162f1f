"""The routes of topics that have the same routes: which of them are in force, and what becomes of a change of few of them.

Compiling thousands of routes takes a while, so a change does not do it: new routes are compiled beside the base, and routes that
are gone are left out of what it finds, until so much has changed that compiling all of them anew is better.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tidings.events.avro.payloads import NO_SCHEMAS, SchemaBook
from tidings.filters.routing.budgets import Budgets
from tidings.filters.routing.compiled import CompiledFilters, RoutingOutcome
from tidings.filters.routing.index import RoutingProblem
from tidings.filters.routing.pair_order import small_numbers
from tidings.filters.routing.single_event import Names, Quick
from tidings.filters.routing.spec import Numbers, RouteSpec, SetAside

FOREVER = np.iinfo(np.int64).max
_CHANGED = 64
_SHARE = 16


class GroupSlice(NamedTuple):
    """Some events of this group's topics."""

    positions: Numbers
    heads: Sequence[bytes]
    datas: Sequence[bytes | None]


class GroupMatches(NamedTuple):
    """The numbers of events in the slice beside those of their routes, and what was set aside. `plainly`: how many events the
    plain reading had to decide."""

    events: Numbers
    routes: Numbers
    aside: list[SetAside]
    plainly: int


class Quickly(NamedTuple):
    """Gives the lanes of an event at a position after `since`, up to `until`. Raises something for an event that is odd."""

    since: int
    until: int
    lanes: Quick


@dataclass(frozen=True, slots=True)
class _Base:
    """Routes that were compiled together; their numbers are their places here."""

    routes: Sequence[RouteSpec]
    compiled: CompiledFilters


class Group:
    """Routes with their versions. Not to be shared between threads, but its base is shared with the group after a change."""

    def __init__(
        self, base: _Base, added: Sequence[RouteSpec], gone: Iterable[int], budgets: Budgets, schemas: SchemaBook
    ) -> None:
        routes = [*base.routes, *added]
        self._base, self._routes, self._budgets, self._schemas = base, routes, budgets, schemas
        self._parts = [base.compiled]
        if added:
            self._parts.append(_compiled(added, len(base.routes), budgets, schemas))
        self._gone = np.zeros(len(routes), bool)
        self._gone[list(gone)] = True
        self._out = set(gone)
        self._lane_of = [route.lane for route in routes]
        self.lanes = small_numbers(self._lane_of)
        self._since = np.array([route.since for route in routes], np.int64)
        self._until = np.array([FOREVER if route.until is None else route.until for route in routes], np.int64)
        self._until[self._gone] = -1
        self._open = [n for n, route in enumerate(routes) if route.filter is None and n not in self._out]
        self._newest, self._oldest_end = int(self._since.max()), int(self._until.min())
        self.watched = [(r.lane, budgets.of(r)) for n, r in enumerate(routes) if n not in self._out and budgets.watches(r)]
        self.size = len(routes)

    @classmethod
    def of(cls, routes: Sequence[RouteSpec], budgets: Budgets, schemas: SchemaBook = NO_SCHEMAS) -> Group:
        """A group without a past."""
        return cls(_Base(routes, _compiled(routes, 0, budgets, schemas)), (), (), budgets, schemas)

    def updated(self, routes: Sequence[RouteSpec]) -> Group:
        """The group with these routes instead. Cheap when few have changed; cheapest when the others are the same objects."""
        kept, added = _compared(self._base.routes, routes)
        gone = [n for n in range(len(self._base.routes)) if n not in kept]
        if not self._base.compiled.in_use or len(gone) + len(added) > max(_CHANGED, len(self._base.routes) // _SHARE):
            return Group.of(routes, self._budgets, self._schemas)
        return Group(self._base, added, gone, self._budgets, self._schemas)

    @property
    def changed(self) -> int:
        """How many routes came or went since the base was compiled."""
        return len(self._routes) - len(self._base.routes) + len(self._out)

    def rebuilt(self) -> Group:
        """The same group, all of it in one base that is compiled already."""
        group = Group.of([route for n, route in enumerate(self._routes) if n not in self._out], self._budgets, self._schemas)
        group._base.compiled.prepare()
        return group

    def match(self, events: GroupSlice) -> GroupMatches:
        """Every route of every event; never raises for what an event holds."""
        self._refill(len(events.positions))
        outcomes = [part.match(events.heads, events.datas) for part in self._parts]
        everyone = np.arange(len(events.positions), dtype=np.int32)
        pairs = [outcome.pairs for outcome in outcomes]
        numbers = [pair.events for pair in pairs] + [everyone] * len(self._open)
        routes = [pair.numbers for pair in pairs] + [np.full(len(everyone), route, np.int32) for route in self._open]
        found = self._in_force(np.concatenate(numbers), np.concatenate(routes), events.positions)
        plainly = len(everyone) if any(outcome.fell_back for outcome in outcomes) else 0
        return GroupMatches(*found, self._aside(outcomes, found, events.positions), plainly)

    @cached_property
    def _once(self) -> bool:
        """Whether a lane is never found twice for one event."""
        return len(set(self._lane_of)) == len(self._lane_of) and all(part.once for part in self._parts)

    @cached_property
    def quick(self) -> Quickly | None:
        """The way for single events like most, unless something about this group needs more care: time that is watched, routes
        that changed since the base was compiled, lanes with several routes."""
        if len(self._parts) > 1 or self.watched or (quick := self._base.compiled.quick) is None:
            return None
        return Quickly(self._newest, self._oldest_end, quick)

    def match_one(self, position: int, head: bytes, data: bytes | None) -> tuple[list[int], list[SetAside], bool]:
        """The lanes of one event, each once, what was set aside (as event 0), and whether it was read plainly."""
        if self.watched:
            self._refill(1)
        routes, problems, bad, plainly = self._base.compiled.match_one(head, data)
        if len(self._parts) > 1:
            added, more, _, also = self._parts[1].match_one(head, data)
            routes, problems, plainly = routes + added, problems + more, plainly or also
        if self._open:
            routes = routes + self._open
        if not self._newest < position <= self._oldest_end:
            routes = [route for route in routes if self._since[route] < position <= self._until[route]]
        aside = [_unreadable(0, bad)] if bad is not None else []
        if problems:
            at = np.array([position])
            aside += [self._problem(one) for one in problems if one.route not in routes and self._governs(one, at)]
        lane_of = self._lane_of
        lanes = [lane_of[route] for route in routes]
        return lanes if len(lanes) < 2 or self._once else list(set(lanes)), aside, plainly

    def alone_pays(self, events: int) -> bool:
        """Whether to match this many events one by one."""
        return self._base.compiled.alone_pays(events)

    def _refill(self, events: int) -> None:
        for _, budget in self.watched:
            budget.refill(events)

    def _in_force(self, events: Numbers, routes: Numbers, positions: Numbers) -> tuple[Numbers, Numbers]:
        if positions.min() > self._newest and positions.max() <= self._oldest_end:
            return events, routes
        at = positions[events]
        keep = (self._since[routes] < at) & (at <= self._until[routes])
        return events[keep], routes[keep]

    def _aside(self, outcomes: list[RoutingOutcome], found: tuple[Numbers, Numbers], positions: Numbers) -> list[SetAside]:
        bad = {event: reason for outcome in outcomes for event, reason in outcome.bad}
        aside = [_unreadable(event, reason) for event, reason in bad.items()]
        problems = [one for outcome in outcomes for one in outcome.problems if self._governs(one, positions)]
        if problems:
            matched = set(zip(found[0].tolist(), found[1].tolist(), strict=True))
            aside += [self._problem(one) for one in problems if (one.event, one.route) not in matched]
        return aside

    def _governs(self, problem: RoutingProblem, positions: Numbers) -> bool:
        return bool(self._since[problem.route] < positions[problem.event] <= self._until[problem.route])

    def _problem(self, problem: RoutingProblem) -> SetAside:
        return SetAside(problem.event, int(self.lanes[problem.route]), problem.reason)


def _compiled(routes: Sequence[RouteSpec], first: int, budgets: Budgets, schemas: SchemaBook) -> CompiledFilters:
    numbered = dict(enumerate(routes, first))
    filters = {n: route.filter for n, route in numbered.items() if route.filter is not None}
    lanes = {n: route.lane for n, route in numbered.items()}
    once = len(set(lanes.values())) == len(lanes)
    names = Names(lanes, [route.lane for route in routes if route.filter is None]) if once else None
    return CompiledFilters(filters, lambda n, filter, test: budgets.watching(numbered[n], filter, test), names, schemas)


def _compared(before: Sequence[RouteSpec], now: Sequence[RouteSpec]) -> tuple[set[int], list[RouteSpec]]:
    """The numbers of the routes that are still there, and the routes that are new."""
    by_identity = {id(route): n for n, route in enumerate(before)}
    kept: set[int] = set()
    unknown: list[RouteSpec] = []
    for route in now:
        number = by_identity.get(id(route))
        if number is None:
            unknown.append(route)
        else:
            kept.add(number)
    if not unknown:
        return kept, unknown
    equal = {before[n]: n for n in range(len(before)) if n not in kept}
    added = []
    for route in unknown:
        number = equal.pop(route, None)
        if number is None:
            added.append(route)
        else:
            kept.add(number)
    return kept, added


def _unreadable(event: int, reason: str) -> SetAside:
    return SetAside(event, None, f"the event cannot be read: {reason}")
