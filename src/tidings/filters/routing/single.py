"""One event at a time: a function generated for the routes of a group, for which an event costs a few look-ups.

Nested dictionaries lead from values to leaves, the path with the most values outermost: where nothing is named at it, all that
is below is skipped. The function is text put together from the layout; it holds no text of users, only numbers of paths.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from tidings.filters.algebra import Filter
from tidings.filters.paths import DataPath
from tidings.filters.routing.budgets import Watch, unwatched
from tidings.filters.routing.codes import hashable, key_of
from tidings.filters.routing.columns import Reader, Row, exact_at
from tidings.filters.routing.facts import facts_of
from tidings.filters.routing.index import Problem, reason_of
from tidings.filters.routing.layout import Entry, Layout, Of, Slot, Source
from tidings.filters.routing.leaf import Leaf
from tidings.filters.routing.predicates import Predicate, columns_of, in_row, predicate

_UNROLLED = 8
"""Inner look-ups of one outer value that are written out; more are a loop."""

_LEAF = """\
if leaf.__class__ is tuple: found += leaf
else:
  ids, lows, ends, more = leaf
  if ids: found += ids
  if lows:
    if usual is None: usual = known[USUAL] = piece(USUAL, row)
    found += ends[:bisect(lows, usual)]
  if more is not None:
    values, ranges, left = more
    for number, named, other in values: found += named(keys[number], other)
    for number, lows, ends, cuts, sets in ranges:
      at_piece = known.get(number)
      if at_piece is None: at_piece = known[number] = piece(number, row)
      if lows: found += ends[:bisect(lows, at_piece)]
      if cuts: found += sets[bisect(cuts, at_piece)]
    if left: tried(left, row, found, problems)"""

Match: TypeAlias = Callable[[Sequence[Any], Row, list[Problem]], list[int]]


class OneByOne:
    """Every predicate on one event: the way for few filters, which a generated function would not pay for."""

    def __init__(self, filters: Mapping[int, Filter], watched: Watch = unwatched) -> None:
        paths = columns_of(filters.values())
        leaf_test = in_row({path: n for n, path in enumerate(paths)})
        self.reader = Reader(tuple(paths), exact=True)
        self._tests = [(route, watched(route, filter, predicate(filter, leaf_test))) for route, filter in filters.items()]

    def match(self, row: Row, problems: list[Problem]) -> list[int]:
        """The routes whose filter holds."""
        found: list[int] = []
        _try_each(self._tests, row, found, problems)
        return found


class Single:
    """The generated function and what it looks up. Immutable once built, apart from bounded memos."""

    def __init__(self, layout: Layout, watched: Watch = unwatched) -> None:
        self.reader = Reader(layout.paths, layout.exact)
        self._layout = layout
        self._watched = watched
        self._leaf_test = in_row(layout.numbers)
        self._usual = _usual(layout)
        self._space: dict[str, Any] = {"USUAL": self._usual, "bisect": bisect_right, "place": bisect_left}
        self._space |= {"tried": _try_each, "piece": self._piece}
        self._confusable = [n for n, words in layout.words.items() if words.confusable]
        exec("\n".join(self._lines()), self._space)
        self._match: Match = self._space["match"]

    def match(self, row: Row, problems: list[Problem]) -> list[int]:
        """The routes whose filter holds, a route perhaps twice."""
        keys = row.values
        if self._confusable:
            keys = list(keys)
            for number in self._confusable:
                keys[number] = key_of(keys[number])
        try:
            return self._match(keys, row, problems)
        except TypeError:  # an array or object where a value is looked up
            problems.clear()
            return self._match(tuple(map(hashable, keys)), row, problems)

    def _piece(self, number: int, row: Row) -> int:
        path = self.reader.paths[number]
        steps = path.steps if isinstance(path, DataPath) else ()
        return self._layout.cuts[number].piece(row.values[number], lambda: exact_at(steps, row.payload))

    def _lines(self) -> Iterator[str]:
        """The function, line by line; what it refers to is put into its name space."""
        yield "def match(keys, row, problems):"
        yield "  found = []"
        if self._layout.paths:
            yield f"  {', '.join(f'k{n}' for n in range(len(self._layout.paths)))}, = keys"
        yield "  known, usual = {}, None"
        yield from self._usual_lines()
        outer, alone, root, facts = self._filed()
        self._space["root"] = self._done(root)
        if self._space["root"] != ():
            yield "  leaf = root"
            yield from self._leaf_lines("  ")
        yield from self._fact_lines(facts)
        for number in sorted(outer.keys() | alone.keys(), key=lambda n: -len(self._layout.words[n])):
            yield from self._outer_lines(number, outer.get(number, {}), alone.get(number, {}))
        yield "  return found"

    def _usual_lines(self) -> Iterator[str]:
        """The piece of a float at the path that is usual for ranges, unless it is as near to a cut as floats can tell."""
        number = self._usual
        if number in self._layout.cuts:
            self._space["nearest"] = self._layout.cuts[number].nearest
            yield f"  if k{number}.__class__ is float:"
            yield f"    at = place(nearest, k{number}, 0, {len(self._space['nearest']) - 1})"
            yield f"    if nearest[at] != k{number}: usual = known[{number}] = at + at"

    def _filed(self) -> tuple[dict[int, Any], dict[int, Any], Leaf, list[Entry]]:
        """Entries under two values, under one, under none, and those that a fact leads to."""
        words = self._layout.words
        outer: dict[int, dict[Any, dict[int, dict[Any, Leaf]]]] = {}
        alone: dict[int, dict[Any, Leaf]] = {}
        root, facts = Leaf(), []
        for entry in self._layout.entries:
            if entry.fact is not None:
                facts.append(entry)
                continue
            places, slots = self._places(entry)
            if not places:
                root.add(entry, slots)
                continue
            first, codes = places[0]
            for key in map(words[first].key, codes):
                if len(places) == 1:
                    _leaf(alone.setdefault(first, {}), key).add(entry, slots)
                    continue
                second, others = places[1]
                inner = outer.setdefault(first, {}).setdefault(key, {}).setdefault(second, {})
                for other in map(words[second].key, others):
                    _leaf(inner, other).add(entry, slots)
        return outer, alone, root, facts

    def _places(self, entry: Entry) -> tuple[list[tuple[int, Sequence[int]]], list[Slot]]:
        """The one or two paths whose values lead to the entry, the one with the most values first, and the slots left open."""
        places = [(choice.source.number, choice.codes) for choice in entry.access if choice.source.of is Of.VALUE]
        slots = []
        for slot in entry.slots:
            if len(places) < 2 and slot.source.of is Of.VALUE and slot.low == slot.high and not slot.excluded:
                places.append((slot.source.number, (slot.low,)))
            else:
                slots.append(slot)
        return sorted(places, key=lambda place: -len(self._layout.words[place[0]])), slots

    def _done(self, leaf: Leaf) -> Any:
        return leaf.done(self._layout, self._usual, self._test)

    def _test(self, entry: Entry, slots: list[Slot]) -> Predicate:
        """What is left of an entry as one predicate."""
        left = entry.left
        rest = None if left is None else self._watched(entry.route, left, predicate(left, self._leaf_test))

        def test(row: Row, event: int) -> bool:
            for slot in slots:
                if not slot.fits(self._code(slot.source, row)):
                    return False
            return rest is None or rest(row, event)

        return test

    def _code(self, source: Source, row: Row) -> int:
        if source.of is Of.PIECE:
            return self._piece(source.number, row)
        return self._layout.words[source.number].code(row.values[source.number])

    def _leaf_lines(self, indent: str) -> Iterator[str]:
        """Collect what `leaf` holds."""
        for line in _LEAF.splitlines():
            yield indent + line

    def _fact_lines(self, entries: list[Entry]) -> Iterator[str]:
        numbers = self._layout.numbers
        decided = [(numbers[e.fact.path], e.fact, e.route) for e in entries if e.fact and not e.slots and not e.rest]
        others = [(n, e) for n, e in enumerate(entries) if e.fact and (e.slots or e.rest)]
        for at, (number, facts) in enumerate(facts_of(decided)):
            self._space[f"fact{at}"] = facts.answer
            yield f"  found += fact{at}(row.values[{number}])"
        self._space["rest"] = {n: (entry.route, self._test(entry, entry.slots)) for n, entry in others}
        tested = [(numbers[e.fact.path], e.fact, n) for n, e in others if e.fact]
        for at, (number, facts) in enumerate(facts_of(tested)):
            self._space[f"may{at}"] = facts.answer
            yield f"  for n in may{at}(row.values[{number}]): tried((rest[n],), row, found, problems)"

    def _outer_lines(self, number: int, inner: dict[Any, Any], alone: dict[Any, Leaf]) -> Iterator[str]:
        """Look up one value; where it is named, the inner values and the leaf that it leads to by itself."""
        partners = sorted({other for found in inner.values() for other in found})
        unrolled = len(partners) <= _UNROLLED
        lookups = {}
        for key in inner.keys() | alone.keys():
            maps = {at: {k: self._done(leaf) for k, leaf in found.items()} for at, found in inner.get(key, {}).items()}
            of = [maps.get(at, _NONE).get for at in partners] if unrolled else [[(at, found.get) for at, found in maps.items()]]
            lookups[key] = (*of, self._done(alone[key]) if key in alone else None)
        self._space[f"at{number}"] = lookups.get
        yield f"  at = at{number}(k{number})"
        yield "  if at is not None:"
        if unrolled:
            yield f"    {', '.join((*(f'get{at}' for at in partners), 'leaf'))}{'' if partners else ','} = at"
            yield "    if leaf is not None:"
            yield from self._leaf_lines("      ")
            for at in partners:
                yield f"    leaf = get{at}(k{at})"
                yield "    if leaf is not None:"
                yield from self._leaf_lines("      ")
        else:
            yield "    others, leaf = at"
            yield "    if leaf is not None:"
            yield from self._leaf_lines("      ")
            yield "    for other, get in others:"
            yield "      leaf = get(keys[other])"
            yield "      if leaf is not None:"
            yield from self._leaf_lines("        ")


_NONE: dict[Any, Any] = {}


def _usual(layout: Layout) -> int:
    """The path that most ranges look at, if any."""
    counted = Counter(slot.source.number for entry in layout.entries for slot in entry.slots if slot.source.of is Of.PIECE)
    return max(counted, key=counted.__getitem__, default=-1)


def _leaf(leaves: dict[Any, Leaf], key: Any) -> Leaf:
    leaf = leaves.get(key)
    if leaf is None:
        leaf = leaves[key] = Leaf()
    return leaf


def _try_each(tests: Sequence[tuple[int, Predicate]], row: Row, found: list[int], problems: list[Problem]) -> None:
    """The routes whose test holds; a test that fails is a problem of its route alone."""
    for route, test in tests:
        try:
            if test(row, 0):
                found.append(route)
        except Exception as error:  # the last line of defense: one bad filter must not stop the others
            problems.append(Problem(0, route, reason_of(error)))
