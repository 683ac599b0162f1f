"""Which regular expressions users may write: those of RE2, or also, with limits, those that need backtracking."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tidings.filters import backtracking_regex, text_patterns
from tidings.filters.algebra import AllOf, Always, AnyOf, Each, Filter, Inside, Leaf, Not, SlowText, Text, TextOp
from tidings.filters.paths import QUERIES, needs_backtracking


@dataclass(frozen=True, slots=True)
class RegexRules:
    """`fallback`: what RE2 cannot say is allowed. Then each attempt ends after `match_timeout` seconds without a match, and a
    subscription is blocked when its expressions take more than `budget` seconds per `per_events` events."""

    fallback: bool = False
    match_timeout: float = 0.05
    budget: float = 0.1
    per_events: int = 1000

    def parsed(self, parse: Callable[[object], Filter], raw: object) -> Filter:
        """What `parse` makes of `raw` under these rules. Raises FilterSyntaxError for expressions that they do not allow."""
        if not self.fallback:
            return parse(raw)
        with backtracking_regex.allowing():
            return _limited(parse(raw), self.match_timeout)


RE2_ONLY = RegexRules()


def _limited(filter: Filter, limit: float) -> Filter:
    """The filter, with a limit of time on each expression that needs backtracking."""
    match filter:
        case AllOf(parts):
            return AllOf(tuple(_limited(part, limit) for part in parts))
        case AnyOf(parts):
            return AnyOf(tuple(_limited(part, limit) for part in parts))
        case Not(part):
            return Not(_limited(part, limit))
        case Always():
            return filter
    return _limited_path(_limited_leaf(filter, limit), limit)


def _limited_leaf(leaf: Leaf, limit: float) -> Leaf:
    match leaf:
        case Each(_, _, Text() as condition):
            return replace(leaf, condition=_limited_leaf(condition, limit))  # type: ignore[arg-type]
        case Inside(_, _, part):
            return replace(leaf, part=_limited(part, limit))
        case Text(path, TextOp.REGEX | TextOp.WHOLE as op, pattern) if not text_patterns.is_linear(pattern):
            return SlowText(path, op, pattern, limit)
    return leaf


def _limited_path(leaf: Leaf, limit: float) -> Leaf:
    """Expressions inside of JSONPaths are limited too: all attempts of one search together."""
    path = leaf.path
    if isinstance(path, QUERIES) and needs_backtracking(path.query):
        return replace(leaf, path=replace(path, limit=limit))  # type: ignore[arg-type]
    return leaf
