"""What a text alone decides: which of many prefixes, suffixes, wildcards and expressions it satisfies.

Worked out once per distinct text and remembered, within bounds: a path whose texts never repeat costs a few look-ups each.
"""

from __future__ import annotations

from collections.abc import Callable

from tidings.filters import texts
from tidings.filters.algebra import Text, TextOp
from tidings.filters.meaning import text_test
from tidings.filters.routing.columns import Column

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
    return "", ""
