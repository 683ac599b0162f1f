"""Texts that many candidates must fit: each event's text is asked once which patterns it fits, then all candidates are decided.

It pays where a route's access leaves many candidates. Long texts are left undecided: their candidates are tested one by one.
"""

from __future__ import annotations

from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidings.filters.algebra import Text
from tidings.filters.routing.budgets import is_watched
from tidings.filters.routing.codes import Ints
from tidings.filters.routing.columns import Column, Table, is_column
from tidings.filters.routing.facts import MAX_LENGTH, TextFacts
from tidings.filters.routing.layout import LayoutEntry, TermLayout

_MAX_PATTERNS = 256
_SHARE_OF_FACT = 1 / 64
_FITS, _OPEN = 0, 1

Flags = NDArray[np.bool_]


class _Judge(NamedTuple):
    """The patterns at one path, and the column of the table of verdicts that says that a text was too long for them."""

    number: int
    facts: TextFacts
    open: int


class JudgedTexts:
    """Which entries are decided this way, and by which columns of the table of verdicts."""

    def __init__(self, layout: TermLayout) -> None:
        entries = layout.entries
        self._judges: list[_Judge] = []
        self._width = 2
        self._fits = np.full(len(entries), _FITS, np.int32)
        self._open = np.full(len(entries), _OPEN, np.int32)
        self._decides = np.zeros(len(entries), bool)
        by_path: dict[int, list[tuple[int, Text]]] = {}
        for number, entry in enumerate(entries):
            text = _text_of(entry)
            if text is not None:
                by_path.setdefault(layout.numbers[text.path], []).append((number, text))
        for path, tests in by_path.items():
            patterns = {(text.op, text.pattern): text for _, text in tests}
            if len(patterns) <= _MAX_PATTERNS and sum(_share(entries[n]) for n, _ in tests) >= 1:
                self._judge(path, tests, list(patterns.values()))
        for n in np.flatnonzero(self._fits != _FITS):
            self._decides[n] = len(entries[n].rest) == 1

    def __bool__(self) -> bool:
        return bool(self._judges)

    def _judge(self, path: int, tests: list[tuple[int, Text]], patterns: list[Text]) -> None:
        facts = TextFacts()
        columns: dict[Text, int] = {}
        for pattern in patterns:
            columns[pattern] = self._width + len(columns)
            facts.add(pattern, columns[pattern])
        facts.ready()
        undecided = self._width + len(columns)
        self._judges.append(_Judge(path, facts, undecided))
        self._width = undecided + 1
        for number, text in tests:
            self._fits[number], self._open[number] = columns[text], undecided

    def verdicts(self, table: Table, count: int) -> Verdicts:
        return Verdicts(self, table, count)

    def table(self, table: Table, count: int) -> Flags:
        """Event by column: whether its text fits, or is left undecided."""
        found = np.zeros((count, self._width), bool)
        found[:, _FITS] = True
        for judge in self._judges:
            column: Column = table.columns[judge.number]
            long = [n for n, value in enumerate(column) if type(value) is str and len(value) > MAX_LENGTH]
            if long:
                column = column.copy()
                for n in long:
                    column[n] = None
                found[long, judge.open] = True
            found[judge.facts.found(column)] = True
        return found

    def of(self, table: Flags, events: Ints, entries: Ints) -> tuple[Flags, Flags]:
        """Whether each pair may fit, and whether nothing is left to test of it."""
        flat, row = table.ravel(), events.astype(np.int64) * self._width
        undecided = flat[row + self._open[entries]]
        return flat[row + self._fits[entries]] | undecided, self._decides[entries] & ~undecided


class Verdicts:
    """The table of some events, made when a candidate asks for it."""

    def __init__(self, judged: JudgedTexts, table: Table, count: int) -> None:
        self._judged, self._table, self._count = judged, table, count

    @cached_property
    def _verdicts(self) -> Flags:
        return self._judged.table(self._table, self._count)

    def of(self, events: Ints, entries: Ints) -> tuple[Flags, Flags]:
        """Whether each pair of event and entry may fit, and whether nothing is left to test of it."""
        return self._judged.of(self._verdicts, events, entries)


def _text_of(entry: LayoutEntry) -> Text | None:
    """A text that the entry's candidates must fit. None where time is measured: a test that is spared would not be told."""
    if any(map(is_watched, entry.rest)):
        return None
    return next((part for part in entry.rest if isinstance(part, Text) and is_column(part.path)), None)


def _share(entry: LayoutEntry) -> float:
    """About how many of all events the entry is a candidate for."""
    if entry.fact is not None:
        return _SHARE_OF_FACT
    return prod(choice.share for choice in entry.access)
