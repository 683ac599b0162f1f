"""Routes events among thousands of filters. Agrees with `matches` for every event and route.

A topic's events are matched only with the routes of that topic. Topics that have the same routes share one compiled group;
groups are compiled when their first event comes and dropped again, the least recently used first, when they grow too many.
Large slices of a group are matched as columns, few events one by one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import repeat

import numpy as np

from tidings.events.avro.payloads import NO_SCHEMAS, SchemaBook
from tidings.filters.regex_rules import RE2_ONLY, RegexRules
from tidings.filters.routing.budgets import Budgets
from tidings.filters.routing.group import Group, GroupSlice, Quickly
from tidings.filters.routing.pair_order import Small, in_order, small_numbers
from tidings.filters.routing.spec import Matches, Numbers, OneMatch, RouteSpec, RoutingBatch, SetAside

__all__ = ["Matches", "OneMatch", "RouteSpec", "Router", "RoutingBatch", "SetAside"]

SLICE = 1500
"""Events matched at once: larger slices fall out of the processor's cache."""

ALONE = 100
"""Events of a group below which they are matched one by one."""

_NO_KIND = -1
_COMPILED = 200_000


class Router:
    """The compiled form of many routes. Cheap to make; not to be shared between threads."""

    def __init__(self, routes: Sequence[RouteSpec], regex: RegexRules = RE2_ONLY, schemas: SchemaBook = NO_SCHEMAS) -> None:
        self._routes = routes
        self._regex = regex
        self._schemas = schemas
        self._budgets = Budgets(regex.budget, regex.per_events)
        self._sets: list[list[RouteSpec]] = []
        self._kinds: list[tuple[int, ...]] = []
        self._kind_of: dict[int, int] = {}
        self._groups: OrderedDict[int, Group] = OrderedDict()
        self._quick: dict[int, Quickly] = {}
        self._before: dict[int, Group] = {}
        self._compiled = 0
        self._limit = max(_COMPILED, 2 * len(routes))
        self._sort(routes)

    def _sort(self, routes: Sequence[RouteSpec]) -> None:
        """Put routes with equal topics into one set, and topics that are in the same sets into one kind."""
        by_topics: dict[frozenset[int], list[RouteSpec]] = {}
        for route in routes:
            by_topics.setdefault(route.topics, []).append(route)
        sets_of: dict[int, list[int]] = {}
        for topics, members in by_topics.items():
            for topic in topics:
                sets_of.setdefault(topic, []).append(len(self._sets))
            self._sets.append(members)
        numbers: dict[tuple[int, ...], int] = {}
        for topic, sets in sets_of.items():
            self._kind_of[topic] = numbers.setdefault(tuple(sets), len(numbers))
        self._kinds = list(numbers)

    def updated(self, routes: Sequence[RouteSpec]) -> Router:
        """A router for these routes that takes over what is compiled here. Cheap when few routes differ.

        Pass the same RouteSpec objects for routes that have not changed: equal ones are found too, but comparing costs time.
        """
        router = Router(routes, self._regex, self._schemas)
        router._budgets = self._budgets
        router._budgets.keep(routes)
        router._before = dict(self._before)
        for topic, kind in self._kind_of.items():
            if kind in self._groups:
                router._before[topic] = self._groups[kind]
        router._before = {topic: group for topic, group in router._before.items() if topic in router._kind_of}
        return router

    @property
    def changed(self) -> int:
        """How many routes are kept beside a compiled base since `updated`. Many of them slow routing down: see `rebuild`."""
        return sum(group.changed for group in self._groups.values())

    def rebuild(self) -> None:
        """Compile the groups that were changed anew. Takes a while: for a moment when nothing waits."""
        for kind, group in list(self._groups.items()):
            if group.changed:
                self._groups[kind] = group.rebuilt()
        self._quick.clear()

    def route(self, batch: RoutingBatch) -> Matches:
        """Every lane of every event of the batch. An event that cannot be decided is set aside and stops nothing."""
        pairs = _Pairs(np.asarray(batch.positions, np.int64))
        alone: list[int] = []
        for kind, events in self._by_kind(batch.topics):
            if len(events) < ALONE and self._alone_pays(kind, batch.topics[events[0]], len(events)):
                alone += events.tolist()
            else:
                for start in range(0, len(events), SLICE):
                    self._match(kind, events[start : start + SLICE], batch, pairs)
        for event in alone:
            one = self.route_one(int(batch.positions[event]), batch.topics[event], batch.heads[event], batch.datas[event])
            pairs.add_one(event, one)
        return pairs.matches(self._blocked())

    def route_one(self, position: int, topic: int, head: bytes, data: bytes | None) -> OneMatch:
        """The lanes of one event: what a batch of it would give, faster."""
        quick = self._quick.get(topic)
        if quick is not None:
            since, until, lanes = quick
            if since < position <= until:
                try:
                    return OneMatch(lanes(head, data))
                except Exception:  # something about this event is odd
                    return self._with_care(position, topic, head, data)
        return self._with_care(position, topic, head, data)

    def _with_care(self, position: int, topic: int, head: bytes, data: bytes | None) -> OneMatch:
        kind = self._kind_of.get(topic)
        if kind is None:
            return OneMatch([])
        try:
            group = self._group(kind, topic)
            if group.quick is not None:
                self._quick[topic] = group.quick
            return OneMatch(*group.match_one(position, head, data))
        except Exception as error:  # the last line of defense: one event must not stop the others
            return OneMatch([], [SetAside(0, None, f"{type(error).__name__}: {error}")])

    def _by_kind(self, topics: Sequence[int]) -> Iterator[tuple[int, Numbers]]:
        kinds = np.fromiter(map(self._kind_of.get, map(int, topics), repeat(_NO_KIND)), np.int64, len(topics))
        if not len(kinds):
            return
        order = np.argsort(kinds, kind="stable")
        edges = np.flatnonzero(np.diff(kinds[order])) + 1
        for start, stop in zip([0, *edges.tolist()], [*edges.tolist(), len(order)], strict=True):
            kind = int(kinds[order[start]])
            if kind != _NO_KIND:
                yield kind, order[start:stop]

    def _alone_pays(self, kind: int, topic: int, events: int) -> bool:
        try:
            return self._group(kind, topic).alone_pays(events)
        except Exception:  # a group that cannot be made is told event by event
            return True

    def _match(self, kind: int, numbers: Numbers, batch: RoutingBatch, pairs: _Pairs) -> None:
        try:
            group = self._group(kind, int(batch.topics[numbers[0]]))
            pairs.add(numbers, group, _slice(numbers, batch, pairs.positions))
        except Exception as error:  # the last line of defense: one slice must not stop the batch
            pairs.aside += [SetAside(int(number), None, f"{type(error).__name__}: {error}") for number in numbers]

    def _group(self, kind: int, topic: int) -> Group:
        group = self._groups.get(kind)
        if group is not None:
            if len(self._groups) > 1:
                self._groups.move_to_end(kind)
            return group
        routes = [route for number in self._kinds[kind] for route in self._sets[number]]
        before = self._before.pop(topic, None)
        group = self._groups[kind] = (
            Group.of(routes, self._budgets, self._schemas) if before is None else before.updated(routes)
        )
        self._quick.clear()  # so that every topic in use passes by here again, which keeps its group from being dropped
        self._compiled += group.size
        while self._compiled > self._limit and len(self._groups) > 1:
            self._compiled -= self._groups.popitem(last=False)[1].size
        return group

    def _blocked(self) -> dict[int, str]:
        watched = (one for group in self._groups.values() for one in group.watched)
        return {lane: budget.reason for lane, budget in watched if budget.reason is not None}


class _Pairs:
    """Collects what was found, events by their rank: the place they have when sorted by position."""

    def __init__(self, positions: Numbers) -> None:
        self.positions = positions
        self.aside: list[SetAside] = []
        self._fell_back = 0
        self._order: Numbers | None = None
        self._ranks = ranks = small_numbers(range(len(positions)))
        if np.any(positions[1:] < positions[:-1]):
            self._order = np.argsort(positions, kind="stable")
            self._ranks = np.empty_like(ranks)
            self._ranks[self._order] = ranks
        self._found: list[tuple[Small, Small]] = []
        self._single: list[tuple[int, list[int]]] = []

    def add(self, numbers: Numbers, group: Group, events: GroupSlice) -> None:
        found = group.match(events)
        self._found.append((self._ranks[numbers][found.events], group.lanes[found.routes]))
        self.aside += [SetAside(int(numbers[event]), lane, reason) for event, lane, reason in found.aside]
        self._fell_back += found.plainly

    def add_one(self, event: int, one: OneMatch) -> None:
        self._single.append((int(self._ranks[event]), one.lanes))
        self.aside += [SetAside(event, lane, reason) for _, lane, reason in one.aside]
        self._fell_back += one.fell_back

    def matches(self, blocked: dict[int, str]) -> Matches:
        """By lane and position, each pair once."""
        ranks = small_numbers([rank for rank, lanes in self._single for _ in lanes])
        singles = ranks, small_numbers([lane for _, lanes in self._single for lane in lanes])
        events, lanes = in_order(*(np.concatenate(parts) for parts in zip(singles, *self._found, strict=True)))
        aside = sorted(self.aside, key=lambda one: (one.event, -1 if one.lane is None else one.lane))
        events = events.astype(np.int64) if self._order is None else self._order[events]
        return Matches(events, lanes.astype(np.int64), aside, blocked, self._fell_back)


def _slice(numbers: Numbers, batch: RoutingBatch, positions: Numbers) -> GroupSlice:
    first, last = int(numbers[0]), int(numbers[-1]) + 1
    if last - first == len(numbers):
        return GroupSlice(positions[first:last], batch.heads[first:last], batch.datas[first:last])
    chosen = numbers.tolist()
    return GroupSlice(positions[numbers], [batch.heads[n] for n in chosen], [batch.datas[n] for n in chosen])
