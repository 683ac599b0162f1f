"""Which of it: one small total algebra, dialects that only parse into it, `matches`, `explain`, and the indexed `Router`.

Pure: no I/O, no clock. Imports `tidings.errors` and `tidings.events` only. A filter that exists never raises while matching.
"""

from __future__ import annotations

from tidings.errors import FilterSyntaxError
from tidings.filters.algebra import Filter
from tidings.filters.dialects import DIALECTS
from tidings.filters.dialects.printer import printed
from tidings.filters.explain import Explanation, explain
from tidings.filters.matches import matches
from tidings.filters.regex_rules import RE2_ONLY, RegexRules
from tidings.filters.router import Matches, Router, RouteSpec, RoutingBatch

__all__ = [
    "RE2_ONLY",
    "Explanation",
    "Filter",
    "Matches",
    "RegexRules",
    "RouteSpec",
    "Router",
    "RoutingBatch",
    "explain",
    "matches",
    "parse",
    "printed",
]


def parse(dialect: str, raw: object, regex: RegexRules = RE2_ONLY) -> Filter:
    """The filter that `raw` stands for in this dialect. Raises FilterSyntaxError with the place, and with what would be right.

    `regex` says whether expressions that RE2 cannot say are allowed.
    """
    known = DIALECTS.get(dialect) if isinstance(dialect, str) else None
    if known is None:
        raise FilterSyntaxError("this filter dialect is not known", at="dialect", found=dialect, expected=" or ".join(DIALECTS))
    return regex.parsed(known, raw)
