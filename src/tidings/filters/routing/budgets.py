"""Time that slow expressions may take: a budget per route, refilled as events come, past which the route is blocked.

RE2 needs none of this. Only filters that were allowed to fall back to backtracking expressions are watched.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from tidings.filters import backtracking_regex
from tidings.filters.algebra import Each, Filter, Inside, Leaf, SlowText
from tidings.filters.paths import QUERIES
from tidings.filters.routing.predicates import Predicate, leaves
from tidings.filters.routing.spec import RouteSpec

Watch: TypeAlias = Callable[[int, Filter, Predicate], Predicate]
"""Wraps the predicate of a route (its number, what is tested)."""


class RouteBlocked(Exception):
    """The route has used up its time. The text says so to its owner."""


class Budget:
    """What one route may still spend: full at first, refilled by events, blocked for good once it is overdrawn."""

    __slots__ = ("_per_event", "_whole", "left", "reason")

    def __init__(self, seconds: float, per_events: int) -> None:
        self._whole = seconds
        self._per_event = seconds / per_events
        self.left = seconds
        self.reason: str | None = None

    def refill(self, events: int) -> None:
        self.left = min(self._whole, self.left + events * self._per_event)

    def spend(self, seconds: float) -> None:
        self.left -= seconds
        if self.left < 0 and self.reason is None:
            per = round(self._whole / self._per_event)
            self.reason = f"its regular expression took more than {self._whole * 1000:g} ms per {per:,} events"


class Budgets:
    """The budgets of all routes with slow expressions. They outlive a change of the routes, as long as lane and filter stay."""

    def __init__(self, seconds: float = 0.1, per_events: int = 1000, clock: Callable[[], float] = time.thread_time) -> None:
        self._seconds, self._per_events, self._clock = seconds, per_events, clock
        self._kept: dict[tuple[int, Filter], Budget] = {}

    def watches(self, route: RouteSpec) -> bool:
        return route.filter is not None and is_watched(route.filter)

    def of(self, route: RouteSpec) -> Budget:
        """The budget of this route."""
        assert route.filter is not None
        return self._kept.setdefault((route.lane, route.filter), Budget(self._seconds, self._per_events))

    def watching(self, route: RouteSpec, tested: Filter, test: Predicate) -> Predicate:
        """The predicate, on the route's budget if what it tests is slow."""
        return spending(self.of(route), test, self._clock) if is_watched(tested) else test

    def keep(self, routes: Iterable[RouteSpec]) -> None:
        """Forget the budgets of all other routes."""
        if self._kept:
            watched = {(route.lane, route.filter) for route in routes if self.watches(route)}
            self._kept = {key: budget for key, budget in self._kept.items() if key in watched}


def unwatched(route: int, filter: Filter, test: Predicate) -> Predicate:
    return test


def is_watched(filter: Filter) -> bool:
    """Whether some condition runs a backtracking expression."""
    return any(_is_slow(leaf) for leaf in leaves(filter))


def _is_slow(leaf: Leaf) -> bool:
    if isinstance(leaf.path, QUERIES) and leaf.path.limit > 0:
        return True
    match leaf:
        case Each(_, _, condition):
            return isinstance(condition, SlowText)
        case Inside(_, _, part):
            return is_watched(part)
    return isinstance(leaf, SlowText)


def spending(budget: Budget, test: Predicate, clock: Callable[[], float]) -> Predicate:
    """The predicate on a budget. Raises Blocked, instead of testing, when there is none left, or not enough to decide."""

    def tested(values: Any, event: int) -> bool:
        if budget.reason is not None:
            raise RouteBlocked(budget.reason)
        began = clock()
        try:
            with backtracking_regex.within(budget.left) as given:
                holds = test(values, event)
        finally:
            budget.spend(clock() - began)
        if given.cause and budget.reason is not None:
            raise RouteBlocked(budget.reason)
        return holds

    return tested
