"""Literals in json-path: texts in either quotes, numbers, true, false, null, and lists and objects of them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tidings.filters import payload, text_patterns
from tidings.filters.jsonpath.cursor import Cursor

_BLANK = re.compile(r"\s*")
_NUMBER = re.compile(r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_MAX_DIGITS = 1_000
_WORD = re.compile(r"[A-Za-z]+")
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
_PLAIN = {"'": re.compile(r"[^'\\]+"), '"': re.compile(r'[^"\\]+')}
_UNICODE = re.compile(r"u[0-9A-Fa-f]{4}")
_SIGNS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def blank(cursor: Cursor) -> None:
    cursor.match(_BLANK)


def literal(cursor: Cursor) -> object:
    """The literal at the cursor."""
    at = cursor.at
    if cursor.sees("'", '"'):
        return quoted(cursor)
    if cursor.takes("["):
        return _list(cursor)
    if cursor.takes("{"):
        return _object(cursor)
    number = cursor.match(_NUMBER)
    if number is not None:
        return _number(number)
    word = cursor.match(_WORD)
    if word not in _WORDS:
        cursor.fail("$, @, a text in quotes, a number, true, false, null or a list", at=at)
    return _WORDS[word]


def _number(text: str) -> object:
    # Whole numbers stay what they are: the text "5" equals 5, not 5.0.
    return int(text) if len(text) <= _MAX_DIGITS and text.lstrip("-").isdecimal() else payload.exact(text)


def quoted(cursor: Cursor) -> str:
    """The text in quotes. A backslash takes the next character literally, but for b f n r t and u with four hex digits."""
    at, quote = cursor.at, cursor.text[cursor.at]
    cursor.want(quote)
    parts: list[str] = []
    while not cursor.takes(quote):
        plain = cursor.match(_PLAIN[quote])
        if plain is None and not cursor.takes("\\"):
            cursor.fail(f"{quote} to end the text")
        parts.append(plain if plain is not None else _escaped(cursor))
    # Two escapes may be the halves of one character.
    whole = "".join(parts).encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    with cursor.placing(at):
        text_patterns.check(whole)
    return whole


def _escaped(cursor: Cursor) -> str:
    unicode = cursor.match(_UNICODE)
    if unicode is not None:
        return chr(int(unicode[1:], 16))
    if cursor.ended:
        cursor.fail("a character after the backslash")
    sign = cursor.text[cursor.at]
    cursor.at += 1
    return _SIGNS.get(sign, sign)


def items(cursor: Cursor, end: str) -> Iterator[None]:
    """Comes by once for each item up to the end sign, and steps over the commas and blanks between them."""
    blank(cursor)
    first = True
    while not cursor.takes(end):
        if not first:
            cursor.want(",", f"',' or '{end}'")
            blank(cursor)
        yield
        blank(cursor)
        first = False


def _list(cursor: Cursor) -> list[object]:
    with cursor.deeper():
        return [literal(cursor) for _ in items(cursor, "]")]


def _object(cursor: Cursor) -> dict[str, object]:
    with cursor.deeper():
        return dict([_member(cursor) for _ in items(cursor, "}")])


def _member(cursor: Cursor) -> tuple[str, object]:
    if not cursor.sees("'", '"'):
        cursor.fail("a name in quotes")
    name = quoted(cursor)
    blank(cursor)
    cursor.want(":")
    blank(cursor)
    return name, literal(cursor)
