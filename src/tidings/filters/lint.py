"""Advice about what can be evaluated but may not mean what its author thinks. Nothing here refuses anything.

| where | advice |
|---|---|
| `horizon` | members and operators that are ignored (HOR-72) |
| `horizon-simple` | it works, and the advanced form can say more (HOR-168); `$` at the head of a path is a name |
| `cloudevents`, `cesql` | AND beside OR or XOR without parentheses (SQL-22) |
| any dialect | a filter that no event can match |
| projections | `$` at the head of a dotted path (HOR-97) |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tidings.filters import cesql
from tidings.filters.algebra import AllOf, Always, AnyOf, Cesql, Filter, Not
from tidings.filters.dialects.horizon import selection
from tidings.filters.projection import Projection, warnings_of

_DOLLAR = "looks for a member called $; leave out the leading $."
_OLD = "a simple filter works; advancedSelectionFilter can say more"


class Advice(NamedTuple):
    """A sentence, and the place in the document that it is about; empty for the whole of it."""

    at: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.at}: {self.sentence}" if self.at else self.sentence


def advice(dialect: str, raw: object, parsed: Filter) -> list[Advice]:
    """What the author of a filter should hear; `raw` is what they wrote, `parsed` what it means."""
    found = [*_written(dialect, raw), *(Advice("", sentence) for sentence in _expressions(parsed))]
    if _never(parsed):
        found.append(Advice("", "no event can match this"))
    return list(dict.fromkeys(found))


def projection_advice(made: Projection, at: str = "paths") -> list[Advice]:
    """What the author of a projection should hear; `at` is the place of its paths."""
    told = dict(warnings_of(made))
    return [Advice(f"{at}[{n}]", told[path]) for n, path in enumerate(made.paths) if path in told]


def _written(dialect: str, raw: object) -> Iterator[Advice]:
    match dialect:
        case "horizon":
            for sentence in selection.warnings(raw):
                place, ignored, reason = sentence.partition(" is ignored")
                yield Advice(place, f"{ignored}{reason}".strip())
        case "horizon-simple" if isinstance(raw, dict) and raw:
            yield Advice("", _OLD)
            yield from (Advice(str(key), _DOLLAR) for key in raw if str(key).startswith("$."))


def _expressions(filter: Filter) -> Sequence[str]:
    match filter:
        case AllOf(parts) | AnyOf(parts):
            return [sentence for part in parts for sentence in _expressions(part)]
        case Not(part):
            return _expressions(part)
        case Cesql(_, text):
            return list(cesql.parse(text).lint)
    return []


def _never(filter: Filter) -> bool:
    """Whether it is plain to see that it holds for nothing."""
    match filter:
        case Always(value):
            return not value
        case AllOf(parts):
            return any(map(_never, parts))
        case AnyOf(parts):
            return all(map(_never, parts))
        case Not(Always(value)):
            return value
    return False
