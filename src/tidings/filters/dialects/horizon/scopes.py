"""Horizon's scopes: the triggers of an exposure's scopes that a subscription named, merged into one (HOR-102 to HOR-105).

| scopes named | what applies |
|---|---|
| none | the scope `default`; without one, no provider filter |
| one | its selection as it is |
| several | `or` of their selections in the order of the exposure; one without selection adds nothing |

Response paths are united in order without doubles; the last mode that is set wins. Unknown names are left out here: who takes
documents refuses them (HOR-106).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidings.filters.algebra import Filter, any_of
from tidings.filters.dialects.horizon import selection as horizon

DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class HorizonScope:
    """A named trigger of an exposure. `attributes` is a simple filter, which gives way to an advanced `expression`."""

    name: str
    attributes: Mapping[str, str] | None = None
    expression: Mapping[str, Any] | None = None
    paths: tuple[str, ...] = ()
    mode: str | None = None


@dataclass(frozen=True, slots=True)
class Merged:
    """What several scopes come to: one of `selections` (as written; none: everything), these paths and the mode."""

    selections: tuple[Mapping[str, Any], ...] = ()
    paths: tuple[str, ...] = ()
    mode: str | None = None

    @property
    def select(self) -> Filter | None:
        """The selections as one filter. Each is parsed by itself, so that the limit holds for each as written (HOR-176)."""
        return any_of(*map(horizon.parse, self.selections)) if self.selections else None

    @property
    def trigger(self) -> dict[str, Any] | None:
        """The merged trigger as it is shown on a subscription; None when nothing is filtered."""
        selection = self.selections[0] if len(self.selections) == 1 else {"or": list(self.selections)}
        shown = {
            "advancedSelectionFilter": selection if self.selections else None,
            "responseFilter": list(self.paths) or None,
            "responseFilterMode": self.mode,
        }
        return {name: part for name, part in shown.items() if part is not None} or None


def merged(scopes: Sequence[HorizonScope], named: Iterable[str]) -> Merged:
    """What these scopes come to for a subscription that named some."""
    wanted = set(named) or {DEFAULT}
    applied = [scope for scope in scopes if scope.name in wanted]
    selections = tuple(selection for scope in applied if (selection := selection_of(scope)) is not None)
    paths = tuple(dict.fromkeys(path for scope in applied for path in scope.paths))
    modes = [scope.mode.upper() for scope in applied if scope.mode]
    return Merged(selections, paths, modes[-1] if modes else None)


def selection_of(scope: HorizonScope) -> Mapping[str, Any] | None:
    """The scope's selection in the advanced form. Values of a simple filter stay texts, so they match no numbers."""
    if scope.expression:
        return scope.expression
    entries = [{"eq": {"field": name, "value": value}} for name, value in sorted((scope.attributes or {}).items())]
    if len(entries) < 2:
        return entries[0] if entries else None
    return {"and": entries}
