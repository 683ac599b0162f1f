"""Texts in quotes and other literals of RFC 9535."""

from __future__ import annotations

import re

from tidings.filters.jsonpath.cursor import Cursor

_PLAIN = {"'": re.compile(r"[^'\\\x00-\x1f]+"), '"': re.compile(r'[^"\\\x00-\x1f]+')}
_UNICODE = re.compile(r"u(?:(?i:d[89ab])[0-9A-Fa-f]{2}\\u(?i:d[c-f])[0-9A-Fa-f]{2}|(?!(?i:d[89a-f]))[0-9A-Fa-f]{4})")
_SIGNS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "/": "/", "\\": "\\"}


def quoted(cursor: Cursor) -> str:
    """The text in quotes that begins at the cursor."""
    quote = cursor.text[cursor.at]
    cursor.want(quote)
    parts: list[str] = []
    while not cursor.takes(quote):
        plain = cursor.match(_PLAIN[quote])
        if plain is not None:
            parts.append(plain)
        elif cursor.takes("\\"):
            parts.append(_escaped(cursor, quote))
        else:
            cursor.fail(f"a character, or {quote} to end the text")
    return "".join(parts)


def _escaped(cursor: Cursor, quote: str) -> str:
    if cursor.takes(quote):
        return quote
    unicode = cursor.match(_UNICODE)
    if unicode is not None:
        units = unicode.removeprefix("u").split("\\u")
        return b"".join(bytes.fromhex(unit) for unit in units).decode("utf-16-be")
    sign = _SIGNS.get(cursor.text[cursor.at : cursor.at + 1])
    if sign is None:
        cursor.fail(rf"one of b f n r t / \ {quote} or u with four hex digits after a backslash")
    cursor.at += 1
    return sign
