"""The tokens of a CESQL text, each with the column it begins at (SQL-01, SQL-02, SQL-14)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import NoReturn

from tidings.errors import FilterSyntaxError

KEYWORDS = frozenset({"AND", "OR", "XOR", "NOT", "LIKE", "EXISTS", "IN", "TRUE", "FALSE"})


class Kind(Enum):
    """What a token is."""

    KEYWORD = "keyword"
    DIGITS = "digits"
    WORD = "word"
    STRING = "string"
    SIGN = "sign"
    END = "end"


@dataclass(frozen=True, slots=True)
class Token:
    """One token. `text` is what it says: keywords in upper case, strings without quotes; `end` is the place after it."""

    kind: Kind
    text: str
    start: int
    end: int
    written: str

    @property
    def column(self) -> int:
        return self.start + 1

    def refuse(self, what: str, expected: str) -> NoReturn:
        raise FilterSyntaxError(what, at=f"column {self.column}", found=self.written or "the end", expected=expected)


_TOKEN = re.compile(
    r"""[ \t\r\n]*(?:
      (?P<WORD> [A-Za-z0-9_]+ )
    | (?P<STRING> '(?:[^'\\]|\\.|'')*+' | "(?:[^"\\]|\\.|"")*+" )
    | (?P<SIGN> <=|>=|<>|!=|[-=<>+*/%(),] )
    | (?P<END> \Z )
    )""",
    re.VERBOSE | re.DOTALL,
)


def tokens(text: str) -> Iterator[Token]:
    """All tokens, the last one is the end. Raises FilterSyntaxError where no token can begin."""
    at = 0
    while True:
        found = _TOKEN.match(text, at)
        if found is None:
            raise _no_token(text, at)
        assert found.lastgroup is not None
        start, at = found.span(found.lastgroup)
        token = _token(Kind[found.lastgroup], found[found.lastgroup], start)
        yield token
        if token.kind is Kind.END:
            return


def _token(kind: Kind, written: str, start: int) -> Token:
    end = start + len(written)
    if kind is Kind.STRING:
        quote = written[0]
        return Token(kind, _unescaped(written[1:-1], quote), start, end, written)
    if kind is Kind.WORD and written.upper() in KEYWORDS:
        return Token(Kind.KEYWORD, written.upper(), start, end, written)
    if kind is Kind.WORD and written.isdecimal():
        return Token(Kind.DIGITS, written, start, end, written)
    return Token(kind, written, start, end, written)


def _unescaped(inner: str, quote: str) -> str:
    """Only a backslash before the own delimiter goes away; pairs are read from left to right."""
    return re.sub(r"\\(.)", lambda pair: quote if pair[1] == quote else pair[0], inner, flags=re.DOTALL)


def _no_token(text: str, at: int) -> FilterSyntaxError:
    rest = text[at:].lstrip(" \t\r\n")
    column = f"column {len(text) - len(rest) + 1}"
    if rest[0] in "\"'":
        return FilterSyntaxError("a string is not closed", at=column, found=rest, expected=f"{rest[0]} at its end")
    return FilterSyntaxError("this sign means nothing here", at=column, found=rest[0], expected="an operand or an operator")
