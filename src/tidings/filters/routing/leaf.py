"""What is found at the end of a look-up: the routes that are decided there, tables for one more look, and what must be tested.

Answers are made ahead. Ranges that end at the top are one sorted list of which a piece is taken, so that many of them cost
no more memory than they are; other ranges and excluded values are tables, which are left out where they would grow too large.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from tidings.filters.routing.codes import ABSENT, HIGHEST
from tidings.filters.routing.layout import Entry, Layout, Of, Slot, Source

_TABLE = 4096
_PER_SLOT = 16

Routes = tuple[int, ...]


class Ranges(NamedTuple):
    """Routes by the piece that the number at a path is in: `ends[:bisect(lows, piece)]`, and `sets[bisect(cuts, piece)]`."""

    number: int
    lows: list[int]
    ends: Routes
    cuts: list[int]
    sets: list[Routes]


class Values(NamedTuple):
    """Routes by the value at a path, and the routes for a value that is not named here."""

    number: int
    named: Callable[[Any, Routes], Routes]
    other: Routes


class Leaf:
    """Entries that one look-up leads to, with the slots that it leaves open."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: list[tuple[Entry, list[Slot]]] = []

    def add(self, entry: Entry, slots: list[Slot]) -> None:
        self._entries.append((entry, slots))

    def done(self, layout: Layout, usual: int, test: Callable[[Entry, list[Slot]], Any]) -> Any:
        """Just the routes, if that is all: a tuple. Otherwise a list: routes, lows and ends of the path that is `usual` for
        ranges, and, unless there are none of them, (tables of values, other ranges, (route, test) of what is left)."""
        decided = tuple(entry.route for entry, slots in self._entries if not slots and not entry.rest)
        if len(decided) == len(self._entries):
            return decided
        by_source: dict[Source, list[_Kept]] = {}
        rest: list[_Kept] = []
        for entry, slots in self._entries:
            if len(slots) == 1 and not entry.rest:
                by_source.setdefault(slots[0].source, []).append(_Kept(entry, slots[0]))
            elif slots or entry.rest:
                rest.append(_Kept(entry, slots))
        values = [_values(layout, source.number, found, rest) for source, found in by_source.items() if source.of is Of.VALUE]
        ranges = [_ranges(source.number, found, rest) for source, found in by_source.items() if source.of is not Of.VALUE]
        lows, ends = next(((one.lows, one.ends) for one in ranges if one.number == usual), ([], ()))
        ranges = [one if one.number != usual else one._replace(lows=[], ends=()) for one in ranges]
        left = [(kept.entry.route, test(kept.entry, kept.slots)) for kept in rest]
        more = ([table for table in values if table is not None], [one for one in ranges if one.lows or one.cuts], left)
        return [decided, lows, ends, more if any(more) else None]


class _Kept:
    """An entry with its only open slot, or all of them."""

    __slots__ = ("entry", "slots")

    def __init__(self, entry: Entry, open_slots: Slot | list[Slot]) -> None:
        self.entry = entry
        self.slots = open_slots if isinstance(open_slots, list) else [open_slots]


def _ranges(number: int, entries: list[_Kept], rest: list[_Kept]) -> Ranges:
    to_top = sorted((kept.slots[0].low, kept.entry.route) for kept in entries if kept.slots[0].high == HIGHEST)
    others = [kept for kept in entries if kept.slots[0].high != HIGHEST]
    cuts = sorted({edge for kept in others for edge in (kept.slots[0].low, kept.slots[0].high + 1)})
    sets: list[list[int]] = [[] for _ in range(len(cuts) + 1)]
    room = _TABLE + _PER_SLOT * len(others)
    for kept in others:
        first, last = bisect_right(cuts, kept.slots[0].low), bisect_right(cuts, kept.slots[0].high)
        room -= last + 1 - first
        if room < 0:
            rest.append(kept)
            continue
        for routes in sets[first : last + 1]:
            routes.append(kept.entry.route)
    lows, ends = [low for low, _ in to_top], tuple(route for _, route in to_top)
    return Ranges(number, lows, ends, cuts, list(map(tuple, sets)))


def _values(layout: Layout, number: int, entries: list[_Kept], rest: list[_Kept]) -> Values | None:
    special = {ABSENT} | {code for kept in entries for code in _edges(kept.slots[0])}
    if len(special) * len(entries) > _TABLE + _PER_SLOT * len(entries):
        rest += entries
        return None
    named = {layout.words[number].key(code): _fitting(entries, code) for code in special}
    return Values(number, named.get, _fitting(entries, HIGHEST))


def _edges(slot: Slot) -> Iterable[int]:
    return (*slot.excluded, *((slot.low,) if slot.low == slot.high else ()))


def _fitting(entries: list[_Kept], code: int) -> Routes:
    return tuple(kept.entry.route for kept in entries if kept.slots[0].fits(code))
