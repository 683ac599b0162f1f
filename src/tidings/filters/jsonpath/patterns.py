"""Regular expressions inside paths, written for RE2: linear in the text, whatever the pattern. What it cannot say is refused,
unless a filter is parsed under rules that allow backtracking.

In both dialects a dot stands for any character but a line end, and they differ in what ends a line. RE2 knows only one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from tidings.errors import FilterSyntaxError
from tidings.filters import backtracking_regex, text_patterns
from tidings.filters.jsonpath.compiled_path import PathRun

Fits: TypeAlias = Callable[[str], bool]

_MAX_PATTERN = 1_000
_COMPILING = 5_000
_CHARACTERS_A_UNIT = 32

_PARTS = re.compile(r"\\.|\[(?:\\.|[^\\\]])*\]|\.", re.DOTALL)
_STANDARD_DOT = r"[^\n\r]"
_JAVA_DOT = r"[^\n\r\x{85}\x{2028}\x{2029}]"
_JAVA_DOT_SLOWLY = r"[^\n\r\u0085\u2028\u2029]"


def standard(pattern: str, whole: bool) -> Fits:
    """An I-Regexp (RFC 9485), for the whole text or to be found in it. Raises FilterSyntaxError with RE2's reason."""
    return _fits(_dotted(pattern, _STANDARD_DOT), whole)


def java(pattern: str, flags: str) -> Fits:
    """What stands between slashes in a json-path predicate: it fits the whole text. Flags i, m, s, d, u."""
    for flag in flags:
        if flag not in "imsdu":
            raise FilterSyntaxError("this flag cannot be used", found=flag, expected="i, m, s, d or u")
    # `d` leaves one line end, which is RE2's own reading of a dot; `u` is how RE2 always ignores case.
    dotted = pattern if "d" in flags or "s" in flags else _dotted(pattern, _JAVA_DOT)
    own = "".join(sorted({flag for flag in flags if flag in "ims"}))
    flagged = f"(?{own}:{dotted})" if own else dotted
    if backtracking_regex.is_allowed() and not text_patterns.is_linear(flagged):
        return backtracking_regex.trying(flagged.replace(_JAVA_DOT, _JAVA_DOT_SLOWLY), whole=True)
    return _fits(flagged, whole=True)


def of_document(pattern: str, whole: bool, run: PathRun) -> Fits:
    """A pattern that is a value of the document: what is no pattern fits nothing. Compiled once in an evaluation."""
    known: Fits | None = run.memo.get((pattern, whole))
    if known is None:
        run.work.spend(_COMPILING + len(pattern))
        known = run.memo[pattern, whole] = _or_never(pattern, whole)
    return known


def tried(fits: Fits, text: str, run: PathRun) -> bool:
    """Whether the text fits, paid for by its length."""
    run.work.spend(1 + len(text) // _CHARACTERS_A_UNIT)
    return fits(text)


def _or_never(pattern: str, whole: bool) -> Fits:
    try:
        return standard(pattern, whole)
    except FilterSyntaxError:
        return lambda text: False


def _dotted(pattern: str, dot: str) -> str:
    return _PARTS.sub(lambda part: dot if part[0] == "." else part[0], pattern)


def _fits(pattern: str, whole: bool) -> Fits:
    if len(pattern) > _MAX_PATTERN:
        raise FilterSyntaxError(
            "the regular expression is too long", found=pattern, expected=f"at most {_MAX_PATTERN} characters"
        )
    text_patterns.compiled(pattern)  # alone first, so that `)` cannot close what is put around it
    return text_patterns.searching(rf"\A(?:{pattern})\z" if whole else pattern)
