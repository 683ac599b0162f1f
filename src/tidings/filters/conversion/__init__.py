"""Says a filter in another dialect: parsed, brought into a plain form, and written anew. It never guesses.

What cannot be said is refused with the reason. Where two dialects look at payloads differently, the answer lists the differences:
on every event to which none of them applies, both filters decide alike. Pure, as the rest of `tidings.filters`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tidings.errors import FilterSyntaxError
from tidings.filters.algebra import Filter
from tidings.filters.conversion import attributes, cesql, eventbridge, hermes, horizon, where
from tidings.filters.conversion.differences import Difference, Differences
from tidings.filters.conversion.logical import LOGICAL, logical
from tidings.filters.conversion.plain_form import plain_form
from tidings.filters.dialects import DIALECTS
from tidings.filters.regex_rules import RE2_ONLY, RegexRules

TARGETS: Mapping[str, Callable[[Filter, Differences], Any]] = {
    "vng": attributes.vng,
    "cloudevents": attributes.cloudevents,
    "cesql": cesql.written,
    "where": where.written,
    "horizon": horizon.written,
    "hermes": hermes.written,
    "eventbridge": eventbridge.written,
}
SOURCES = (*DIALECTS, LOGICAL)


@dataclass(frozen=True, slots=True)
class Converted:
    """A filter as it is written in the other dialect, and where the two decide differently."""

    filter: Any
    differences: tuple[Difference, ...]


def convert(source: str, raw: object, target: str, regex: RegexRules = RE2_ONLY) -> Converted:
    """The filter `raw` of the dialect `source`, written in `target`. Raises FilterSyntaxError with the reason."""
    if target not in TARGETS:
        raise FilterSyntaxError("no filter is written in this dialect", at="to", found=target, expected=" or ".join(TARGETS))
    if source not in SOURCES:
        raise FilterSyntaxError("this filter dialect is not known", at="from", found=source, expected=" or ".join(SOURCES))
    parsed = regex.parsed(logical if source == LOGICAL else DIALECTS[source], raw)
    if source == target:
        return Converted(raw, ())
    differences = Differences()
    written = TARGETS[target](plain_form(parsed, differences), differences)
    regex.parsed(DIALECTS[target], written)  # the limits of the other dialect hold too
    return Converted(written, differences.listed())
