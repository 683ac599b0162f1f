"""The text of an RFC 9535 query: its segments. Expressions in filters are read by `standard_expressions`."""

from __future__ import annotations

import re

from tidings.filters.jsonpath.compiled_path import CompiledPath
from tidings.filters.jsonpath.cursor import Cursor
from tidings.filters.jsonpath.standard.expressions import FilterExpressions
from tidings.filters.jsonpath.standard.literals import quoted
from tidings.filters.jsonpath.standard.steps import Chosen, Segment, Selector, Wild, direct, singular, steps_of

_BLANK = re.compile(r"[ \t\n\r]*")
_NAME = re.compile(r"[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_\x80-\U0010ffff]*")
_INTEGER = re.compile(r"0(?!\d)|-?[1-9]\d*", re.ASCII)
_MAX_INTEGER = 2**53 - 1


def parse(text: str) -> CompiledPath:
    """The query that the text stands for. Raises FilterSyntaxError with the column."""
    cursor = Cursor(text)
    cursor.want("$")
    segments = StandardGrammar(cursor).segments()
    if not cursor.ended:
        cursor.fail("'.', '..', '[' or the end")
    steps = singular(segments)
    return CompiledPath(steps_of(segments), steps is not None, direct(steps))


class StandardGrammar:
    """Reads queries at the cursor, those inside of filters too."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._expressions = FilterExpressions(cursor, self.segments)

    def segments(self) -> tuple[Segment, ...]:
        """What follows `$` or `@`. Blanks may stand between segments, not after the last."""
        found: list[Segment] = []
        while True:
            before = self._cursor.at
            self._blank()
            if not self._cursor.sees(".", "["):
                self._cursor.at = before
                return tuple(found)
            self._cursor.segment()
            found.append(self._segment())

    def _segment(self) -> Segment:
        cursor = self._cursor
        if cursor.takes(".."):
            return Segment(self._bracketed() if cursor.sees("[") else (self._short(),), deep=True)
        if cursor.takes("."):
            return Segment((self._short(),))
        return Segment(self._bracketed())

    def _short(self) -> Selector:
        if self._cursor.takes("*"):
            return Wild()
        name = self._cursor.match(_NAME)
        return name if name is not None else self._cursor.fail("a name or '*'; other names need brackets and quotes")

    def _bracketed(self) -> tuple[Selector, ...]:
        cursor = self._cursor
        cursor.want("[")
        found: list[Selector] = []
        with cursor.deeper():
            while not found or cursor.takes(","):
                self._blank()
                found.append(self._selector())
                self._blank()
        cursor.want("]", "',' or ']'")
        return tuple(found)

    def _selector(self) -> Selector:
        cursor = self._cursor
        if cursor.sees("'", '"'):
            return quoted(cursor)
        if cursor.takes("*"):
            return Wild()
        if cursor.takes("?"):
            self._blank()
            return Chosen(self._expressions.logical())
        return self._counted()

    def _counted(self) -> Selector:
        """An index, or a slice of up to three numbers with colons between them."""
        first = self._integer()
        before = self._cursor.at
        self._blank()
        if not self._cursor.takes(":"):
            self._cursor.at = before
            return first if first is not None else self._cursor.fail("a name in quotes, an index, a slice, '*' or '?'")
        second = self._spaced_integer()
        return slice(first, second, self._spaced_integer() if self._cursor.takes(":") else None)

    def _spaced_integer(self) -> int | None:
        self._blank()
        number = self._integer()
        self._blank()
        return number

    def _integer(self) -> int | None:
        at = self._cursor.at
        text = self._cursor.match(_INTEGER)
        if text is None:
            return None
        if len(text) > len(str(-_MAX_INTEGER)) or abs(int(text)) > _MAX_INTEGER:
            self._cursor.fail(f"a number from -{_MAX_INTEGER} to {_MAX_INTEGER}", at=at)
        return int(text)

    def _blank(self) -> None:
        self._cursor.match(_BLANK)
