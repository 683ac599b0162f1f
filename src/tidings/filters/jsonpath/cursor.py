"""Reads a path's text from left to right, and says where it stopped. Both grammars stand on it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from tidings.errors import FilterSyntaxError
from tidings.filters import text_patterns

MAX_LENGTH = 10_000
MAX_SEGMENTS = 64
_MAX_NESTING = 32
_SHOWN = 20


class Cursor:
    """A place in the text. `shift` is how many characters were put in front of what the user wrote."""

    __slots__ = ("_nesting", "_segments", "at", "shift", "text")

    def __init__(self, text: object, shift: int = 0) -> None:
        if not isinstance(text, str):
            raise FilterSyntaxError("a path is a text", found=text, expected="a text such as $.order.id")
        text_patterns.check(text)
        if len(text) > MAX_LENGTH:
            raise FilterSyntaxError("the path is too long", found=len(text), expected=f"at most {MAX_LENGTH} characters")
        self.text = text
        self.shift = shift
        self.at = 0
        self._nesting = 0
        self._segments = 0

    @property
    def ended(self) -> bool:
        return self.at >= len(self.text)

    def sees(self, *signs: str) -> bool:
        return self.text.startswith(signs, self.at)

    def takes(self, sign: str) -> bool:
        """Whether the text goes on with the sign; if so, step over it."""
        if not self.text.startswith(sign, self.at):
            return False
        self.at += len(sign)
        return True

    def want(self, sign: str, expected: str = "") -> None:
        if not self.takes(sign):
            self.fail(expected or f"'{sign}'")

    def match(self, pattern: re.Pattern[str]) -> str | None:
        """What the pattern fits right here, stepped over; None when it does not."""
        found = pattern.match(self.text, self.at)
        if found is None:
            return None
        self.at = found.end()
        return found[0]

    def fail(self, expected: str, what: str = "the path cannot be read", at: int | None = None) -> NoReturn:
        place = self.at if at is None else at
        found = self.text[place : place + _SHOWN] or "the end of the path"
        raise FilterSyntaxError(what, at=self.column(place), found=found, expected=expected)

    def column(self, place: int) -> str:
        return f"column {max(place - self.shift, 0) + 1}"

    def segment(self) -> None:
        """Count one more segment, nested ones too: evaluation goes as deep as there are segments."""
        self._segments += 1
        if self._segments > MAX_SEGMENTS:
            self.fail(f"at most {MAX_SEGMENTS} segments", "the path has too many segments")

    @contextmanager
    def deeper(self) -> Iterator[None]:
        """One level further in: parentheses, predicates, lists."""
        self._nesting += 1
        if self._nesting > _MAX_NESTING:
            self.fail(f"at most {_MAX_NESTING} levels", "the path is nested too deeply")
        yield
        self._nesting -= 1

    @contextmanager
    def placing(self, at: int) -> Iterator[None]:
        """What is refused inside (a regular expression, say) stands at this place of the path."""
        try:
            yield
        except FilterSyntaxError as error:
            raise FilterSyntaxError(error.what, at=self.column(at), found=error.found, expected=error.expected) from error
