"""Query parameters that nobody reads are refused: a limit with a slip of the pen in its name would silently not be one."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable

from tidings.errors import Malformed

ALIKE, NEARLY_THE_SAME = 0.6, 0.8


def meant_by(name: str, known: Iterable[str], alike: float = NEARLY_THE_SAME) -> str | None:
    """Which of these parameters was probably meant by one that is none of them."""
    by_letters = {one.lower(): one for one in known}
    near = difflib.get_close_matches(name.lower()[:100], by_letters, n=1, cutoff=alike)
    return by_letters[near[0]] if near else None


def refuse_unknown(given: Iterable[str], known: Collection[str]) -> None:
    """Raise Malformed for a parameter that is not one of these, with the one that was probably meant."""
    for name in given:
        if name not in known:
            expected = meant_by(name, known, ALIKE) or " or ".join(sorted(known)) or "none"
            raise Malformed("there is no such query parameter", at="query", found=name[:100], expected=expected)
