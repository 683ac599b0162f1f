"""What a suite is: a module here with `cases(file)`, which reads one file of its format and gives its cases.

`tests/conformance/run.py` runs them. A suite raises `NotThisFormat` for a file that it cannot read as its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from tidings.filters import RegexRules

Difference: TypeAlias = tuple[object, object]
"""What was expected, and what came instead."""

JAVA_REGEX = RegexRules(fallback=True, match_timeout=1.0)
"""Vectors of Java programs are tried as a hub with `regex.fallback` would: they may use look-around and back-references."""


@dataclass(frozen=True, slots=True)
class Case:
    """One case of a file. `check` gives None when it passes, else what was expected and what came."""

    id: str
    check: Callable[[], Difference | None]


def case_of(entry: object, place: str, check: Callable[[dict[str, Any]], Difference | None]) -> Case:
    """The case that an entry of a file holds, called by its id or name, else by its place; one that is no object fails."""
    if not isinstance(entry, dict):
        return Case(place, lambda: ("an object", entry))
    named = [one for member in ("id", "name") if isinstance(one := entry.get(member), str) and one]
    return Case(named[0] if named else place, lambda: check(entry))


class NotThisFormat(Exception):
    """The file is not in the suite's format; the message says what is missing."""
