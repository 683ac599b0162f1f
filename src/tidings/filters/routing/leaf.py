"""What is found at the end of a look-up: the routes that are decided there, tables for one more look, and what must be tested.

Answers are made ahead, per piece of a number or per value. Where they would grow with the square of the routes, those that end
at the top are pieces of one sorted list instead, and others are tested one by one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from tidings.filters.routing.codes import ABSENT, HIGHEST
from tidings.filters.routing.layout import LayoutEntry, Of, Slot, TermLayout, TermSource

_TABLE = 4096
_PER_SLOT = 16
_FEW_ENDS = 16
_FEW_DECIDED = 256

Routes: TypeAlias = tuple[int, ...]
Sets: TypeAlias = "tuple[Routes, ...] | Growing"


class Growing:
    """Routes of ranges that end at the top: the set at n is the first n of one list, put together when asked for."""

    __slots__ = ("_always", "_ends")

    def __init__(self, always: Routes, ends: Routes) -> None:
        self._always, self._ends = always, ends

    def __getitem__(self, count: int) -> Routes:
        return self._always + self._ends[:count]


class Ranges(NamedTuple):
    """Routes by the piece that the number at a path is in: `sets[bisect(cuts, piece)]`."""

    number: int
    cuts: Sequence[float]
    sets: Sets


class Values(NamedTuple):
    """Routes by the value at a path, and the routes for a value that is not named here."""

    number: int
    named: Callable[[Any, Routes], Routes]
    other: Routes


class More(NamedTuple):
    """What only some leaves have: tables of values, of ranges, and (route, test) of what is left to test."""

    values: list[Values]
    ranges: list[Ranges]
    tests: list[tuple[int, Any]]


class DecidedRoutes(NamedTuple):
    """How leaves are finished: which path is usual for ranges, what stands for a piece of a number and for a route, and how an
    entry is tested."""

    layout: TermLayout
    usual: int
    mark: Callable[[int, int], float]
    name: Callable[[int], int]
    test: Callable[[LayoutEntry, list[Slot]], Any]


class Leaf:
    """Entries that one look-up leads to, with the slots that it leaves open."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: list[tuple[LayoutEntry, list[Slot]]] = []

    def add(self, entry: LayoutEntry, slots: list[Slot]) -> None:
        self._entries.append((entry, slots))

    def done(self, how: DecidedRoutes) -> Any:
        """Just the routes, if that is all: a tuple. Otherwise a list: the cuts and sets of the path that is `usual` for ranges,
        with the routes that are decided in every set, and, unless there is nothing in it, the `More`."""
        decided = tuple(how.name(entry.route) for entry, slots in self._entries if not slots and not entry.rest)
        if len(decided) == len(self._entries):
            return decided
        by_source: dict[TermSource, list[_Kept]] = {}
        rest: list[_Kept] = []
        for entry, slots in self._entries:
            if len(slots) == 1 and not entry.rest:
                by_source.setdefault(slots[0].source, []).append(_Kept(how.name(entry.route), entry, slots))
            elif slots or entry.rest:
                rest.append(_Kept(how.name(entry.route), entry, slots))
        values = [
            _values(how.layout, source.number, found, rest) for source, found in by_source.items() if source.of is Of.VALUE
        ]
        usual = by_source.pop(TermSource(how.usual, Of.PIECE), []) if len(decided) <= _FEW_DECIDED else []
        first, *ranges = _ranges(how.usual, usual, rest, decided)
        for source, found in by_source.items():
            ranges += _ranges(source.number, found, rest, ()) if source.of is not Of.VALUE else ()
        tests = [(kept.route, how.test(kept.entry, kept.slots)) for kept in rest]
        more = More([one for one in values if one is not None], [_marked(one, how) for one in ranges], tests)
        return [_marked(first, how).cuts, first.sets, more if any(more) else None]


class _Kept(NamedTuple):
    """An entry with its open slots, and what stands for its route."""

    route: int
    entry: LayoutEntry
    slots: list[Slot]


def _ranges(number: int, entries: list[_Kept], rest: list[_Kept], always: Routes) -> list[Ranges]:
    """One table for all of them if they are few; otherwise one for the ranges that end at the top, and one for the others.
    The first of them holds the routes that are there `always`."""
    if len(entries) <= _FEW_ENDS:
        return [_pieces(number, entries, rest, always)]
    to_top = sorted((kept.slots[0].low, kept.route) for kept in entries if kept.slots[0].high == HIGHEST)
    ends = Growing(always, tuple(route for _, route in to_top))
    others = [kept for kept in entries if kept.slots[0].high != HIGHEST]
    found = [Ranges(number, [low for low, _ in to_top], ends)]
    return [*found, _pieces(number, others, rest, ())] if others else found


def _marked(ranges: Ranges, how: DecidedRoutes) -> Ranges:
    return ranges._replace(cuts=tuple(how.mark(ranges.number, int(cut)) for cut in ranges.cuts))


def _pieces(number: int, entries: list[_Kept], rest: list[_Kept], always: Routes) -> Ranges:
    edges = {edge for kept in entries for edge in (kept.slots[0].low, kept.slots[0].high + 1)}
    cuts = sorted(edge for edge in edges if edge <= HIGHEST)
    sets = [list(always) for _ in range(len(cuts) + 1)]
    room = _TABLE + _PER_SLOT * len(entries)
    for kept in entries:
        first, last = bisect_right(cuts, kept.slots[0].low), bisect_right(cuts, kept.slots[0].high)
        room -= last + 1 - first
        if room < 0:
            rest.append(kept)
            continue
        for routes in sets[first : last + 1]:
            routes.append(kept.route)
    return Ranges(number, cuts, tuple(map(tuple, sets)))


def _values(layout: TermLayout, number: int, entries: list[_Kept], rest: list[_Kept]) -> Values | None:
    special = {ABSENT} | {code for kept in entries for code in _edges(kept.slots[0])}
    if len(special) * len(entries) > _TABLE + _PER_SLOT * len(entries):
        rest += entries
        return None
    named = {layout.words[number].key(code): _fitting(entries, code) for code in special}
    return Values(number, named.get, _fitting(entries, HIGHEST))


def _edges(slot: Slot) -> Iterable[int]:
    return (*slot.excluded, *((slot.low,) if slot.low == slot.high else ()))


def _fitting(entries: list[_Kept], code: int) -> Routes:
    return tuple(kept.route for kept in entries if kept.slots[0].fits(code))
