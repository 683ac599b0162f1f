"""The words of the `where` language: splits a filter's text into tokens, each with the column it begins at."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from tidings.errors import FilterSyntaxError

RESERVED = frozenset(
    {"and", "or", "not", "in", "like", "starts", "ends", "with", "contains", "matches", "exists", "is", "missing"}
    | {"true", "false", "null"}
)
"""Words that cannot begin a path unless quoted, in any letter case."""

BARE = re.compile(r"[^\W\d][\w-]*")
"""A member name that needs no quotes."""


class Kind(Enum):
    """What a token is."""

    WORD = "a word"
    NAME = "a name"
    QUOTED = "a text in quotes"
    ATTRIBUTE = "an attribute"
    NUMBER = "a number"
    SIGN = "a sign"
    END = "the end"


@dataclass(frozen=True, slots=True)
class Token:
    """One word or sign. `text` is what it says: keywords in lower case, quoted texts without their quotes."""

    kind: Kind
    text: str
    column: int
    written: str

    def __str__(self) -> str:
        return self.written or "the end of the filter"


_TOKEN = re.compile(
    r"""\s*(?:
      (?P<ATTRIBUTE> @[\w-]* )
    | (?P<NUMBER> -?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.]) )
    | (?P<NAME> [^\W\d][\w-]* )
    | (?P<QUOTED> "(?:[^"]|"")*" | '(?:[^']|'')*' )
    | (?P<SIGN> <=|>=|<>|!=|==|[=<>().,\[\]] )
    | (?P<END> \Z )
    )""",
    re.VERBOSE,
)


def tokens(text: str) -> Iterator[Token]:
    """All tokens, the last one is the end. Raises FilterSyntaxError where no token can begin."""
    at = 0
    while True:
        found = _TOKEN.match(text, at)
        if found is None:
            raise _no_token(text, at)
        assert found.lastgroup is not None
        token = _token(Kind[found.lastgroup], found[found.lastgroup], found.start(found.lastgroup) + 1)
        yield token
        if token.kind is Kind.END:
            return
        at = found.end()


def _token(kind: Kind, written: str, column: int) -> Token:
    match kind:
        case Kind.QUOTED:
            quote = written[0]
            return Token(kind, written[1:-1].replace(quote * 2, quote), column, written)
        case Kind.NAME if written.lower() in RESERVED:
            return Token(Kind.WORD, written.lower(), column, written)
        case Kind.ATTRIBUTE:
            return Token(kind, written[1:], column, written)
    return Token(kind, written, column, written)


def _no_token(text: str, at: int) -> FilterSyntaxError:
    rest = text[at:].lstrip()
    column = len(text) - len(rest) + 1
    if rest[0] in "\"'":
        return FilterSyntaxError("a text is not closed", at=f"column {column}", found=rest, expected=f"{rest[0]} at its end")
    found = re.match(r"[\w.-]+|.", rest, re.DOTALL)
    word = found[0] if found else rest[0]
    if word[0].isdigit() or word[0] == "-":
        expected = "a number such as 5, -1.5 or 2e3; quotes around a member name that begins with a digit"
        return FilterSyntaxError("this is no number", at=f"column {column}", found=word, expected=expected)
    expected = "a path, an operator, a value, and, or, not, ( or )"
    return FilterSyntaxError("this sign means nothing here", at=f"column {column}", found=word, expected=expected)
