"""The compiled index of many filters: a batch of events in, all (event, route) pairs that match out, as arrays.

Values become codes, codes become cells of one table for all signatures, cells give candidates, and what is left of each
candidate's term is tested: ranges of codes for all at once, predicates one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from tidings.filters.algebra import Filter
from tidings.filters.paths import DataPath, Path
from tidings.filters.routing.codes import Ints
from tidings.filters.routing.columns import Column, Reader, Table, values_at
from tidings.filters.routing.facts import TextFacts
from tidings.filters.routing.layout import MAX_EXCLUDED, MAX_SLOTS, Entry, Layout, Of, Slot, Source
from tidings.filters.routing.predicates import compares_numbers, leaves, predicate
from tidings.filters.routing.rows import Signatures
from tidings.filters.routing.terms import Term

_CHUNK = 1_000_000
_NO_CODE = -2


class Pairs(NamedTuple):
    """Which event with which entry or route."""

    events: Ints
    numbers: Ints


class Problem(NamedTuple):
    """A predicate that could not be evaluated for an event."""

    event: int
    route: int
    reason: str


class Index:
    """Finds the routes whose filters hold. Immutable once built, apart from bounded memos; not to be shared between threads."""

    def __init__(self, terms: Sequence[tuple[int, Term]]) -> None:
        layout = Layout(terms)
        entries = layout.entries
        self._layout = layout
        self._sources = _sources(entries)
        self._signatures = Signatures(entries, layout, self._sources)
        self._slots = _Slots(entries, self._sources)
        self._most = np.array([len(entry.slots) for entry in entries], np.int32)
        self._routes = np.array([entry.route for entry in entries], np.int32)
        self._scanned = np.array([n for n, entry in enumerate(entries) if not entry.access and entry.text is None], np.int32)
        left = {n: entry.left for n, entry in enumerate(entries)}
        self._read_with(entries, {n: filter for n, filter in left.items() if filter is not None})

    def _read_with(self, entries: list[Entry], left: dict[int, Filter]) -> None:
        paths = {source.path: None for source in self._sources}
        paths |= {entry.text.path: None for entry in entries if entry.text is not None}
        paths |= {leaf.path: None for filter in left.values() for leaf in leaves(filter)}
        number_of = {path: n for n, path in enumerate(paths)}
        numeric = any(words.numeric for words in self._layout.words.values())
        self.reader = Reader(tuple(paths), exact=numeric or any(map(compares_numbers, left.values())))
        self._number_of = number_of
        self._predicates = {n: predicate(filter, number_of) for n, filter in left.items()}
        self._has_predicate = np.zeros(len(entries), bool)
        self._has_predicate[list(left)] = True
        self._facts = _facts(entries, number_of)

    def match(self, table: Table, count: int) -> tuple[Pairs, list[Problem]]:
        """The pairs of event and route, in no order, a route perhaps twice."""
        codes = self._codes(table, count)
        problems: list[Problem] = []
        found = [
            self._tested(self._slots.tested(pairs, codes, slots), table, problems)
            for slots, pairs in self._candidates(codes, table, count)
        ]
        if not found:
            return Pairs(np.empty(0, np.int32), np.empty(0, np.int32)), problems
        events, entries = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return Pairs(events, self._routes[entries]), problems

    def _codes(self, table: Table, count: int) -> Ints:
        """A row of codes per source; row 0 is all zeros."""
        codes = np.zeros((len(self._sources) + 1, count), np.int32)
        for source, row in self._sources.items():
            column = table.columns[self._number_of[source.path]]
            if source.of is Of.VALUE:
                codes[row] = self._layout.words[source.path].codes(column)
            elif source.of is Of.PIECE:
                codes[row] = self._layout.cuts[source.path].codes(column, _exactly(source.path, table, column))
            else:
                pieces = codes[self._sources[Source(source.path, Of.PIECE)]]
                codes[row] = self._signatures.buckets[source.path][pieces + 1]
        return codes

    def _candidates(self, codes: Ints, table: Table, count: int) -> Iterator[tuple[int, Pairs]]:
        """Pairs of event and entry to look at, with the number of slots they have at the most."""
        for slots, events, entries in self._signatures.candidates(codes):
            yield slots, Pairs(events, entries)
        for number, facts in self._facts.items():
            answers = facts.answers(table.columns[number])
            lengths = np.fromiter(map(len, answers), np.int32, count)
            found = np.fromiter(chain.from_iterable(answers), np.int32, int(lengths.sum()))
            yield self._most[found].max(initial=0), Pairs(np.repeat(np.arange(count, dtype=np.int32), lengths), found)
        if len(self._scanned):
            step = max(1, _CHUNK // len(self._scanned))
            for start in range(0, count, step):
                events = np.arange(start, min(count, start + step), dtype=np.int32)
                yield MAX_SLOTS, Pairs(np.repeat(events, len(self._scanned)), np.tile(self._scanned, len(events)))

    def _tested(self, pairs: Pairs, table: Table, problems: list[Problem]) -> Pairs:
        """The pairs whose predicates hold, where there are any."""
        if not self._predicates:
            return pairs
        calls = self._has_predicate[pairs.numbers]
        keep = ~calls
        for at in np.flatnonzero(calls).tolist():
            event, entry = int(pairs.events[at]), int(pairs.numbers[at])
            try:
                keep[at] = self._predicates[entry](table.columns, event)
            except Exception as error:  # the last line of defense: one bad pair must not stop the batch
                problems.append(Problem(event, int(self._routes[entry]), f"{type(error).__name__}: {error}"))
        return Pairs(pairs.events[keep], pairs.numbers[keep])


def _exactly(path: Path, table: Table, column: Column) -> Callable[[list[int]], Column]:
    """Gives some values of the column, without rounding."""

    def exactly(events: list[int]) -> Column:
        if isinstance(path, DataPath) and any(type(column[event]) is float for event in events):
            return values_at(path.steps, [table.payloads[event] for event in events])
        return [column[event] for event in events]

    return exactly


def _sources(entries: list[Entry]) -> dict[Source, int]:
    """The rows of the code matrix, from 1. A bucket is made from its piece, which therefore comes first."""
    found: dict[Source, None] = {}
    for entry in entries:
        for slot in entry.slots:
            found[slot.source] = None
        for choice in entry.access:
            if choice.source.of is Of.BUCKET:
                found[Source(choice.source.path, Of.PIECE)] = None
            found[choice.source] = None
    ordered = sorted(found, key=lambda source: source.of is Of.BUCKET)
    return {source: row for row, source in enumerate(ordered, 1)}


def _facts(entries: list[Entry], number_of: dict[Path, int]) -> dict[int, TextFacts]:
    facts: dict[int, TextFacts] = {}
    for n, entry in enumerate(entries):
        if entry.text is not None:
            facts.setdefault(number_of[entry.text.path], TextFacts()).add(entry.text, n)
    for found in facts.values():
        found.ready()
    return facts


class _Slots:
    """The slots of all entries. Slot k of entry e is a line of numbers: row, low, high, and two excluded codes."""

    def __init__(self, entries: list[Entry], sources: dict[Source, int]) -> None:
        self._layers: list[Ints] = []
        for k in range(max((len(entry.slots) for entry in entries), default=0)):
            lines = [
                _line(entry.slots[k], sources) if len(entry.slots) > k else (0, 0, 0, _NO_CODE, _NO_CODE) for entry in entries
            ]
            self._layers.append(np.array(lines, np.int32))

    def tested(self, pairs: Pairs, codes: Ints, slots: int) -> Pairs:
        """The pairs whose codes are in the ranges. An entry without a slot looks at row 0, which always fits."""
        events, numbers = pairs
        for layer in self._layers[:slots]:
            line = layer.take(numbers, axis=0)
            code = codes[line[:, 0], events]
            keep = (code >= line[:, 1]) & (code <= line[:, 2]) & (code != line[:, 3]) & (code != line[:, 4])
            events, numbers = events[keep], numbers[keep]
        return Pairs(events, numbers)


def _line(slot: Slot, sources: dict[Source, int]) -> tuple[int, ...]:
    excluded = (*slot.excluded, _NO_CODE, _NO_CODE)[:MAX_EXCLUDED]
    return sources[slot.source], slot.low, slot.high, *excluded
