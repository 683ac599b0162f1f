"""Which regular expressions users may write: those of RE2, or also, with limits, those that need backtracking."""

from __future__ import annotations

from dataclasses import dataclass

from tidings.errors import FilterSyntaxError
from tidings.filters import texts
from tidings.filters.algebra import SlowText, Text, TextOp
from tidings.filters.paths import Path


@dataclass(frozen=True, slots=True)
class RegexRules:
    """`fallback`: what RE2 cannot say is allowed. Then each attempt ends after `match_timeout` seconds without a match, and a
    subscription is blocked when its expressions take more than `budget` seconds per `per_events` events."""

    fallback: bool = False
    match_timeout: float = 0.05
    budget: float = 0.1
    per_events: int = 1000

    def condition(self, path: Path, op: TextOp, pattern: str) -> Text | SlowText:
        """The condition for an expression (`op` is REGEX or WHOLE). Raises FilterSyntaxError for what is not allowed."""
        try:
            return Text(path, op, pattern)
        except FilterSyntaxError:
            if not self.fallback:
                raise
        texts.compiled_slowly(pattern)
        return SlowText(path, op, pattern, self.match_timeout)


RE2_ONLY = RegexRules()
