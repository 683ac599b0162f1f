"""Triggers: which events pass and what is left of them, as filters and projections of the core (HOR-28 to HOR-31, HOR-D18).

The core's dialects read filters. This only decides which of them is meant, and what is stripped or warned of before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tidings import filters
from tidings.doors.horizon.documents.findings import DocumentPart, near_miss
from tidings.errors import FilterSyntaxError
from tidings.filters import RegexRules
from tidings.filters.dialects.horizon import selection as advanced_dialect
from tidings.filters.dialects.horizon.scopes import HorizonScope as Selection
from tidings.filters.dialects.horizon.scopes import selection_of
from tidings.filters.java_text import scalar_text
from tidings.filters.projection import ProjectionMode, Syntax, projection
from tidings.registry.model import FilterText, ProjectionText, Scope

TRIGGER = ("advancedSelectionFilter", "selectionFilter", "responseFilter", "responseFilterMode", "responseFilterSyntax")
IN_TRIGGER = dict.fromkeys(TRIGGER, "trigger")
"""Where these belong when they stand beside the trigger."""

_MODES = {"include": ProjectionMode.INCLUDE, "exclude": ProjectionMode.EXCLUDE}
_SYNTAXES = {"dotted": Syntax.DOTTED, "jsonpath": Syntax.JSONPATH}
_PLAIN = re.compile(r"\$\.([^.\[\]*?()@$]+(?:\.[^.\[\]*?()@$]+)*)")
_OLD = "works; advancedSelectionFilter can say more and is the form to use"
_PASSED_OVER = "is ignored beside advancedSelectionFilter"
_RICHER = 'begins with $ and is no plain path: write it dotted, or set responseFilterSyntax: "jsonpath"'
_ELEMENTS = re.compile(r"\$((?:\.[^.\[\]*?()@$'\"]+|\[[0-9]+\])+)")
"""A path of names and places in lists, which dotted paths have too."""


def consumer_trigger(place: DocumentPart, regex: RegexRules, syntax: Syntax) -> Scope:
    """What a subscriber wants: filter and projection. `syntax`: how its paths are written unless it says otherwise."""
    return _trigger(place, regex, syntax, simple="horizon-simple")


def scope_trigger(place: DocumentPart, regex: RegexRules, syntax: Syntax) -> Scope:
    """What a publisher offers. A simple filter is read as the advanced one that it stands for in a merge (HOR-69, HOR-103)."""
    for name in place.raw if isinstance(place.raw, Mapping) else ():
        if name not in TRIGGER and not near_miss(name, TRIGGER):
            # Passed over, it would show everything that the publisher meant to keep back.
            place.member(name).slip(f"is not known; a trigger has {', '.join(TRIGGER)}")
    return _trigger(place, regex, syntax, simple="horizon")


def _trigger(place: DocumentPart, regex: RegexRules, syntax: Syntax, *, simple: str) -> Scope:
    if not place.given or not place.is_object():
        return Scope()
    place.only(TRIGGER, TRIGGER)
    return Scope(filter=_filter(place, regex, simple), projection=_projection(place, syntax))


def _filter(place: DocumentPart, regex: RegexRules, simple: str) -> FilterText | None:
    advanced, plain = place.member("advancedSelectionFilter"), place.member("selectionFilter")
    entries = _entries(plain)
    if advanced.given:
        if plain.given:
            plain.warn(_PASSED_OVER)
        if not advanced.filtering(lambda: filters.parse("horizon", advanced.raw, regex)):
            return None
        for warning in advanced_dialect.warnings(advanced.raw):
            advanced.warn(warning)
        return FilterText(dialect="horizon", text=advanced.raw)
    if not entries:
        return None
    plain.warn(_OLD)
    text = entries if simple == "horizon-simple" else selection_of(Selection("", attributes=entries))
    return FilterText(dialect=simple, text=text) if plain.filtering(lambda: filters.parse(simple, text, regex)) else None


def _entries(place: DocumentPart) -> dict[str, str]:
    """The entries of a simple filter: paths without a leading `$.`, values as texts (HOR-175)."""
    if not place.given:
        return {}
    if not isinstance(place.raw, Mapping):
        place.fault("must be an object of dotted paths and texts")
        return {}
    found: dict[str, str] = {}
    for key, value in place.raw.items():
        entry = place.member(key)
        if value is None or isinstance(value, (dict, list)):
            entry.fault("must be a text, number or boolean")
            continue
        path = _stripped(entry, key, _richer_selection(key))
        if path is not None:
            found[path] = scalar_text(value) or ""
    return found


def _richer_selection(path: str) -> str:
    """What to write instead of a path that a simple filter cannot have."""
    elements = _ELEMENTS.fullmatch(path)
    dotted = f"write {elements[1].replace('[', '.').replace(']', '').strip('.')}, or " if elements else ""
    advanced = f'{{"eq": {{"field": "{path[:100]}", "value": …}}}}'
    return f"begins with $ and is no plain path: {dotted}use advancedSelectionFilter: {advanced}"


def _stripped(place: DocumentPart, path: str, richer: str = _RICHER) -> str | None:
    """The path as the evaluator reads it, which knows no `$` (HOR-D18)."""
    if not path.startswith("$"):
        return path
    plain = _PLAIN.fullmatch(path)
    if plain is None:
        place.fault(richer)
        return None
    place.warn(f"begins with $.: read as {plain[1]}")
    return plain[1]


def _projection(place: DocumentPart, usual: Syntax) -> ProjectionText | None:
    mode: ProjectionMode = place.member("responseFilterMode").word(_MODES, ProjectionMode.INCLUDE)
    syntax: Syntax = place.member("responseFilterSyntax").word(_SYNTAXES, usual)
    listed = place.member("responseFilter")
    items = [(item, text) for item in listed.items() if (text := item.text()) is not None]
    if syntax is Syntax.DOTTED:
        paths = tuple(path for item, text in items if (path := _stripped(item, text)) is not None)
    else:
        paths = tuple(text for _, text in items)
    if not paths:
        return None
    for number, path in enumerate(paths):
        place = DocumentPart(path, f"{listed.path}[{number}]", listed.findings)
        if not place.filtering(lambda path=path: _one(mode, path, syntax)):  # type: ignore[misc]
            return None
    listed.filtering(lambda: projection(mode, paths, syntax))
    return ProjectionText(mode=mode, paths=tuple(dict.fromkeys(paths)), syntax=syntax)


def _one(mode: ProjectionMode, path: str, syntax: Syntax) -> Any:
    try:
        return projection(mode, (path,), syntax)
    except FilterSyntaxError as error:
        raise FilterSyntaxError(error.what, found=error.found, expected=error.expected) from error
