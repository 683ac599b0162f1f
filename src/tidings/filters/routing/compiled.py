"""Some filters, compiled when they are first used and only as far as they are used: for batches, for single events, or both."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np

from tidings.errors import Malformed
from tidings.events.avro.payloads import NO_SCHEMAS, SchemaBook
from tidings.events.stored import event_from
from tidings.filters.algebra import Filter
from tidings.filters.event_values import avro_value
from tidings.filters.matches import Read, holds, reading
from tidings.filters.paths import AvroTextPath, AvroTextsPath
from tidings.filters.payload import UNREADABLE
from tidings.filters.routing.budgets import Watch, unwatched
from tidings.filters.routing.index import Index, Pairs, RoutingProblem, reason_of
from tidings.filters.routing.layout import TermLayout
from tidings.filters.routing.one_by_one import OneByOne
from tidings.filters.routing.predicates import leaves
from tidings.filters.routing.single_event import Names, Quick, Single
from tidings.filters.routing.terms import terms_of

FEW = 16
"""Filters up to which calling each predicate is faster than compiling a function."""

_WAIT = 16


class RoutingOutcome(NamedTuple):
    """Pairs of event and route that match, those that could not be decided, the events whose head cannot be read, and whether
    the plain reading had to do it."""

    pairs: Pairs
    problems: list[RoutingProblem]
    bad: list[tuple[int, str]]
    fell_back: bool = False


class CompiledFilters:
    """Filters by the number of their route. Never raises for what an event holds.

    With `names`, there is a `quick` way for single events.
    """

    def __init__(
        self,
        filters: Mapping[int, Filter],
        watched: Watch = unwatched,
        names: Names | None = None,
        schemas: SchemaBook = NO_SCHEMAS,
    ) -> None:
        self._filters, self._watched, self._names, self._schemas = filters, watched, names, schemas
        self._asked = 0

    def match(self, heads: Sequence[bytes], datas: Sequence[bytes | None]) -> RoutingOutcome:
        """Every filter on every event of a batch."""
        if not self._filters:
            return RoutingOutcome(Pairs(np.empty(0, np.int32), np.empty(0, np.int32)), [], [])
        try:
            table = self._index.reader.read(heads, datas)
            pairs, problems = self._index.match(table, len(heads))
            if table.bad:
                keep = ~np.isin(pairs.events, [event for event, _ in table.bad])
                pairs = Pairs(pairs.events[keep], pairs.numbers[keep])
            return RoutingOutcome(pairs, problems, table.bad)
        except Exception:  # whatever it was: one bad filter or event must not keep the others from their events
            return plainly(self._filters, heads, datas, self._schemas)

    def match_one(self, head: bytes, data: bytes | None) -> tuple[list[int], list[RoutingProblem], str | None, bool]:
        """The routes of one event, what could not be decided, why its head cannot be read, and whether it was read plainly."""
        if not self._filters:
            return [], [], None, False
        way = self._single
        try:
            row = way.reader.row(head, data)
        except UNREADABLE as error:
            return [], [], str(error), False
        problems: list[RoutingProblem] = []
        try:
            return way.match(row, problems), problems, None, False
        except Exception:  # as above
            pairs, problems, bad, _ = plainly(self._filters, (head,), (data,), self._schemas)
            return pairs.numbers.tolist(), problems, bad[0][1] if bad else None, True

    @property
    def quick(self) -> Quick | None:
        """The names of an event that is like most, each once. Raises something for one that is odd: `match_one` knows it."""
        way = self._single if self._names is not None and self._filters else None
        return way.quick if isinstance(way, Single) else None

    def alone_pays(self, events: int) -> bool:
        """Whether to match this many events one by one. A large index that is there already is used for a while instead."""
        if len(self._filters) <= FEW or "_single" in self.__dict__ or "_index" not in self.__dict__:
            return True
        self._asked += events
        return self._asked * _WAIT >= len(self._filters)

    @property
    def once(self) -> bool:
        """Whether a route is never found twice for one event."""
        return isinstance(self._single, OneByOne) or self._layout.once

    @property
    def in_use(self) -> bool:
        """Whether anything has been compiled."""
        return bool(self.__dict__.keys() & {"_index", "_single"})

    def prepare(self) -> None:
        """Compile for batches now."""
        if self._filters:
            _ = self._index

    @cached_property
    def _layout(self) -> TermLayout:
        with _undisturbed():
            return TermLayout((n, term) for n, filter in self._filters.items() for term in terms_of(filter))

    @cached_property
    def _index(self) -> Index:
        with _undisturbed():
            return Index(self._layout, self._watched, self._schemas)

    @cached_property
    def _single(self) -> Single | OneByOne:
        if len(self._filters) <= FEW:
            return OneByOne(self._filters, self._watched, self._schemas)
        with _undisturbed():
            return Single(self._layout, self._watched, self._names, self._schemas)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Nothing is garbage while compiling, and looking for some after every few thousand objects doubles the time it takes."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def plainly(
    filters: Mapping[int, Filter], heads: Sequence[bytes], datas: Sequence[bytes | None], schemas: SchemaBook = NO_SCHEMAS
) -> RoutingOutcome:
    """The plain reading of the algebra for every pair."""
    reads: list[tuple[int, Read]] = []
    bad: list[tuple[int, str]] = []
    avro = any(isinstance(leaf.path, (AvroTextPath, AvroTextsPath)) for filter in filters.values() for leaf in leaves(filter))
    for event, (head, data) in enumerate(zip(heads, datas, strict=True)):
        try:
            found = event_from(head, data)
            if avro:
                avro_value(found.avro, data, schemas)
            reads.append((event, reading(found, schemas)))
        except (Malformed, ValueError) as error:
            bad.append((event, str(error)))
    return RoutingOutcome(*_tried(filters, reads), bad, True)


def _tried(filters: Mapping[int, Filter], reads: Iterable[tuple[int, Read]]) -> tuple[Pairs, list[RoutingProblem]]:
    """The pairs whose filter holds; one that fails is a problem of its pair alone."""
    found: list[tuple[int, int]] = []
    problems: list[RoutingProblem] = []
    for (event, read), (route, filter) in product(reads, filters.items()):
        try:
            if holds(filter, read):
                found.append((event, route))
        except Exception as error:  # the last line of defense: one bad pair must not stop the batch
            problems.append(RoutingProblem(event, route, reason_of(error)))
    pairs = np.array(found, np.int32).reshape(-1, 2)
    return Pairs(pairs[:, 0], pairs[:, 1]), problems
