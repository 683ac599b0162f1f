"""What a value alone decides: which of many prefixes, suffixes, wildcards and expressions a text satisfies, or its array.

Worked out once per distinct text and remembered, within bounds: a path whose texts never repeat costs a few look-ups each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, repeat
from typing import Any, TypeAlias

import numpy as np

from tidings.filters import text_patterns
from tidings.filters.algebra import AnyOf, Compare, Each, Filter, Inside, OneOf, Text, TextOp
from tidings.filters.matches import opened, text_test
from tidings.filters.payload import MISSING
from tidings.filters.routing.codes import Ints, key_of
from tidings.filters.routing.columns import Column
from tidings.filters.routing.layout import Fact

_MAX_TEXTS = 20_000
_MAX_ANSWERS = 500_000
MAX_LENGTH = 200
"""Characters of a text that is remembered, and that many expressions are tried on at once."""

_TOGETHER = range(4, 129)

Answer: TypeAlias = tuple[int, ...]
Found: TypeAlias = tuple[Ints, Ints]


class TextFacts:
    """Text → the entries whose condition it satisfies."""

    def __init__(self) -> None:
        self._conditions: dict[tuple[TextOp, str], list[int]] = {}
        self._heads: dict[str, list[_Rest]] = {}
        self._tails: dict[str, list[_Rest]] = {}
        self._others: list[_Rest] = []
        self._together: list[_Together] = []
        self._memo: dict[str, Answer] = {}
        self._answers = 0

    def add(self, condition: Text, entry: int) -> None:
        """This entry waits for texts that satisfy the condition. To be followed by `ready` once all are added."""
        self._conditions.setdefault((condition.op, condition.pattern), []).append(entry)

    def ready(self) -> None:
        for (op, pattern), entries in self._conditions.items():
            self._file(op, pattern, tuple(entries))
        self._conditions.clear()
        for rests in (*self._heads.values(), self._others):
            self._join(rests)
        self._heads = {head: rests for head, rests in self._heads.items() if rests}
        self._head_lengths = sorted({*map(len, self._heads)})
        self._tail_lengths = sorted({*map(len, self._tails)})

    def _file(self, op: TextOp, pattern: str, entries: Answer) -> None:
        """Under the longest literal the text must begin or end with; what is not decided by it is tested."""
        rest = _Rest(entries, op, pattern)
        head, tail = _ends(op, pattern)
        if head or op is TextOp.PREFIX:
            self._heads.setdefault(head, []).append(rest)
        elif tail or op is TextOp.SUFFIX:
            self._tails.setdefault(tail, []).append(rest)
        else:
            self._others.append(rest)

    def _join(self, rests: list[_Rest]) -> None:
        """Where many expressions are left to test, they are tested in one pass."""
        for whole in (False, True):
            joined = [rest for rest in rests if rest.expression is not None and rest.whole is whole]
            for start in range(0, len(joined), _TOGETHER.stop - 1):
                part = joined[start : start + _TOGETHER.stop - 1]
                which = (
                    text_patterns.together([str(rest.expression) for rest in part], whole) if len(part) in _TOGETHER else None
                )
                if which is not None:
                    self._together.append(_Together(part, which))
                    rests[:] = [rest for rest in rests if rest not in part]

    @property
    def empty(self) -> bool:
        return not (self._conditions or self._heads or self._tails or self._others or self._together)

    def found(self, column: Column) -> Found:
        """Which value of the column, by its number, leads to which entry."""
        return spread(self.answers(column))

    def answers(self, column: Column) -> list[Answer]:
        """The entries for every value of the column; none for what is no text."""
        memo, found = self._memo, self._found
        answers = [memo.get(value) if type(value) is str else () for value in column]
        if None in answers:
            answers = [found(column[n]) if answer is None else answer for n, answer in enumerate(answers)]
        return answers  # type: ignore[return-value]

    @property
    def memo(self) -> Callable[[str], Answer | None]:
        """Gives what is remembered of a text."""
        return self._memo.get

    def answer(self, value: Any) -> Answer:
        """The entries for one value."""
        if type(value) is not str:
            return ()
        known = self._memo.get(value)
        return self._found(value) if known is None else known

    def _found(self, text: str) -> Answer:
        found: list[int] = []
        size = len(text)
        for length in self._head_lengths:
            if length > size:
                break
            if (rests := self._heads.get(text[:length])) is not None:
                _collect(rests, text, found)
        for length in self._tail_lengths:
            if length > size:
                break
            if (rests := self._tails.get(text[size - length :])) is not None:
                _collect(rests, text, found)
        if self._others:
            _collect(self._others, text, found)
        for together in self._together:
            together.collect(text, found)
        return self._remember(text, tuple(found))

    def _remember(self, text: str, answer: Answer) -> Answer:
        if len(text) <= MAX_LENGTH and len(answer) <= _MAX_ANSWERS:
            self._answers += len(answer)
            if len(self._memo) >= _MAX_TEXTS or self._answers > _MAX_ANSWERS:
                self._memo.clear()
                self._answers = len(answer)
            self._memo[text] = answer
        return answer


class _Rest:
    """Entries, and what is left to test when their literal was found."""

    __slots__ = ("entries", "expression", "test", "whole")

    def __init__(self, entries: Answer, op: TextOp, pattern: str) -> None:
        self.entries = entries
        self.test = _left_to_test(op, pattern)
        self.expression = pattern if op in (TextOp.REGEX, TextOp.WHOLE) and self.test not in (None, _is_one_line) else None
        self.whole = op is TextOp.WHOLE


class _Together:
    """Entries whose expressions are tried in one pass; one by one on long texts, where a pass could take too long."""

    def __init__(self, rests: list[_Rest], which: Callable[[str], Sequence[int] | None]) -> None:
        self._rests = rests
        self._which = which

    def collect(self, text: str, found: list[int]) -> None:
        numbers = self._which(text) if len(text) <= MAX_LENGTH else None
        if numbers is None:
            _collect(self._rests, text, found)
            return
        for number in numbers:
            found += self._rests[number].entries


def _left_to_test(op: TextOp, pattern: str) -> Callable[[str], bool] | None:
    """What is left to test of a text that begins or ends as `_ends` says. Nothing is the most common case, and the cheapest."""
    head, tail = _ends(op, pattern)
    match op:
        case TextOp.PREFIX | TextOp.SUFFIX:
            return None
        case TextOp.LIKE if text_patterns.like_parts(pattern) in ((head, text_patterns.ANY), (text_patterns.ANY, tail)):
            return None
        case TextOp.REGEX if head and pattern in (f"^{head}", f"^{head}.*"):
            return None
        case TextOp.WHOLE if head and pattern.removeprefix("^").removesuffix("$") == f"{head}.*":
            return _is_one_line  # which is what a dot asks of the rest
    return text_test(op, pattern)


def _is_one_line(text: str) -> bool:
    return "\n" not in text


def _collect(rests: list[_Rest], text: str, found: list[int]) -> None:
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
            parts = text_patterns.like_parts(pattern) or ("",)
            first, last = parts[0], parts[-1]
            return first if isinstance(first, str) else "", last if isinstance(last, str) else ""
        case TextOp.REGEX | TextOp.WHOLE:
            return text_patterns.literal_head(pattern, op is TextOp.WHOLE), ""
    return "", ""


class EachFacts:
    """Several values → the entries whose condition one of them satisfies. Values are what `Each` or `Inside` looks at."""

    def __init__(self, items: Callable[[Any], Sequence[Any]]) -> None:
        self._items = items
        self._equal: dict[Any, Answer] = {}
        self._waiting: dict[Any, list[int]] = {}
        self._confusable = False
        self._texts = TextFacts()

    def add(self, fact: Each | Inside, entry: int) -> None:
        """This entry waits for values of which one satisfies the condition. To be followed by `ready`."""
        self._add(fact.condition if isinstance(fact, Each) else fact.part, entry)

    def _add(self, condition: Filter, entry: int) -> None:
        match condition:
            case Text():
                self._texts.add(condition, entry)
            case Compare(_, _, value):
                self._wait(value.value, entry)
            case OneOf(_, values):
                for value in values:
                    self._wait(value.value, entry)
            case AnyOf(parts):
                for part in parts:
                    self._add(part, entry)

    def _wait(self, value: Any, entry: int) -> None:
        self._confusable |= type(value) is bool or value in (0, 1)
        self._waiting.setdefault(key_of(value), []).append(entry)

    def ready(self) -> None:
        self._texts.ready()
        self._equal = {key: tuple(entries) for key, entries in self._waiting.items()}
        self._waiting.clear()

    def found(self, column: Column) -> Found:
        """Which value of the column, by its number, leads to which entry; each pair once."""
        several = list(map(self._items, column))
        lengths = np.fromiter(map(len, several), np.int32, len(several))
        items = chain.from_iterable(several)
        if self._texts.empty and not self._confusable:
            answers = list(map(self._equal.get, items, repeat(())))
        else:
            answers = list(map(self._of_item, items))
        events, entries = spread(answers)
        events = np.repeat(np.arange(len(several), dtype=np.int32), lengths)[events]
        pairs = np.unique(events.astype(np.int64) << 32 | entries)
        return (pairs >> 32).astype(np.int32), pairs.astype(np.int32)

    def answer(self, value: Any) -> Answer:
        """The entries for one value of the column, each once."""
        found = [entry for item in self._items(value) for entry in self._of_item(item)]
        return tuple(found if len(found) < 2 else set(found))

    def _of_item(self, item: Any) -> Answer:
        equal = self._equal.get(key_of(item), ())
        return equal if self._texts.empty else equal + self._texts.answer(item)


def spread(answers: Sequence[Answer]) -> Found:
    """Answers as pairs: the number of the answer beside each entry in it."""
    lengths = np.fromiter(map(len, answers), np.int32, len(answers))
    entries = np.fromiter(chain.from_iterable(answers), np.int32, int(lengths.sum()))
    return np.repeat(np.arange(len(answers), dtype=np.int32), lengths), entries


def _several(value: Any) -> Sequence[Any]:
    return value if type(value) is tuple else ()


def _inside(value: Any) -> Sequence[Any]:
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
