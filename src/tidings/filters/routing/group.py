"""The routes of topics that have the same routes. Three ways to match: whole slices, one by one, and the index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tidings.filters.routing.index import Index, Pairs, Problem
from tidings.filters.routing.one_by_one import OneByOne, plainly
from tidings.filters.routing.spec import Numbers, RouteSpec, SetAside
from tidings.filters.routing.terms import terms_of

FEW = 256
"""Pairs of event and filter up to which calling each predicate is faster than the index."""

FOREVER = np.iinfo(np.int64).max


class Slice(NamedTuple):
    """Some events of this group's topics."""

    positions: Numbers
    heads: Sequence[bytes]
    datas: Sequence[bytes | None]


class Found(NamedTuple):
    """The numbers of events in the slice beside their lanes, and what was set aside."""

    events: Numbers
    lanes: Numbers
    aside: list[SetAside]


class Group:
    """Compiled on first use, and only as far as it is used."""

    def __init__(self, routes: Sequence[RouteSpec]) -> None:
        self._lanes = np.array([route.lane for route in routes], np.int64)
        self._since = np.array([route.since for route in routes], np.int64)
        self._until = np.array([FOREVER if route.until is None else route.until for route in routes], np.int64)
        self._open = np.array([n for n, route in enumerate(routes) if route.filter is None], np.int64)
        self._filters = {n: route.filter for n, route in enumerate(routes) if route.filter is not None}
        self._newest, self._oldest_end = int(self._since.max()), int(self._until.min())
        self.size = len(routes)

    def match(self, events: Slice) -> Found:
        """Every lane of every event; never raises for what an event holds."""
        count = len(events.positions)
        pairs = [(np.tile(np.arange(count), len(self._open)), np.repeat(self._open, count))]
        aside: list[SetAside] = []
        if self._filters:
            found, aside = self._filtered(events, count)
            pairs.append((found.events.astype(np.int64), found.numbers.astype(np.int64)))
        numbers, routes = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
        numbers, routes = self._in_force(numbers, routes, events.positions)
        return Found(numbers, self._lanes[routes], aside)

    def _in_force(self, events: Numbers, routes: Numbers, positions: Numbers) -> tuple[Numbers, Numbers]:
        if positions.min() > self._newest and positions.max() <= self._oldest_end:
            return events, routes
        at = positions[events]
        keep = (self._since[routes] < at) & (at <= self._until[routes])
        return events[keep], routes[keep]

    def _filtered(self, events: Slice, count: int) -> tuple[Pairs, list[SetAside]]:
        try:
            way: Index | OneByOne = self._few if count * len(self._filters) <= FEW else self._index
            table = way.reader.read(events.heads, events.datas)
            pairs, problems = way.match(table, count)
            bad = table.bad
        except Exception:  # whatever it was: one bad filter or event must not keep the others from their events
            pairs, problems, bad = plainly(self._filters, events.heads, events.datas)
        if bad:
            keep = ~np.isin(pairs.events, [event for event, _ in bad])
            pairs = Pairs(pairs.events[keep], pairs.numbers[keep])
        aside = [SetAside(event, None, f"the head cannot be read: {reason}") for event, reason in bad]
        return pairs, aside + list(self._asides(problems, events.positions))

    def _asides(self, problems: list[Problem], positions: Numbers) -> Iterator[SetAside]:
        for event, route, reason in problems:
            if self._since[route] < positions[event] <= self._until[route]:
                yield SetAside(event, int(self._lanes[route]), reason)

    @cached_property
    def _index(self) -> Index:
        return Index([(n, term) for n, filter in self._filters.items() for term in terms_of(filter)])

    @cached_property
    def _few(self) -> OneByOne:
        return OneByOne(self._filters)
