"""Routes batches of events among thousands of filters. Agrees with `matches` for every event and route.

A topic's events are matched only with the routes of that topic. Topics that have the same routes share one compiled group;
groups are compiled when their first event comes and dropped again, the least recently used first, when they grow too many.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from tidings.filters.routing.group import Group, Slice
from tidings.filters.routing.spec import Batch, Matches, Numbers, RouteSpec, SetAside

__all__ = ["Batch", "Matches", "RouteSpec", "Router", "SetAside"]

SLICE = 1500
"""Events matched at once: larger slices fall out of the processor's cache."""

_NO_KIND = -1
_COMPILED = 200_000


class Router:
    """The compiled form of many routes. Cheap to make; not to be shared between threads."""

    def __init__(self, routes: Sequence[RouteSpec]) -> None:
        self._sets: list[list[RouteSpec]] = []
        self._kinds: list[tuple[int, ...]] = []
        self._kind_of: dict[int, int] = {}
        self._groups: OrderedDict[int, Group] = OrderedDict()
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

    def route(self, batch: Batch) -> Matches:
        """Every lane of every event of the batch. An event that cannot be decided is set aside and stops nothing."""
        positions = np.asarray(batch.positions, np.int64)
        aside: list[SetAside] = []
        found = [
            self._matched(kind, numbers, batch, positions, aside)
            for kind, events in self._by_kind(batch.topics)
            for numbers in _slices(events)
        ]
        events, lanes = _ordered(found, positions)
        return Matches(events, lanes, sorted(aside, key=lambda one: (one.event, -1 if one.lane is None else one.lane)))

    def _by_kind(self, topics: Sequence[int]) -> Iterator[tuple[int, Numbers]]:
        kinds = np.fromiter(map(self._kind_of.get, map(int, topics), repeat(_NO_KIND)), np.int64, len(topics))
        order = np.argsort(kinds, kind="stable")
        for events in np.split(order, np.flatnonzero(np.diff(kinds[order])) + 1):
            if len(events) and kinds[events[0]] != _NO_KIND:
                yield int(kinds[events[0]]), events

    def _matched(
        self, kind: int, numbers: Numbers, batch: Batch, positions: Numbers, aside: list[SetAside]
    ) -> tuple[Numbers, Numbers]:
        try:
            found = self._group(kind).match(_slice(numbers, batch, positions))
        except Exception as error:  # the last line of defense: one slice must not stop the batch
            aside += [SetAside(int(number), None, f"{type(error).__name__}: {error}") for number in numbers]
            return np.empty(0, np.int64), np.empty(0, np.int64)
        aside += [SetAside(int(numbers[event]), lane, reason) for event, lane, reason in found.aside]
        return numbers[found.events], found.lanes

    def _group(self, kind: int) -> Group:
        group = self._groups.get(kind)
        if group is not None:
            self._groups.move_to_end(kind)
            return group
        group = self._groups[kind] = Group([route for number in self._kinds[kind] for route in self._sets[number]])
        self._compiled += group.size
        while self._compiled > self._limit and len(self._groups) > 1:
            self._compiled -= self._groups.popitem(last=False)[1].size
        return group


def _slices(events: Numbers) -> Iterator[Numbers]:
    for start in range(0, len(events), SLICE):
        yield events[start : start + SLICE]


def _slice(numbers: Numbers, batch: Batch, positions: Numbers) -> Slice:
    first, last = int(numbers[0]), int(numbers[-1]) + 1
    if last - first == len(numbers):
        return Slice(positions[first:last], batch.heads[first:last], batch.datas[first:last])
    chosen = numbers.tolist()
    return Slice(positions[numbers], [batch.heads[n] for n in chosen], [batch.datas[n] for n in chosen])


def _ordered(found: list[tuple[Numbers, Numbers]], positions: Numbers) -> tuple[Numbers, Numbers]:
    """By lane and position, each pair once."""
    if not found:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    events, lanes = (np.concatenate(parts) for parts in zip(*found, strict=True))
    ranks = events if np.all(positions[1:] >= positions[:-1]) else np.argsort(np.argsort(positions, kind="stable"))[events]
    order = np.lexsort((*_digits(ranks), *_digits(lanes)))
    events, lanes = events[order], lanes[order]
    first = np.ones(len(events), bool)
    np.not_equal(events[1:], events[:-1], out=first[1:])
    first[1:] |= lanes[1:] != lanes[:-1]
    return (events, lanes) if first.all() else (events[first], lanes[first])


def _digits(numbers: Numbers) -> Iterator[NDArray[np.uint16]]:
    """The numbers in pieces of 16 bits, the lowest first: numpy sorts those in linear time, three times as fast."""
    highest = int(numbers.max(initial=0))
    for shift in range(0, max(1, highest.bit_length()), 16):
        yield (numbers >> shift).astype(np.uint16)
