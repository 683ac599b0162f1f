"""Horizon's `trigger`: which events pass, and what is left of them (HOR-66, HOR-92 to HOR-98).

| written | means | refused |
|---|---|---|
| `advancedSelectionFilter` | dialect `horizon` | what that refuses |
| `selectionFilter` | dialect `horizon-simple`; ignored as a whole beside an advanced one | what that refuses |
| `responseFilter` | paths of a projection | no list of texts; a broken path |
| `responseFilterMode` | `INCLUDE` (default) or `EXCLUDE` | other words, other letter case |
| `responseFilterSyntax` | `dotted` (default) or `jsonpath` | other words |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tidings.errors import FilterSyntaxError
from tidings.filters.algebra import Filter
from tidings.filters.dialects.documents import placed
from tidings.filters.dialects.horizon import selection
from tidings.filters.dialects.horizon import simple as horizon_simple
from tidings.filters.projection import Projection, ProjectionMode, Syntax, projection

MODES: Mapping[object, ProjectionMode] = {
    None: ProjectionMode.INCLUDE,
    "INCLUDE": ProjectionMode.INCLUDE,
    "EXCLUDE": ProjectionMode.EXCLUDE,
}


@dataclass(frozen=True, slots=True)
class Trigger:
    """One side's say: the publisher's or the consumer's. None lets everything through as it is."""

    select: Filter | None = None
    projection: Projection | None = None


def parse(raw: Mapping[str, Any]) -> Trigger:
    """The trigger of this document. Raises FilterSyntaxError with the place."""
    if not isinstance(raw, Mapping):
        raise FilterSyntaxError("the trigger is no object", found=raw, expected="an object with filters")
    return Trigger(_select(raw), _projection(raw))


def warnings(raw: Mapping[str, Any]) -> Iterator[str]:
    """What a trigger that can be parsed holds beside what counts (HOR-72, HOR-95)."""
    if raw.get("advancedSelectionFilter") is not None:
        yield from selection.warnings(raw["advancedSelectionFilter"], "advancedSelectionFilter")
        if raw.get("selectionFilter"):
            yield "selectionFilter is ignored beside advancedSelectionFilter"


def _select(raw: Mapping[str, Any]) -> Filter | None:
    advanced, simple = raw.get("advancedSelectionFilter"), raw.get("selectionFilter")
    if advanced is not None:
        return placed("advancedSelectionFilter", lambda: selection.parse(advanced))
    return None if simple is None else placed("selectionFilter", lambda: horizon_simple.parse(simple))


def _projection(raw: Mapping[str, Any]) -> Projection | None:
    mode, paths = raw.get("responseFilterMode"), raw.get("responseFilter")
    if not isinstance(mode, str | None) or mode not in MODES:
        raise FilterSyntaxError("this mode is not known", at="responseFilterMode", found=mode, expected="INCLUDE or EXCLUDE")
    if paths is None:
        return None
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise FilterSyntaxError("the paths are no texts", at="responseFilter", found=paths, expected="a list of paths")
    syntax = raw.get("responseFilterSyntax", Syntax.DOTTED)
    return placed("responseFilter", lambda: projection(MODES[mode], paths, syntax))
