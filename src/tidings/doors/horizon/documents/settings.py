"""What of the hub's settings documents rest on."""

from __future__ import annotations

from dataclasses import dataclass

from tidings.filters import RE2_ONLY, RegexRules
from tidings.filters.projection import Syntax


@dataclass(frozen=True, slots=True)
class DocumentSettings:
    """`own_urls`: host and port where the hub itself answers. `jsonpath_types`: event types whose paths are JSONPaths."""

    regex: RegexRules = RE2_ONLY
    own_urls: tuple[str, ...] = ()
    internet_zones: tuple[str, ...] = ()
    data_bytes: int = 1 << 20
    jsonpath_types: tuple[str, ...] = ()

    def syntax(self, event_type: str | None) -> Syntax:
        """How the paths of response filters are written where a trigger does not say it (HOR-97)."""
        return Syntax.JSONPATH if event_type in self.jsonpath_types else Syntax.DOTTED
