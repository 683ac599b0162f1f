"""Decides how each term is found: by one or two columns whose codes select it, by a text's facts, or by looking at every event.

What the access does not decide becomes slots (a range of codes in some column, tested on all candidates at once in numpy) and,
for the rest, a predicate that is called per candidate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import product
from typing import NamedTuple

from tidings.filters.algebra import Compare, Exists, Filter, Literal, OneOf, Order, Text, all_of
from tidings.filters.paths import Path
from tidings.filters.routing.codes import ABSENT, HIGHEST, NO_NUMBER, UNNAMED, Cuts, Vocabulary
from tidings.filters.routing.predicates import is_range
from tidings.filters.routing.terms import Term, Tested

MAX_SLOTS = 4
BUCKETS = 64
_MAX_CELLS = 64
MAX_EXCLUDED = 2


class Of(Enum):
    """What the codes of a column stand for."""

    VALUE = "value"
    PIECE = "piece"
    BUCKET = "bucket"


class Source(NamedTuple):
    """A column of codes: the values, pieces or buckets of one path."""

    path: Path
    of: Of


class Slot(NamedTuple):
    """The code in this column is between low and high, and is none of those excluded."""

    source: Source
    low: int
    high: int = HIGHEST
    excluded: tuple[int, ...] = ()

    def joined(self, other: Slot) -> Slot:
        """Both at once, for the same column."""
        excluded = tuple(dict.fromkeys(self.excluded + other.excluded))
        return Slot(self.source, max(self.low, other.low), min(self.high, other.high), excluded)


class Choice(NamedTuple):
    """A column that can select a term: the codes it allows, which share of all codes they are, and whether that decides it."""

    source: Source
    codes: Sequence[int]
    share: float
    decides: Tested | None


@dataclass(slots=True)
class Entry:
    """One term of one route, laid out."""

    route: int
    access: tuple[Choice, ...] = ()
    text: Text | None = None
    slots: list[Slot] = field(default_factory=list)
    rest: list[Filter] = field(default_factory=list)

    def cells(self) -> Iterator[tuple[int, ...]]:
        """Every combination of codes that selects this entry."""
        return product(*(choice.codes for choice in self.access))

    @property
    def left(self) -> Filter | None:
        return all_of(*self.rest) if self.rest else None


class Layout:
    """The entries of all terms, and the vocabularies and cuts they refer to."""

    def __init__(self, terms: Iterable[tuple[int, Term]]) -> None:
        found = list(terms)
        self.words: dict[Path, Vocabulary] = {}
        self._ranks: dict[Source, int] = {}
        numbers: dict[Path, set[object]] = {}
        for _, term in found:
            for test in term:
                self._collect(test.filter, numbers)
        self.cuts = {path: Cuts(cuts) for path, cuts in numbers.items()}  # type: ignore[arg-type]
        self.entries = self._laid_out(found)

    def width(self, source: Source) -> int:
        """How many codes the column has."""
        return len(self.words[source.path]) if source.of is Of.VALUE else self.buckets(source.path)

    def buckets(self, path: Path) -> int:
        return min(BUCKETS, self.cuts[path].pieces) + 1

    def bucket(self, path: Path, piece: int) -> int:
        """The bucket of a piece; 0 is no number."""
        pieces = self.cuts[path].pieces
        return 1 + min(piece, pieces - 1) * (self.buckets(path) - 1) // pieces

    def _collect(self, filter: Filter, numbers: dict[Path, set[object]]) -> None:
        match filter:
            case Compare(path, _, value) if is_range(filter):
                numbers.setdefault(path, set()).add(value.value)
            case Compare(path, Order.EQ | Order.NE, value):
                self.words.setdefault(path, Vocabulary()).add(value)
            case OneOf(path, values):
                words = self.words.setdefault(path, Vocabulary())
                for value in values:
                    words.add(value)
            case Exists(path):
                self.words.setdefault(path, Vocabulary())

    def _laid_out(self, terms: list[tuple[int, Term]]) -> list[Entry]:
        """Every term gets its most selective column; a second one where many terms share the first."""
        choices = [sorted(self._choices(term), key=lambda choice: choice.share) for _, term in terms]
        sharing = Counter(found[0].source for found in choices if found)
        entries = []
        for (route, term), found in zip(terms, choices, strict=True):
            entry = Entry(route, self._access(found, sharing))
            self._finish(entry, term)
            entries.append(entry)
        return entries

    def _access(self, choices: list[Choice], sharing: Counter[Source]) -> tuple[Choice, ...]:
        if not choices:
            return ()
        first, *others = choices
        if sharing[first.source] * first.share > 1:
            for second in others:
                if second.source.path != first.source.path and len(first.codes) * len(second.codes) <= _MAX_CELLS:
                    return tuple(sorted((first, second), key=lambda choice: self._rank(choice.source)))
        return (first,)

    def _rank(self, source: Source) -> int:
        """The same two columns in the same order for every entry, so that they share a signature."""
        return self._ranks.setdefault(source, len(self._ranks))

    def _choices(self, term: Term) -> Iterator[Choice]:
        for test in term:
            if test.negated:
                continue
            match test.filter:
                case Compare(path, Order.EQ, value):
                    words = self.words[path]
                    yield Choice(Source(path, Of.VALUE), (words.add(value),), 1 / len(words), test)
                case OneOf(path, values) if len(values) <= _MAX_CELLS:
                    words = self.words[path]
                    codes = sorted({words.add(value) for value in values})
                    yield Choice(Source(path, Of.VALUE), codes, len(codes) / len(words), test)
        for path, (low, high) in self._ranges(term).items():
            first, last = self.bucket(path, low), self.bucket(path, high)
            share = (last + 1 - first) / self.buckets(path)
            if share <= 0.5:
                yield Choice(Source(path, Of.BUCKET), range(first, last + 1), share, None)

    def _ranges(self, term: Term) -> dict[Path, tuple[int, int]]:
        """The pieces that all plain comparisons of the term leave, per path."""
        ranges: dict[Path, tuple[int, int]] = {}
        for test in term:
            if not test.negated and is_range(test.filter):
                assert isinstance(test.filter, Compare)
                path = test.filter.path
                low, high = self.cuts[path].range(test.filter.op, test.filter.value.value)  # type: ignore[arg-type]
                before = ranges.get(path, (0, HIGHEST))
                ranges[path] = max(low, before[0]), min(high, before[1])
        return ranges

    def _finish(self, entry: Entry, term: Term) -> None:
        """Turn what the access leaves open into slots and a rest."""
        decided = {id(choice.decides) for choice in entry.access}
        slots: dict[Source, Slot] = {}
        for test in term:
            if id(test) in decided:
                continue
            slot = self._slot(test)
            if not entry.access and entry.text is None and isinstance(test.filter, Text) and not test.negated:
                entry.text = test.filter
            elif slot is None or not _taken(slots, slot):
                entry.rest.append(test.plain)
        entry.slots = list(slots.values())

    def _slot(self, test: Tested) -> Slot | None:
        """The test as a range of codes; None when it cannot be said that way."""
        match test.filter:
            case Compare(path, Order.EQ, value):
                code = self.words[path].add(value)
                return _unlike(path, ABSENT, code) if test.negated else Slot(Source(path, Of.VALUE), code, code)
            case Compare(path, Order.NE, value) if not test.negated:
                return _unlike(path, UNNAMED, self.words[path].add(value))
            case Compare(path, op, value) if is_range(test.filter):
                return self._piece_slot(path, op, value, test.negated)
            case OneOf(path, values) if test.negated and len(values) <= MAX_EXCLUDED:
                return _unlike(path, ABSENT, *(self.words[path].add(value) for value in values))
            case Exists(path):
                return Slot(Source(path, Of.VALUE), ABSENT, ABSENT) if test.negated else _unlike(path, UNNAMED)
        return None

    def _piece_slot(self, path: Path, op: Order, value: Literal, negated: bool) -> Slot | None:
        low, high = self.cuts[path].range(op, value.value)  # type: ignore[arg-type]
        if not negated:
            return Slot(Source(path, Of.PIECE), low, high)
        # What is no number is not less and not greater: it is in the opposite of a range that ends at the top only.
        return Slot(Source(path, Of.PIECE), NO_NUMBER, low - 1) if high == HIGHEST else None


def _unlike(path: Path, low: int, *codes: int) -> Slot:
    return Slot(Source(path, Of.VALUE), low, excluded=codes)


def _taken(slots: dict[Source, Slot], slot: Slot) -> bool:
    """Whether there was room for one more slot."""
    before = slots.get(slot.source)
    joined = before.joined(slot) if before else slot
    if len(joined.excluded) > MAX_EXCLUDED or (before is None and len(slots) == MAX_SLOTS):
        return False
    slots[slot.source] = joined
    return True
