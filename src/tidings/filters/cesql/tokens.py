"""The tokens of a CESQL text, each with the column it begins at (SQL-01, SQL-02, SQL-14)."""

from __future__ import annotations

import re
from enum import Enum
from typing import NoReturn, TypeAlias

from tidings.errors import FilterSyntaxError
from tidings.filters import lexer

KEYWORDS = frozenset({"AND", "OR", "XOR", "NOT", "LIKE", "EXISTS", "IN", "TRUE", "FALSE"})


class CesqlTokenKind(Enum):
    """What a token is. The text of a keyword is in upper case, that of a string without its quotes."""

    KEYWORD = "keyword"
    DIGITS = "digits"
    WORD = "word"
    STRING = "string"
    SIGN = "sign"
    END = "end"


Token: TypeAlias = lexer.LexerToken[CesqlTokenKind]

_TOKEN = re.compile(
    r"""[ \t\r\n]*(?:
      (?P<WORD> [A-Za-z0-9_]+ )
    | (?P<STRING> '(?:[^'\\]|\\.|'')*+' | "(?:[^"\\]|\\.|"")*+" )
    | (?P<SIGN> <=|>=|<>|!=|[-=<>+*/%(),] )
    | (?P<END> \Z )
    )""",
    re.VERBOSE | re.DOTALL,
)


def _meant(kind: CesqlTokenKind, written: str) -> tuple[CesqlTokenKind, str]:
    if kind is CesqlTokenKind.STRING:
        return kind, _unescaped(written[1:-1], written[0])
    if kind is CesqlTokenKind.WORD and written.upper() in KEYWORDS:
        return CesqlTokenKind.KEYWORD, written.upper()
    if kind is CesqlTokenKind.WORD and written.isdecimal():
        return CesqlTokenKind.DIGITS, written
    return kind, written


def _unescaped(inner: str, quote: str) -> str:
    """Only a backslash before the own delimiter goes away; pairs are read from left to right."""
    return re.sub(r"\\(.)", lambda pair: quote if pair[1] == quote else pair[0], inner, flags=re.DOTALL)


def _no_token(rest: Token) -> NoReturn:
    expected = "an operand or an operator"
    raise FilterSyntaxError("this sign means nothing here", at=f"column {rest.column}", found=rest.text[0], expected=expected)


tokens = lexer.Language(_TOKEN, CesqlTokenKind, _meant, _no_token, " \t\r\n").tokens
