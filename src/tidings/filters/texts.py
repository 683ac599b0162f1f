"""Text patterns: wildcards, and regular expressions that run in linear time (RE2), so that no filter can stall routing."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import re2

from tidings.errors import FilterSyntaxError

_MEMORY = 1 << 20

ANY, ONE = object(), object()
"""The two wildcards in the parts of a `like` pattern: any characters, one character."""


def check(text: str) -> None:
    """Refuse what cannot be written as UTF-8: no event can hold it."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise FilterSyntaxError("the text holds half a surrogate pair", found=text, expected="Unicode text") from error


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> Any:
    """The expression, ready to search with. Raises FilterSyntaxError with RE2's reason."""
    try:
        return re2.compile(pattern, _options())
    except (re2.error, UnicodeEncodeError) as error:
        reason = error.args[0] if error.args else error
        told = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise FilterSyntaxError(
            f"the regular expression is refused: {told}",
            found=pattern,
            expected="RE2 syntax (no look-around, back-references or possessive quantifiers)",
        ) from error


def _options() -> Any:
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = _MEMORY
    return options


@lru_cache(maxsize=4096)
def like_parts(pattern: str) -> tuple[object, ...]:
    """The pattern as literal texts, ANY (`*`) and ONE (`?`). A backslash takes the next character literally."""
    parts: list[object] = []
    plain, at = "", 0
    while at < len(pattern):
        sign = pattern[at]
        if sign == "\\":
            at += 1
            if at == len(pattern):
                raise FilterSyntaxError("the pattern ends in a backslash", found=pattern, expected=r"\\ for a backslash itself")
            plain += pattern[at]
        elif sign in "*?":
            parts += [plain, ANY if sign == "*" else ONE] if plain else [ANY if sign == "*" else ONE]
            plain = ""
        else:
            plain += sign
        at += 1
    return (*parts, plain) if plain else tuple(parts)


def like_test(pattern: str) -> Callable[[str], bool]:
    """Whether a whole text fits the wildcard pattern."""
    parts = like_parts(pattern)
    match parts:
        case ():
            return lambda text: not text
        case (str(whole),):
            return lambda text: text == whole
        case (str(head), part) if part is ANY:
            return lambda text: text.startswith(head)
        case (part, str(tail)) if part is ANY:
            return lambda text: text.endswith(tail)
    signs = {ANY: ".*", ONE: "."}
    fits = "".join(re2.escape(part) if isinstance(part, str) else signs[part] for part in parts)
    return searching(rf"(?s)\A(?:{fits})\z")


def searching(pattern: str) -> Callable[[str], bool]:
    """Whether the expression is found somewhere in a text."""
    search = compiled(pattern).search

    def found(text: str) -> bool:
        try:
            return search(text) is not None
        except UnicodeEncodeError:
            return False

    return found
