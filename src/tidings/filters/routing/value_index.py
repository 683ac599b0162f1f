"""Entries filed under the values that lead to them, for one event at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidings.filters.routing.layout import LayoutEntry, Of, Slot, TermLayout
from tidings.filters.routing.leaf import Leaf


class Filed:
    """Entries under two values, under one, under none, and those that a fact leads to."""

    def __init__(self, layout: TermLayout) -> None:
        self._words = layout.words
        self.outer: dict[int, dict[Any, dict[int, dict[Any, Leaf]]]] = {}
        self.alone: dict[int, dict[Any, Leaf]] = {}
        self.root = Leaf()
        self.facts: list[LayoutEntry] = []
        for entry in layout.entries:
            if entry.fact is not None:
                self.facts.append(entry)
            else:
                self._file(entry)

    def order(self) -> list[int]:
        """The paths to look up first, those with the most values before others."""
        return sorted(self.outer.keys() | self.alone.keys(), key=lambda n: -len(self._words[n]))

    def _file(self, entry: LayoutEntry) -> None:
        places, slots = self._places(entry)
        if not places:
            self.root.add(entry, slots)
            return
        first, codes = places[0]
        for key in map(self._words[first].key, codes):
            if len(places) == 1:
                _leaf(self.alone.setdefault(first, {}), key).add(entry, slots)
                continue
            second, others = places[1]
            inner = self.outer.setdefault(first, {}).setdefault(key, {}).setdefault(second, {})
            for other in map(self._words[second].key, others):
                _leaf(inner, other).add(entry, slots)

    def _places(self, entry: LayoutEntry) -> tuple[list[tuple[int, Sequence[int]]], list[Slot]]:
        """The one or two paths whose values lead to the entry, the one with the most values first, and the slots left open."""
        places = [(choice.source.number, choice.codes) for choice in entry.access if choice.source.of is Of.VALUE]
        slots = []
        for slot in entry.slots:
            if len(places) < 2 and slot.source.of is Of.VALUE and slot.low == slot.high and not slot.excluded:
                places.append((slot.source.number, (slot.low,)))
            else:
                slots.append(slot)
        return sorted(places, key=lambda place: -len(self._words[place[0]])), slots


def _leaf(leaves: dict[Any, Leaf], key: Any) -> Leaf:
    leaf = leaves.get(key)
    if leaf is None:
        leaf = leaves[key] = Leaf()
    return leaf
