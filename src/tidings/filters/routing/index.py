"""The compiled index of many filters: a batch of events in, all (event, route) pairs that match out, as arrays.

Values become codes, codes become cells of one table for all signatures, cells give candidates, and what is left of each
candidate's term is tested: ranges of codes for all at once, predicates one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidings.events.avro.payloads import NO_SCHEMAS, SchemaBook
from tidings.filters.paths import DataPath, Path
from tidings.filters.routing.budgets import RouteBlocked, Watch, unwatched
from tidings.filters.routing.codes import HIGHEST, Ints
from tidings.filters.routing.columns import Column, Reader, Table, values_at
from tidings.filters.routing.facts import facts_of
from tidings.filters.routing.layout import MAX_EXCLUDED, MAX_SLOTS, LayoutEntry, Of, Slot, TermLayout, TermSource
from tidings.filters.routing.predicates import in_table, predicate
from tidings.filters.routing.rows import Signatures
from tidings.filters.routing.text_verdicts import JudgedTexts, Verdicts

_CHUNK = 1_000_000
_FEW = 4
_NO_CODE = -2
_NO_SLOT = (0, _NO_CODE, HIGHEST, _NO_CODE, _NO_CODE)


class Pairs(NamedTuple):
    """Which event with which entry or route."""

    events: Ints
    numbers: Ints


class RoutingProblem(NamedTuple):
    """A predicate that could not be evaluated for an event."""

    event: int
    route: int
    reason: str


def reason_of(error: Exception) -> str:
    """What is told of a predicate that could not be evaluated."""
    return str(error) if isinstance(error, RouteBlocked) else f"{type(error).__name__}: {error}"


class Index:
    """Finds the routes whose filters hold. Immutable once built, apart from bounded memos; not to be shared between threads."""

    def __init__(self, layout: TermLayout, watched: Watch = unwatched, schemas: SchemaBook = NO_SCHEMAS) -> None:
        entries = layout.entries
        self._layout = layout
        self._sources = _sources(entries)
        self._signatures = Signatures(entries, layout, self._sources)
        self._slots = _Slots(entries, self._sources)
        self._most = np.array([len(entry.slots) for entry in entries], np.int32)
        self._routes = np.array([entry.route for entry in entries], np.int32)
        self._scanned = np.array([n for n, entry in enumerate(entries) if not entry.access and entry.fact is None], np.int32)
        self._facts = facts_of((layout.numbers[e.fact.path], e.fact, n) for n, e in enumerate(entries) if e.fact is not None)
        self.reader = Reader(layout.paths, layout.exact, schemas)
        self._judged = JudgedTexts(layout)
        leaf_test = in_table(layout.numbers)
        self._predicates = {
            n: watched(entry.route, left, predicate(left, leaf_test))
            for n, entry in enumerate(entries)
            if (left := entry.left) is not None
        }
        self._has_predicate = np.zeros(len(entries), bool)
        self._has_predicate[list(self._predicates)] = True

    def match(self, table: Table, count: int) -> tuple[Pairs, list[RoutingProblem]]:
        """The pairs of event and route, in no order, a route perhaps twice."""
        codes = _Codes(self, table, count)
        verdicts = self._judged.verdicts(table, count) if self._judged else None
        problems: list[RoutingProblem] = []
        found = [
            self._tested(self._slots.tested(pairs, codes, slots), table, verdicts, problems)
            for slots, pairs in self._candidates(codes.known, table, count)
        ]
        if not found:
            return Pairs(np.empty(0, np.int32), np.empty(0, np.int32)), problems
        events, entries = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return Pairs(events, self._routes[entries]), problems

    def fill(self, source: TermSource, codes: Ints, table: Table) -> None:
        """Fill in the row of codes of this source."""
        row, column = self._sources[source], table.columns[source.number]
        if source.of is Of.VALUE:
            codes[row] = self._layout.words[source.number].codes(column)
        elif source.of is Of.PIECE:
            exactly = _exactly(self.reader.paths[source.number], table, column)
            codes[row] = self._layout.cuts[source.number].codes(column, exactly)
        else:
            pieces = codes[self._sources[TermSource(source.number, Of.PIECE)]]
            codes[row] = self._signatures.buckets[source.number][pieces + 1]

    def fill_some(self, source: TermSource, codes: Ints, table: Table, events: list[int]) -> None:
        """Fill in the pieces of these events."""
        column = table.columns[source.number]
        exactly = _exactly(self.reader.paths[source.number], table, column)
        pieces = self._layout.cuts[source.number].codes(
            [column[event] for event in events], lambda some: exactly([events[n] for n in some])
        )
        codes[self._sources[source], events] = pieces

    @property
    def sources(self) -> dict[TermSource, int]:
        return self._sources

    def _candidates(self, codes: Ints, table: Table, count: int) -> Iterator[tuple[int, Pairs]]:
        """Pairs of event and entry to look at, with the number of slots they have at the most."""
        for slots, events, entries in self._signatures.candidates(codes):
            yield slots, Pairs(events, entries)
        for number, facts in self._facts:
            events, found = facts.found(table.columns[number])
            yield self._most[found].max(initial=0), Pairs(events, found)
        if len(self._scanned):
            step = max(1, _CHUNK // len(self._scanned))
            for start in range(0, count, step):
                events = np.arange(start, min(count, start + step), dtype=np.int32)
                yield MAX_SLOTS, Pairs(np.repeat(events, len(self._scanned)), np.tile(self._scanned, len(events)))

    def _tested(self, pairs: Pairs, table: Table, verdicts: Verdicts | None, problems: list[RoutingProblem]) -> Pairs:
        """The pairs whose predicates hold, where there are any. What texts decide at once is not asked of each."""
        if not self._predicates:
            return pairs
        open_pairs = self._has_predicate[pairs.numbers]
        if verdicts is not None and open_pairs.any():
            fits, decided = verdicts.of(*pairs)
            pairs, open_pairs = Pairs(pairs.events[fits], pairs.numbers[fits]), (open_pairs & ~decided)[fits]
        calls = np.flatnonzero(open_pairs)
        if not len(calls):
            return pairs
        keep = np.ones(len(pairs.events), bool)
        keep[calls] = [
            self._holds(entry, event, table, problems)
            for event, entry in zip(pairs.events[calls].tolist(), pairs.numbers[calls].tolist(), strict=True)
        ]
        return Pairs(pairs.events[keep], pairs.numbers[keep])

    def _holds(self, entry: int, event: int, table: Table, problems: list[RoutingProblem]) -> bool:
        try:
            return self._predicates[entry](table, event)
        except Exception as error:  # the last line of defense: one bad pair must not stop the batch
            problems.append(RoutingProblem(event, int(self._routes[entry]), reason_of(error)))
            return False


class _Codes:
    """A row of codes per source; row 0 is all zeros. Pieces that no cell needs are worked out when a candidate asks for them."""

    def __init__(self, index: Index, table: Table, count: int) -> None:
        self._index = index
        self._table = table
        self.known = np.zeros((len(index.sources) + 1, count), np.int32)
        bucketed = {source.number for source in index.sources if source.of is Of.BUCKET}
        self._late = [source for source in index.sources if source.of is Of.PIECE and source.number not in bucketed]
        for source in index.sources:
            if source not in self._late:
                index.fill(source, self.known, table)

    def complete(self, events: Ints) -> Ints:
        """The codes, with all pieces of at least these events. Where few ask, the others are not worked out."""
        if self._late and len(events) * _FEW < self.known.shape[1]:
            for source in self._late:
                self._index.fill_some(source, self.known, self._table, np.unique(events).tolist())
            return self.known
        while self._late:
            self._index.fill(self._late.pop(), self.known, self._table)
        return self.known


def _exactly(path: Path, table: Table, column: Column) -> Callable[[list[int]], Column]:
    """Gives some values of the column, without rounding."""

    def exactly(events: list[int]) -> Column:
        if isinstance(path, DataPath) and any(type(column[event]) is float for event in events):
            return values_at(path.steps, [table.payloads[event] for event in events])
        return [column[event] for event in events]

    return exactly


def _sources(entries: list[LayoutEntry]) -> dict[TermSource, int]:
    """The rows of the code matrix, from 1. A bucket is made from its piece, which therefore comes first."""
    found: dict[TermSource, None] = {}
    for entry in entries:
        for slot in entry.slots:
            found[slot.source] = None
        for choice in entry.access:
            if choice.source.of is Of.BUCKET:
                found[TermSource(choice.source.number, Of.PIECE)] = None
            found[choice.source] = None
    ordered = sorted(found, key=lambda source: source.of is Of.BUCKET)
    return {source: row for row, source in enumerate(ordered, 1)}


class _Layer(NamedTuple):
    """Slot k of every entry, as arrays: its row (one number if all have the same), low, high (None where all go to the top) and,
    where there are any, the excluded codes. An entry without such a slot fits whatever the code."""

    row: Ints | int
    low: Ints
    high: Ints | None
    excluded: tuple[Ints, ...]

    def fits(self, known: Ints, events: Ints, numbers: Ints) -> NDArray[np.bool_]:
        rows, count = self.row, known.shape[1]
        code = known[rows][events] if isinstance(rows, int) else known.ravel()[rows[numbers] * count + events]
        fits: NDArray[np.bool_] = code >= self.low[numbers]
        if self.high is not None:
            fits &= code <= self.high[numbers]
        for excluded in self.excluded:
            fits &= code != excluded[numbers]
        return fits


class _Slots:
    """The slots of all entries."""

    def __init__(self, entries: list[LayoutEntry], sources: dict[TermSource, int]) -> None:
        most = max((len(entry.slots) for entry in entries), default=0)
        self._layers = [_layer([entry.slots[k : k + 1] for entry in entries], sources) for k in range(most)]

    def tested(self, pairs: Pairs, codes: _Codes, slots: int) -> Pairs:
        """The pairs whose codes are in the ranges."""
        events, numbers = pairs
        if not slots or not len(events):
            return pairs
        known = codes.complete(events)
        for layer in self._layers[:slots]:
            keep = layer.fits(known, events, numbers)
            events, numbers = events[keep], numbers[keep]
        return Pairs(events, numbers)


def _layer(slots: list[list[Slot]], sources: dict[TermSource, int]) -> _Layer:
    lines = [_line(found[0], sources) if found else _NO_SLOT for found in slots]
    rows, low, high, *excluded = (np.array(column, np.int32) for column in zip(*lines, strict=True))
    used = np.unique(rows[rows != _NO_SLOT[0]])
    return _Layer(
        int(used[0]) if len(used) == 1 else rows,
        low,
        None if (high == HIGHEST).all() else high,
        tuple(codes for codes in excluded if (codes != _NO_CODE).any()),
    )


def _line(slot: Slot, sources: dict[TermSource, int]) -> tuple[int, ...]:
    excluded = (*slot.excluded, _NO_CODE, _NO_CODE)[:MAX_EXCLUDED]
    return sources[slot.source], slot.low, slot.high, *excluded
