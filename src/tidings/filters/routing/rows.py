"""Rows of entries by cell. A signature is one or two columns; a combination of their codes is a cell of one table for all."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidings.filters.routing.codes import UNNAMED, Ints
from tidings.filters.routing.layout import LayoutEntry, Of, TermLayout, TermSource

_DENSE = 1 << 20
_MARKS = 1 << 20
_CHUNK = 1_000_000


class Rows:
    """Lists of numbers by row, flat. Row 0 is empty."""

    def __init__(self, rows: list[list[int]]) -> None:
        self._count = np.array([0, *map(len, rows)], np.int32)
        self._first = np.concatenate(([0], np.cumsum(self._count)[:-1])).astype(np.int32)
        self._numbers = np.fromiter(chain.from_iterable(rows), np.int32)

    def expanded(self, rows: Ints, events: Ints) -> Iterator[tuple[Ints, Ints]]:
        """Every number of each row beside its event, in slices that stay small in memory."""
        count = self._count[rows]
        ends = np.cumsum(count)
        start = 0
        while start < len(rows):
            done = ends[start - 1] if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, done + _CHUNK, "right")))
            yield self._slice(rows[start:stop], events[start:stop], count[start:stop])
            start = stop

    def _slice(self, rows: Ints, events: Ints, count: Ints) -> tuple[Ints, Ints]:
        ends = np.cumsum(count, dtype=np.int32)
        at = np.repeat(self._first[rows] - ends + count, count)
        at += np.arange(len(at), dtype=np.int32)
        return np.repeat(events, count), self._numbers[at]


class _Signature(NamedTuple):
    """The rows of codes it looks at, how many codes each has, and the first of its cells."""

    rows: tuple[int, ...]
    widths: tuple[int, ...]
    base: int


class Signatures:
    """All signatures of an index. Small tables are dense; larger ones are sorted and searched."""

    def __init__(self, entries: list[LayoutEntry], layout: TermLayout, sources: dict[TermSource, int]) -> None:
        self.buckets = {source.number: _buckets(layout, source) for source in sources if source.of is Of.BUCKET}
        self._signatures: list[_Signature] = []
        # A slice of events without any named value in a column has no candidates by it.
        self._unnamed = np.array([0, *(UNNAMED if source.of is Of.VALUE else 0 for source in sources)], np.int32)
        self._size = 0
        cells: dict[int, list[int]] = {}
        for signature, numbers in _grouped(entries).items():
            widths = tuple(layout.width(source) for source in signature)
            self._signatures.append(_Signature(tuple(sources[source] for source in signature), widths, self._size))
            for number in numbers:
                for codes in entries[number].cells():
                    cells.setdefault(self._size + _offset(codes, widths), []).append(number)
            self._size += int(np.prod(widths, dtype=object))
        self._file(dict(sorted(cells.items())), [len(entry.slots) for entry in entries])

    def _file(self, cells: dict[int, list[int]], slots: list[int]) -> None:
        """Entries are kept apart by the number of their slots, so that those without any are not tested at all."""
        self._rows = {
            count: Rows([[n for n in numbers if slots[n] == count] for numbers in cells.values()])
            for count in sorted(set(slots))
        }
        self._keys = np.fromiter(cells, np.int64, len(cells))
        self._table: Ints | None = None
        self._marks = np.zeros(0, bool)
        if self._size > _DENSE:
            # Most cells have no entry: a mark under a shortened key spares them the search.
            self._marks = np.zeros(_MARKS, bool)
            self._marks[_folded(self._keys)] = True
        else:
            self._table = np.zeros(max(1, self._size), np.int32)
            self._table[self._keys] = np.arange(1, len(cells) + 1)

    def candidates(self, codes: Ints) -> Iterator[tuple[int, Ints, Ints]]:
        """The (number of slots, events, entries) that some signature selects, those of one number in the order of events."""
        if not len(self._keys):
            return
        named = codes.max(axis=1) > self._unnamed
        chosen = [signature for signature in self._signatures if all(named[row] for row in signature.rows)]
        if not chosen:
            return
        rows = self._row_of(self._cells(chosen, codes).T.ravel())
        hits = np.flatnonzero(rows)
        found, beside = rows[hits], (hits // len(chosen)).astype(np.int32)
        for slots, numbers in self._rows.items():
            for pairs in numbers.expanded(found, beside):
                yield slots, *pairs

    def _cells(self, chosen: list[_Signature], codes: Ints) -> NDArray[np.int64]:
        cells = np.empty((len(chosen), codes.shape[1]), np.int64 if self._size > _DENSE else np.int32)
        for cell, (rows, widths, base) in zip(cells, chosen, strict=True):
            np.add(codes[rows[0]], base if len(rows) == 1 else 0, out=cell)
            if len(rows) == 2:
                cell *= widths[1]
                cell += codes[rows[1]]
                cell += base
        return cells

    def _row_of(self, cells: NDArray[np.int64]) -> Ints:
        if self._table is not None:
            return self._table[cells]
        rows = np.zeros(len(cells), np.int32)
        likely = np.flatnonzero(self._marks[_folded(cells)])
        at = np.minimum(np.searchsorted(self._keys, cells[likely]), len(self._keys) - 1)
        rows[likely] = np.where(self._keys[at] == cells[likely], at + 1, 0)
        return rows


def _folded(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    return (keys ^ (keys >> 20)) & (_MARKS - 1)


def _grouped(entries: list[LayoutEntry]) -> dict[tuple[TermSource, ...], list[int]]:
    grouped: dict[tuple[TermSource, ...], list[int]] = {}
    for number, entry in enumerate(entries):
        if entry.access:
            grouped.setdefault(tuple(choice.source for choice in entry.access), []).append(number)
    return grouped


def _offset(codes: tuple[int, ...], widths: tuple[int, ...]) -> int:
    offset = 0
    for code, width in zip(codes, widths, strict=True):
        offset = offset * width + code
    return offset


def _buckets(layout: TermLayout, source: TermSource) -> Ints:
    """Piece + 1 → bucket, so that no number (piece -1) is bucket 0."""
    pieces = layout.cuts[source.number].pieces
    return np.array([0, *(layout.bucket(source.number, piece) for piece in range(pieces))], np.int32)
