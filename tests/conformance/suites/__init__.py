"""What a suite is: a module here with `cases(file)`, which reads one file of its format and gives its cases.

`tests/conformance/run.py` runs them. A suite raises `NotThisFormat` for a file that it cannot read as its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

Difference: TypeAlias = tuple[object, object]
"""What was expected, and what came instead."""


@dataclass(frozen=True, slots=True)
class Case:
    """One case of a file. `check` gives None when it passes, else what was expected and what came."""

    id: str
    check: Callable[[], Difference | None]


class NotThisFormat(Exception):
    """The file is not in the suite's format; the message says what is missing."""
