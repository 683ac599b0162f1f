"""Decides how each term is found: by one or two columns whose codes select it, by a value's facts, or by looking at every event.

What the access does not decide becomes slots (a range of codes in some column, tested on all candidates at once in numpy) and,
for the rest, a predicate that is called per candidate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import product
from typing import NamedTuple, TypeAlias

from tidings.filters.algebra import (
    AnyOf,
    Compare,
    Each,
    Exists,
    Filter,
    Inside,
    Literal,
    OneOf,
    Order,
    Quantifier,
    Text,
    ValueKind,
    all_of,
)
from tidings.filters.paths import ITEM, Path
from tidings.filters.routing.codes import ABSENT, HIGHEST, NO_NUMBER, UNNAMED, Cuts, Vocabulary
from tidings.filters.routing.columns import is_column
from tidings.filters.routing.predicates import columns_of, is_made, is_plain, is_range, needs_exact_numbers
from tidings.filters.routing.terms import Term, Tested

MAX_SLOTS = 4
BUCKETS = 64
_MAX_CELLS = 64
MAX_EXCLUDED = 2
_NOWHERE = -1


class Of(IntEnum):
    """What the codes of a column stand for. Integers, because sources are hashed a lot."""

    VALUE = 0
    PIECE = 1
    BUCKET = 2


class TermSource(NamedTuple):
    """A column of codes: the values, pieces or buckets of the path with this number."""

    number: int
    of: Of


class Slot(NamedTuple):
    """The code in this column is between low and high, and is none of those excluded."""

    source: TermSource
    low: int
    high: int = HIGHEST
    excluded: tuple[int, ...] = ()

    def joined(self, other: Slot) -> Slot:
        """Both at once, for the same column."""
        excluded = tuple(dict.fromkeys(self.excluded + other.excluded))
        return Slot(self.source, max(self.low, other.low), min(self.high, other.high), excluded)

    def fits(self, code: int) -> bool:
        return self.low <= code <= self.high and code not in self.excluded


class Choice(NamedTuple):
    """A column that can select a term: the codes it allows, which share of all codes they are, and whether that decides it."""

    source: TermSource
    codes: Sequence[int]
    share: float
    decides: Tested | None


Fact: TypeAlias = Text | Each | Inside


@dataclass(slots=True)
class LayoutEntry:
    """One term of one route, laid out."""

    route: int
    access: tuple[Choice, ...] = ()
    fact: Fact | None = None
    slots: list[Slot] = field(default_factory=list)
    rest: list[Filter] = field(default_factory=list)

    def cells(self) -> Iterator[tuple[int, ...]]:
        """Every combination of codes that selects this entry."""
        return product(*(choice.codes for choice in self.access))

    @property
    def left(self) -> Filter | None:
        return all_of(*self.rest) if self.rest else None


class _Placed(NamedTuple):
    """A test, and the number of the path it looks at if the index can take it apart."""

    test: Tested
    number: int


class TermLayout:
    """The entries of all terms, the paths they look at by number, and the vocabularies and cuts of these."""

    def __init__(self, terms: Iterable[tuple[int, Term]]) -> None:
        self.numbers: dict[Path, int] = {}
        self.words: dict[int, Vocabulary] = {}
        self._ranks: dict[TermSource, int] = {}
        self._cut_at: dict[int, set[object]] = {}
        placed = [(route, [_Placed(test, self._placed(test.filter)) for test in term]) for route, term in terms]
        self.cuts = {number: Cuts(cuts) for number, cuts in self._cut_at.items()}  # type: ignore[arg-type]
        self.entries = self._laid_out(placed)

    @property
    def paths(self) -> tuple[Path, ...]:
        return tuple(self.numbers)

    @property
    def exact(self) -> bool:
        """Whether numbers must be read exactly: something is equal to them, or made of them."""
        return (
            any(words.numeric for words in self.words.values())
            or any(map(is_made, self.numbers))
            or any(needs_exact_numbers(filter) for entry in self.entries for filter in entry.rest)
        )

    @property
    def once(self) -> bool:
        """Whether no route has several terms, of which several may hold for one event."""
        return len(self.entries) == len({entry.route for entry in self.entries})

    def width(self, source: TermSource) -> int:
        """How many codes the column has."""
        return len(self.words[source.number]) if source.of is Of.VALUE else self.buckets(source.number)

    def buckets(self, number: int) -> int:
        return min(BUCKETS, self.cuts[number].pieces) + 1

    def bucket(self, number: int, piece: int) -> int:
        """The bucket of a piece; 0 is no number."""
        pieces = self.cuts[number].pieces
        return 1 + min(piece, pieces - 1) * (self.buckets(number) - 1) // pieces

    def _placed(self, filter: Filter) -> int:
        """Number the paths of the filter, and take note of the values it compares with."""
        if not is_plain(filter):
            for path in columns_of((filter,)):
                self.numbers.setdefault(path, len(self.numbers))
            return _NOWHERE
        number = self.numbers.setdefault(filter.path, len(self.numbers))  # type: ignore[union-attr]
        match filter:
            case Compare(_, Order.EQ | Order.NE, value):
                self._words(number).add(value)
            case Compare(_, _, value) if value.is_number:
                self._cut_at.setdefault(number, set()).add(value.value)
            case OneOf(_, values):
                for value in values:
                    self._words(number).add(value)
            case Exists():
                self._words(number)
        return number

    def _words(self, number: int) -> Vocabulary:
        words = self.words.get(number)
        if words is None:
            words = self.words[number] = Vocabulary()
        return words

    def _laid_out(self, terms: list[tuple[int, list[_Placed]]]) -> list[LayoutEntry]:
        """Every term gets its most selective column; a second one where many terms share the first."""
        choices = [sorted(self._choices(term), key=_share) for _, term in terms]
        sharing = Counter(found[0].source for found in choices if found)
        entries = []
        for (route, term), found in zip(terms, choices, strict=True):
            entry = LayoutEntry(route, self._access(found, sharing))
            self._finish(entry, term)
            entries.append(entry)
        return entries

    def _access(self, choices: list[Choice], sharing: Counter[TermSource]) -> tuple[Choice, ...]:
        if not choices:
            return ()
        first, *others = choices
        if sharing[first.source] * first.share > 1:
            for second in others:
                if second.source.number != first.source.number and len(first.codes) * len(second.codes) <= _MAX_CELLS:
                    return (first, second) if self._rank(first.source) < self._rank(second.source) else (second, first)
        return (first,)

    def _rank(self, source: TermSource) -> int:
        """The same two columns in the same order for every entry, so that they share a signature."""
        return self._ranks.setdefault(source, len(self._ranks))

    def _choices(self, term: list[_Placed]) -> Iterator[Choice]:
        found = 0
        for test, number in term:
            if test.negated or number == _NOWHERE:
                continue
            match test.filter:
                case Compare(_, Order.EQ, value):
                    words, found = self.words[number], found + 1
                    yield Choice(TermSource(number, Of.VALUE), (words.add(value),), 1 / len(words), test)
                case OneOf(_, values) if len(values) <= _MAX_CELLS:
                    words, found = self.words[number], found + 1
                    codes = sorted({words.add(value) for value in values})
                    yield Choice(TermSource(number, Of.VALUE), codes, len(codes) / len(words), test)
        if found > 1 or not self.cuts:  # two values select well enough, and cost less than the bucket of a number
            return
        for number, (low, high) in self._ranges(term).items():
            first, last = self.bucket(number, low), self.bucket(number, high)
            share = (last + 1 - first) / self.buckets(number)
            if share <= 0.5:
                yield Choice(TermSource(number, Of.BUCKET), range(first, last + 1), share, None)

    def _ranges(self, term: list[_Placed]) -> dict[int, tuple[int, int]]:
        """The pieces that all plain comparisons of the term leave, per path."""
        ranges: dict[int, tuple[int, int]] = {}
        for test, number in term:
            if number in self.cuts and not test.negated and is_range(test.filter):
                assert isinstance(test.filter, Compare)
                low, high = self.cuts[number].range(test.filter.op, test.filter.value.value)  # type: ignore[arg-type]
                before = ranges.get(number, (0, HIGHEST))
                ranges[number] = max(low, before[0]), min(high, before[1])
        return ranges

    def _finish(self, entry: LayoutEntry, term: list[_Placed]) -> None:
        """Turn what the access leaves open into a fact, slots and a rest."""
        decided = [choice.decides for choice in entry.access]
        fact = None if entry.access else _best_fact(term)
        slots: dict[TermSource, Slot] = {}
        for test, number in term:
            if any(test is one for one in decided):
                continue
            if test is fact:
                entry.fact = test.filter  # type: ignore[assignment]
                if isinstance(test.filter, Each) and test.filter.over is Quantifier.EVERY:
                    entry.rest.append(test.filter)  # that one value satisfies it is not enough
                continue
            slot = None if number == _NOWHERE else self._slot(test, number)
            if slot is None or not _taken(slots, slot):
                entry.rest.append(test.plain)
        entry.slots = list(slots.values())

    def _slot(self, test: Tested, number: int) -> Slot | None:
        """The test as a range of codes; None when it cannot be said that way."""
        match test.filter:
            case Compare(_, Order.EQ, value):
                code = self.words[number].add(value)
                return _unlike(number, ABSENT, code) if test.negated else Slot(TermSource(number, Of.VALUE), code, code)
            case Compare(_, Order.NE, value) if not test.negated:
                return _unlike(number, UNNAMED, self.words[number].add(value))
            case Compare(_, op, value) if is_range(test.filter):
                return self._piece_slot(number, op, value, test.negated)
            case OneOf(_, values) if test.negated and len(values) <= MAX_EXCLUDED:
                return _unlike(number, ABSENT, *(self.words[number].add(value) for value in values))
            case Exists():
                return Slot(TermSource(number, Of.VALUE), ABSENT, ABSENT) if test.negated else _unlike(number, UNNAMED)
        return None

    def _piece_slot(self, number: int, op: Order, value: Literal, negated: bool) -> Slot | None:
        low, high = self.cuts[number].range(op, value.value)  # type: ignore[arg-type]
        if not negated:
            return Slot(TermSource(number, Of.PIECE), low, high)
        # What is no number is not less and not greater: it is in the opposite of a range that ends at the top only.
        return Slot(TermSource(number, Of.PIECE), NO_NUMBER, low - 1) if high == HIGHEST else None


def _share(choice: Choice) -> float:
    return choice.share


def _best_fact(term: list[_Placed]) -> Tested | None:
    """The condition to begin with: of many, one that names values, or the longest text."""
    facts = [test for test, _ in term if not test.negated and _is_fact(test.filter)]
    return max(facts, key=_promise, default=None)


def _promise(test: Tested) -> int:
    match test.filter:
        case Text(_, _, pattern):
            return len(pattern)
        case Each(_, _, Text(_, _, pattern)) | Inside(_, _, Text(_, _, pattern)):
            return len(pattern)
    return 1000


def _is_fact(filter: Filter) -> bool:
    """Whether a value can be asked which of many such conditions it satisfies."""
    match filter:
        case Text(path):
            return is_column(path)
        case Each(path, Quantifier.SOME | Quantifier.EVERY, Compare(_, Order.EQ) | OneOf() | Text()):
            return is_column(path)
        case Inside(_, ValueKind.VALUE, part):
            return _is_of_item(part) or (isinstance(part, AnyOf) and all(map(_is_of_item, part.parts)))
    return False


def _is_of_item(part: Filter) -> bool:
    match part:
        case Compare(path, Order.EQ) | OneOf(path) | Text(path):
            return path == ITEM
    return False


def _unlike(number: int, low: int, *codes: int) -> Slot:
    return Slot(TermSource(number, Of.VALUE), low, excluded=codes)


def _taken(slots: dict[TermSource, Slot], slot: Slot) -> bool:
    """Whether there was room for one more slot."""
    before = slots.get(slot.source)
    joined = before.joined(slot) if before else slot
    if len(joined.excluded) > MAX_EXCLUDED or (before is None and len(slots) == MAX_SLOTS):
        return False
    slots[slot.source] = joined
    return True
