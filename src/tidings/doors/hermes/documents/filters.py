"""Filters of a subscription (HER-113 to HER-118): what Hermes' documents leave open, and which kinds a topic allows. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tidings.doors.hermes.documents.fields import Fields
from tidings.doors.hermes.names import AVRO
from tidings.doors.hermes.refusals import invalid
from tidings.errors import FilterSyntaxError

_MEMBERS = ("type", "path", "header", "matcher", "matchingStrategy")
_KINDS = {"jsonpath": "JSON", "avropath": AVRO}


class ReadFilters(NamedTuple):
    """Filters as they are kept, and what is to be told about them."""

    filters: list[dict[str, Any]]
    warnings: Sequence[str]


def read_filters(fields: Fields) -> ReadFilters:
    """The filters of a document. A strategy that nobody knows counts as `all`, with a warning (HER-D08)."""
    filters, warnings = [], []
    for index, one in enumerate(fields.objects("filters")):
        kept = {name: value for name in _MEMBERS if (value := one.raw.get(name)) is not None}
        strategy = kept.get("matchingStrategy")
        if kept.get("type") == "header":
            kept.pop("matchingStrategy", None)
        elif strategy is not None and str(strategy).lower() not in ("all", "any"):
            kept["matchingStrategy"] = "all"
            warnings.append(f"filters[{index}].matchingStrategy is not known, taken as all; expected all or any")
        filters.append(kept)
    return ReadFilters(filters, warnings)


def check_filters(filters: Sequence[dict[str, Any]], content: str, parse: Callable[[str, Any], object]) -> None:
    """Raise VALIDATION_ERROR unless the filters can be evaluated on a topic of this content type."""
    for index, one in enumerate(filters):
        kind = _KINDS.get(one.get("type", ""))
        if kind is not None and kind != content:
            told = f"Message filter type {one['type']} doesn't match topic content type {content}"
            raise invalid([(f"filters[{index}].type", told)])
    if filters:
        try:
            parse("hermes", filters)
        except FilterSyntaxError as error:
            raise invalid([(error.at or "filters", _reason(error))]) from error


def _reason(error: FilterSyntaxError) -> str:
    return str(FilterSyntaxError(error.what, found=error.found, expected=error.expected))
