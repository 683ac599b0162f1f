"""What a value alone decides: which of many prefixes, suffixes, wildcards and expressions a text satisfies, or its array.

Worked out once per distinct text and remembered, within bounds: a path whose texts never repeat costs a few look-ups each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tidings.filters import texts
from tidings.filters.algebra import AnyOf, Compare, Each, Filter, Inside, OneOf, Text, TextOp
from tidings.filters.meaning import opened, text_test
from tidings.filters.payload import MISSING
from tidings.filters.routing.codes import key_of
from tidings.filters.routing.columns import Column
from tidings.filters.routing.layout import Fact

_MAX_TEXTS = 20_000
_MAX_ANSWERS = 500_000
_MAX_LENGTH = 200

Answer = tuple[int, ...]


class TextFacts:
    """Text → the entries whose condition it satisfies."""

    def __init__(self) -> None:
        self._conditions: dict[tuple[TextOp, str], list[int]] = {}
        self._heads: dict[str, list[_Rest]] = {}
        self._tails: dict[str, list[_Rest]] = {}
        self._others: list[_Rest] = []
        self._memo: dict[str, Answer] = {}
        self._answers = 0

    def add(self, condition: Text, entry: int) -> None:
        """This entry waits for texts that satisfy the condition. To be followed by `ready` once all are added."""
        self._conditions.setdefault((condition.op, condition.pattern), []).append(entry)

    def ready(self) -> None:
        for (op, pattern), entries in self._conditions.items():
            self._file(op, pattern, tuple(entries))
        self._conditions.clear()
        self._head_lengths = sorted({*map(len, self._heads)})
        self._tail_lengths = sorted({*map(len, self._tails)})

    def _file(self, op: TextOp, pattern: str, entries: Answer) -> None:
        """Under the longest literal the text must begin or end with; what is not decided by it is tested."""
        rest = _Rest(entries, None if op in (TextOp.PREFIX, TextOp.SUFFIX) else text_test(op, pattern))
        head, tail = _ends(op, pattern)
        if head or op is TextOp.PREFIX:
            self._heads.setdefault(head, []).append(rest)
        elif tail or op is TextOp.SUFFIX:
            self._tails.setdefault(tail, []).append(rest)
        else:
            self._others.append(rest)

    def answers(self, column: Column) -> list[Answer]:
        """The entries for every value of the column; none for what is no text."""
        memo, found = self._memo, self._found
        answers = [memo.get(value) if type(value) is str else () for value in column]
        if None in answers:
            answers = [found(column[n]) if answer is None else answer for n, answer in enumerate(answers)]
        return answers  # type: ignore[return-value]

    def answer(self, value: Any) -> Answer:
        """The entries for one value."""
        if type(value) is not str:
            return ()
        known = self._memo.get(value)
        return self._found(value) if known is None else known

    def _found(self, text: str) -> Answer:
        found: list[int] = []
        for length in self._head_lengths:
            if length > len(text):
                break
            _collect(self._heads.get(text[:length], ()), text, found)
        for length in self._tail_lengths:
            if length > len(text):
                break
            _collect(self._tails.get(text[len(text) - length :], ()), text, found)
        _collect(self._others, text, found)
        return self._remember(text, tuple(found))

    def _remember(self, text: str, answer: Answer) -> Answer:
        if len(text) <= _MAX_LENGTH and len(answer) <= _MAX_ANSWERS:
            self._answers += len(answer)
            if len(self._memo) >= _MAX_TEXTS or self._answers > _MAX_ANSWERS:
                self._memo.clear()
                self._answers = len(answer)
            self._memo[text] = answer
        return answer


class _Rest:
    """Entries, and what is left to test when their literal was found."""

    __slots__ = ("entries", "test")

    def __init__(self, entries: Answer, test: Callable[[str], bool] | None) -> None:
        self.entries = entries
        self.test = test


def _collect(rests: list[_Rest] | tuple[()], text: str, found: list[int]) -> None:
    for rest in rests:
        if rest.test is None or rest.test(text):
            found += rest.entries


def _ends(op: TextOp, pattern: str) -> tuple[str, str]:
    match op:
        case TextOp.PREFIX:
            return pattern, ""
        case TextOp.SUFFIX:
            return "", pattern
        case TextOp.LIKE:
            parts = texts.like_parts(pattern) or ("",)
            first, last = parts[0], parts[-1]
            return first if isinstance(first, str) else "", last if isinstance(last, str) else ""
        case TextOp.REGEX | TextOp.WHOLE:
            return texts.literal_head(pattern, op is TextOp.WHOLE), ""
    return "", ""


class EachFacts:
    """Several values → the entries whose condition one of them satisfies. Values are what `Each` or `Inside` looks at."""

    def __init__(self, items: Callable[[Any], Iterable[Any]]) -> None:
        self._items = items
        self._equal: dict[Any, list[int]] = {}
        self._texts = TextFacts()

    def add(self, fact: Each | Inside, entry: int) -> None:
        """This entry waits for values of which one satisfies the condition. To be followed by `ready`."""
        self._add(fact.condition if isinstance(fact, Each) else fact.part, entry)

    def _add(self, condition: Filter, entry: int) -> None:
        match condition:
            case Text():
                self._texts.add(condition, entry)
            case Compare(_, _, value):
                self._equal.setdefault(key_of(value.value), []).append(entry)
            case OneOf(_, values):
                for value in values:
                    self._equal.setdefault(key_of(value.value), []).append(entry)
            case AnyOf(parts):
                for part in parts:
                    self._add(part, entry)

    def ready(self) -> None:
        self._texts.ready()

    def answers(self, column: Column) -> list[Answer]:
        """The entries for every value of the column."""
        return list(map(self.answer, column))

    def answer(self, value: Any) -> Answer:
        """The entries for one value of the column, each once."""
        found: list[int] = []
        items = self._items(value)
        for item in items:
            found += self._equal.get(key_of(item), ())
            found += self._texts.answer(item)
        return tuple(found if len(found) < 2 else set(found))


def _several(value: Any) -> Iterable[Any]:
    return value if type(value) is tuple else ()


def _inside(value: Any) -> Iterable[Any]:
    """What `Inside` looks at that can be equal to something: the value, or what is in the array."""
    if type(value) is list:
        return [item for item in opened(value) if type(item) is not dict]
    return () if value is MISSING or type(value) is dict else (value,)


def facts_of(facts: Iterable[tuple[int, Fact, int]]) -> list[tuple[int, TextFacts | EachFacts]]:
    """All facts, from (number of the path, condition, entry), by the number of their path."""
    found: dict[tuple[int, type], Any] = {}
    for number, fact, entry in facts:
        kind = (number, type(fact))
        if kind not in found:
            found[kind] = TextFacts() if isinstance(fact, Text) else EachFacts(_several if isinstance(fact, Each) else _inside)
        found[kind].add(fact, entry)
    for one in found.values():
        one.ready()
    return [(number, one) for (number, _), one in found.items()]
