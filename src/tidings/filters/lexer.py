"""How filters that are written as text become tokens, each with its place. What the tokens are is up to the language.

A language is a pattern whose groups are named like its kinds. Its kind END stands for the end of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Generic, NoReturn, TypeVar

from tidings.errors import FilterSyntaxError

K = TypeVar("K", bound=Enum)


@dataclass(frozen=True, slots=True)
class LexerToken(Generic[K]):
    """One word or sign. `text` is what it says to the language, `written` how it stands there; the end is written as nothing."""

    kind: K
    text: str
    start: int
    written: str

    @property
    def end(self) -> int:
        """The place after it."""
        return self.start + len(self.written)

    @property
    def column(self) -> int:
        return self.start + 1

    def refuse(self, what: str, expected: str) -> NoReturn:
        found = self.written or "the end of the filter"
        raise FilterSyntaxError(what, at=f"column {self.column}", found=found, expected=expected)


@dataclass(frozen=True, slots=True)
class Language(Generic[K]):
    """`meant` says what kind a group's text really is, and what it says; `no_token` refuses a rest in which none can begin.
    `blank` holds the characters between tokens; None: all white space."""

    pattern: re.Pattern[str]
    kinds: type[K]
    meant: Callable[[K, str], tuple[K, str]]
    no_token: Callable[[LexerToken[K]], NoReturn]
    blank: str | None = None

    def tokens(self, text: str) -> Iterator[LexerToken[K]]:
        """All tokens, the last one is the end. Raises FilterSyntaxError where no token can begin."""
        at, end = 0, self.kinds["END"]
        while True:
            found = self.pattern.match(text, at)
            if found is None:
                self._refuse(text, at)
            assert found.lastgroup is not None
            group, written = found.lastgroup, found[found.lastgroup]
            kind, said = self.meant(self.kinds[group], written)
            yield LexerToken(kind, said, found.start(group), written)
            if kind is end:
                return
            at = found.end()

    def _refuse(self, text: str, at: int) -> NoReturn:
        rest = text[at:].lstrip(self.blank)
        token = LexerToken(self.kinds["END"], rest, len(text) - len(rest), rest)
        if rest[0] in "\"'":
            token.refuse("a text is not closed", f"{rest[0]} at its end")
        self.no_token(token)
