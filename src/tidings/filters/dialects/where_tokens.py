"""The words of the `where` language: splits a filter's text into tokens, each with the column it begins at."""

from __future__ import annotations

import re
from enum import Enum
from typing import NoReturn, TypeAlias

from tidings.errors import FilterSyntaxError
from tidings.filters import lexer

RESERVED = frozenset(
    {"and", "or", "not", "in", "like", "starts", "ends", "with", "contains", "matches", "exists", "is", "missing"}
    | {"true", "false", "null"}
)
"""Words that cannot begin a path unless quoted, in any letter case."""

BARE = re.compile(r"[^\W\d][\w-]*")
"""A member name that needs no quotes."""


class WhereTokenKind(Enum):
    """What a token is. The text of a word is in lower case, that of a quoted text without its quotes."""

    WORD = "a word"
    NAME = "a name"
    QUOTED = "a text in quotes"
    ATTRIBUTE = "an attribute"
    NUMBER = "a number"
    SIGN = "a sign"
    END = "the end"


Token: TypeAlias = lexer.LexerToken[WhereTokenKind]

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


def _meant(kind: WhereTokenKind, written: str) -> tuple[WhereTokenKind, str]:
    match kind:
        case WhereTokenKind.QUOTED:
            quote = written[0]
            return kind, written[1:-1].replace(quote * 2, quote)
        case WhereTokenKind.NAME if written.lower() in RESERVED:
            return WhereTokenKind.WORD, written.lower()
        case WhereTokenKind.ATTRIBUTE:
            return kind, written[1:]
    return kind, written


def _no_token(rest: Token) -> NoReturn:
    found = re.match(r"[\w.-]+|&+|\|+|.", rest.text, re.DOTALL)
    word = found[0] if found else rest.text[0]
    what, expected = "this sign means nothing here", "a path, an operator, a value, and, or, not, ( or )"
    if word[0].isdigit() or word[0] == "-":
        what = "this is no number"
        expected = "a number such as 5, -1.5 or 2e3; quotes around a member name that begins with a digit"
    elif word[0] in _INSTEAD:
        expected = _INSTEAD[word[0]]
    raise FilterSyntaxError(what, at=f"column {rest.column}", found=word, expected=expected)


_INSTEAD = {"&": "and", "|": "or", "!": "not"}
"""What those who know other languages mean."""

tokens = lexer.Language(_TOKEN, WhereTokenKind, _meant, _no_token).tokens
