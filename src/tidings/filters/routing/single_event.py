"""One event at a time: a function generated for the routes of a group, for which an event costs a few look-ups.

Nested dictionaries lead from values to leaves, the path with the most values outermost: where nothing is named at it, all that
is below is skipped. There are two functions with the same body: `quick` decodes an event itself and gives up on whatever is odd
about it; `match` takes the values of any event. See `written` for their text.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from tidings.events.avro.payloads import NO_SCHEMAS, SchemaBook
from tidings.filters.paths import DataPath, Path
from tidings.filters.payload import MISSING
from tidings.filters.routing import generated_code
from tidings.filters.routing.budgets import Watch, unwatched
from tidings.filters.routing.codes import hashable, key_of
from tidings.filters.routing.columns import JSON, SMALL, EventRow, Reader, exactly_at, payload_of
from tidings.filters.routing.decoders import expressions
from tidings.filters.routing.facts import TextFacts, facts_of
from tidings.filters.routing.generated_code import Outer, Shape
from tidings.filters.routing.index import RoutingProblem
from tidings.filters.routing.layout import LayoutEntry, Of, Slot, TermLayout, TermSource
from tidings.filters.routing.leaf import DecidedRoutes, Leaf
from tidings.filters.routing.one_by_one import try_each
from tidings.filters.routing.predicates import Predicate, in_row, predicate
from tidings.filters.routing.value_index import Filed

_UNROLLED = 8
"""Inner look-ups of one outer value that are written out; more are a loop."""

Quick: TypeAlias = Callable[[bytes, bytes | None], list[int]]
Match: TypeAlias = Callable[[EventRow, list[RoutingProblem]], list[int]]


class Names(NamedTuple):
    """What `quick` finds: a name for each route, all different, and the names that every event finds."""

    of: Mapping[int, int]
    always: Sequence[int]


class Single:
    """The generated functions and what they look up. Immutable once built, apart from bounded memos."""

    def __init__(
        self,
        layout: TermLayout,
        watched: Watch = unwatched,
        names: Names | None = None,
        schemas: SchemaBook = NO_SCHEMAS,
    ) -> None:
        self.reader = Reader(layout.paths, layout.exact, schemas)
        self._schemas = schemas
        self._layout, self._watched = layout, watched
        self._exactly = {number: _exactly(self.reader.paths[number]) for number in layout.cuts}
        self._leaf_test = in_row(layout.numbers)
        self._name: Callable[[int], int] = int if names is None else names.of.__getitem__
        self._route_of = None if names is None else {name: route for route, name in names.of.items()}
        self._done = DecidedRoutes(layout, _usual(layout), self._mark, self._name, self._test)
        self._space = self._given(() if names is None else names.always)
        shape = self._shape()
        exec(generated_code.quick(shape), self._space)
        exec(generated_code.match(shape), self._space)
        self.quick: Quick = self._space["quick"]
        """The names for an event like most, each once. Raises something for one that is odd: `match` knows it."""
        self._match: Match = self._space["match"]

    def match(self, row: EventRow, problems: list[RoutingProblem]) -> list[int]:
        """The routes whose filter holds, a route perhaps twice; for any event."""
        found, route_of = self._match(row, problems), self._route_of
        if route_of is None:
            return found
        problems[:] = [problem._replace(route=route_of[problem.route]) for problem in problems]
        return [route_of[name] for name in found]

    def _given(self, always: Sequence[int]) -> dict[str, Any]:
        """What the functions refer to, whatever they look up."""
        reader = self.reader
        known = {"decode_head": reader.heads.decode, "decode": reader.tree.decode, "empty": reader.tree.empty}
        known |= {"SMALL": SMALL, "JSON": JSON, "payload_of": payload_of, "EventRow": EventRow, "always": always}
        known |= {"opened": reader.opened, "MISSING": MISSING, "schemas": self._schemas}
        known |= {"bisect": bisect_right, "piece": self._place}
        return known | {"tried": try_each, "looked_up": _looked_up}

    def _piece(self, number: int, value: Any, payload: bytes | None) -> int:
        exactly = self._exactly[number]
        return self._layout.cuts[number].piece(value, lambda: exactly(payload))

    def _place(self, number: int, value: Any, payload: bytes | None) -> float:
        """Where the value is among the cuts of its path."""
        return self._mark(number, self._piece(number, value, payload))

    def _mark(self, number: int, piece: int) -> float:
        cuts = self._layout.cuts[number]
        return cuts.mark(piece) if cuts.marked else piece

    def _shape(self) -> Shape:
        """Files all entries, and puts what they are found by into the name space."""
        layout, usual = self._layout, self._done.usual
        taken = expressions(self.reader.heads, self.reader.tree, self.reader.paths)
        self._space |= taken.space
        filed = Filed(layout)
        leaves = _Leaves(self._done)
        self._space["root_leaf"] = leaves.done(filed.root)
        outers = [self._outer(number, filed, leaves) for number in filed.order()]
        facts, tested = self._facts(filed.facts)
        if usual in layout.cuts:
            self._space["nearest"] = layout.cuts[usual].nearest if layout.cuts[usual].marked else _Everything()
        return Shape(
            values=taken.parts,
            keys=frozenset(layout.words),
            confusable=frozenset(n for n, words in layout.words.items() if words.confusable),
            usual=usual if leaves.ranges else -1,
            root=self._space["root_leaf"] != (),
            facts=facts,
            tested=tested,
            outers=outers,
            ranges=leaves.ranges,
            more=leaves.more,
            once=layout.once,
        )

    def _outer(self, number: int, filed: Filed, leaves: _Leaves) -> Outer:
        """The table of one path: value → the look-ups of the inner values, and the leaf it leads to by itself."""
        inner, alone = filed.outer.get(number, {}), filed.alone.get(number, {})
        partners = sorted({other for found in inner.values() for other in found})
        loop = len(partners) > _UNROLLED
        table = {}
        for key in inner.keys() | alone.keys():
            maps = {at: {k: leaves.done(leaf) for k, leaf in found.items()} for at, found in inner.get(key, {}).items()}
            gets = {at: found.get for at, found in maps.items()}
            of = [list(gets.items())] if loop else [gets.get(at, _nothing) for at in partners]
            table[key] = (*of, leaves.done(alone[key]) if key in alone else None)
        self._space[f"at{number}"] = table.get
        return Outer(number, partners, loop)

    def _facts(self, entries: list[LayoutEntry]) -> tuple[list[tuple[int, bool]], list[int]]:
        """Facts that decide, and facts that lead to tests."""
        numbers = self._layout.numbers
        decided = [
            (numbers[e.fact.path], e.fact, self._name(e.route)) for e in entries if e.fact and not e.slots and not e.rest
        ]
        others = [(n, e) for n, e in enumerate(entries) if e.fact and (e.slots or e.rest)]
        found, may = facts_of(decided), facts_of((numbers[e.fact.path], e.fact, n) for n, e in others if e.fact)
        for at, (_, facts) in enumerate(found):
            self._space[f"fact{at}"] = facts.answer
            if isinstance(facts, TextFacts):
                self._space[f"memo{at}"] = facts.memo
        for at, (_, facts) in enumerate(may):
            self._space[f"may{at}"] = facts.answer
        self._space["rest"] = {n: (self._name(entry.route), self._test(entry, entry.slots)) for n, entry in others}
        return [(number, isinstance(facts, TextFacts)) for number, facts in found], [number for number, _ in may]

    def _test(self, entry: LayoutEntry, slots: list[Slot]) -> Predicate:
        """What is left of an entry as one predicate."""
        left = entry.left
        rest = None if left is None else self._watched(entry.route, left, predicate(left, self._leaf_test))

        def test(row: EventRow, event: int) -> bool:
            for slot in slots:
                if not slot.fits(self._code(slot.source, row)):
                    return False
            return rest is None or rest(row, event)

        return test

    def _code(self, source: TermSource, row: EventRow) -> int:
        value = row.values[source.number]
        if source.of is Of.PIECE:
            return self._piece(source.number, value, row.payload)
        return self._layout.words[source.number].code(value)


_nothing: Callable[[Any], Any] = {}.get


class _Everything:
    """Holds whatever is asked for."""

    def __contains__(self, value: object) -> bool:
        return True


class _Leaves:
    """Finishes leaves, and knows which kinds there were."""

    def __init__(self, how: DecidedRoutes) -> None:
        self._how = how
        self.ranges = self.more = False

    def done(self, leaf: Leaf) -> Any:
        done = leaf.done(self._how)
        if type(done) is list:
            self.ranges = True
            self.more |= done[2] is not None
        return done


def _usual(layout: TermLayout) -> int:
    """The path that most ranges look at, if any."""
    counted = Counter(slot.source.number for entry in layout.entries for slot in entry.slots if slot.source.of is Of.PIECE)
    return max(counted, key=counted.__getitem__, default=-1)


def _exactly(path: Path) -> Callable[[bytes | None], Any]:
    """Reads the number at the path without rounding. Only places of the payload have any that may be rounded."""
    return exactly_at(path.steps) if isinstance(path, DataPath) else lambda payload: MISSING


def _looked_up(value: Any) -> Any:
    """What a value is looked up by."""
    return hashable(key_of(value))
