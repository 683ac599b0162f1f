"""Text patterns: wildcards, and regular expressions that run in linear time (RE2), so that no filter can stall routing.

Where the operator allows it, what RE2 cannot say is left to `backtracking`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import re2

from tidings.errors import FilterSyntaxError
from tidings.filters import backtracking_regex

LONGEST_EXPRESSION = 10_000
"""RE2 takes quadratic time where groups nest deeply."""

_MEMORY = 1 << 20
_MEMORY_TOGETHER = 4 << 20
_LITERAL = re.compile(r"\^?([\w /:@#-]*)([*?{]?)")

ANY, ONE = object(), object()
"""The two wildcards in the parts of a `like` pattern: any characters, one character."""


def check(text: str) -> None:
    """Refuse what cannot be written as UTF-8: no event can hold it."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise FilterSyntaxError("the text holds half a surrogate pair", found=text, expected="Unicode text") from error


def check_expression(pattern: str) -> None:
    """Refuse what cannot be compiled, with the reason RE2 gives."""
    if not backtracking_regex.is_allowed() or is_linear(pattern):
        compiled(pattern)
    else:
        backtracking_regex.compiled(pattern)


def is_linear(pattern: str) -> bool:
    """Whether RE2 can say it."""
    try:
        compiled(pattern)
    except FilterSyntaxError:
        return False
    return True


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> Any:
    """The expression, ready to search with. Raises FilterSyntaxError with RE2's reason."""
    if len(pattern) > LONGEST_EXPRESSION:
        expected = f"at most {LONGEST_EXPRESSION} characters"
        raise FilterSyntaxError("the regular expression is too long", found=pattern, expected=expected)
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


def _options(memory: int = _MEMORY) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = memory
    return options


@lru_cache(maxsize=4096)
def like_parts(pattern: str) -> tuple[object, ...]:
    """The pattern as literal texts, ANY (`*`) and ONE (`?`). A backslash takes the next character literally."""
    if len(pattern) > LONGEST_EXPRESSION:
        raise FilterSyntaxError("the pattern is too long", found=pattern, expected=f"at most {LONGEST_EXPRESSION} characters")
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
    return _attempting(pattern, whole=False)


def fitting(pattern: str) -> Callable[[str], bool]:
    """Whether the expression fits a whole text."""
    return _attempting(pattern, whole=True)


def together(patterns: Sequence[str], whole: bool) -> Callable[[str], Sequence[int] | None] | None:
    """Which of many expressions are found, or fit the whole text: one pass over it for all of them, by their numbers.

    The answer is None when the pass ran out of memory: each must be asked then. None instead of a function: they are too many.
    """
    expressions = re2.Set(re2._Anchor.ANCHOR_BOTH if whole else re2._Anchor.UNANCHORED, _options(_MEMORY_TOGETHER))
    try:
        for pattern in (*patterns, "(?s).*"):  # the last one always fits: without it, the pass has failed
            expressions.Add(pattern)
        expressions.Compile()
    except re2.error:
        return None
    match, last = expressions.Match, len(patterns)

    def found(text: str) -> Sequence[int] | None:
        try:
            numbers = match(text.encode()) or ()
        except UnicodeEncodeError:
            return ()
        return [number for number in numbers if number != last] if last in numbers else None

    return found


def literal_head(pattern: str, whole: bool) -> str:
    """What a text must begin with if the expression is to fit it. Empty where that is not plain to see."""
    literal = _LITERAL.match(pattern)
    if literal is None or not (whole or pattern.startswith("^")) or "|" in pattern or "(?" in pattern:
        return ""
    return literal[1][:-1] if literal[2] else literal[1]


def _attempting(pattern: str, whole: bool) -> Callable[[str], bool]:
    head, fits = literal_head(pattern, whole), _attempt(compiled(pattern), whole)

    def found(text: str) -> bool:
        try:
            return text.startswith(head) and fits(text.encode())
        except UnicodeEncodeError:
            return False

    return found


def _attempt(expression: Any, whole: bool) -> Callable[[bytes], bool]:
    # The wrapper works out where a match begins and ends, in characters; what is under it only says whether, six times as fast.
    try:
        match, anchor = expression._regexp.Match, re2._Anchor.ANCHOR_BOTH if whole else re2._Anchor.UNANCHORED
    except AttributeError:
        attempt = expression.fullmatch if whole else expression.search
        return lambda text: attempt(text) is not None
    return lambda text: match(anchor, text, 0, len(text))[0][0] >= 0
