"""Which events a subscription wants: `source`, `domain`, `types`, `filters` (VNG-07, VNG-12 to VNG-17, VNG-80 to VNG-83)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tidings.config import VngSettings
from tidings.doors.vng.documents.domain import domain_papers, topic_of
from tidings.doors.vng.documents.members import DocumentReader
from tidings.doors.vng.names import NAMESPACE
from tidings.doors.vng.refusals import filter_param
from tidings.errors import FilterSyntaxError
from tidings.events import json_text
from tidings.registry.model import FilterText, NamespaceSource, Snapshot, Source, TopicsSource

DIALECT = "vng"
_OLD = frozenset(("attribute", "value"))


def criteria_from(reader: DocumentReader, settings: VngSettings) -> dict[str, Any]:
    """The criteria as they are kept: what is unset is left out."""
    found: dict[str, Any] = {
        "source": reader.text("source"),
        "domain": reader.text("domain"),
        "types": reader.texts("types"),
        "filters": _filters(reader, settings),
    }
    return {name: value for name, value in found.items() if value}


def _filters(reader: DocumentReader, settings: VngSettings) -> list[Any]:
    # Imported late: the router behind it needs numpy, which nobody who only publishes should wait for.
    from tidings import filters

    raw = reader.members.get("filters")
    if raw is None:
        return []
    if isinstance(raw, dict) and settings.filters_object_ok:
        raw = [raw]
    if not isinstance(raw, list):
        hint = "; write [ ] around it" if isinstance(raw, dict) else ""
        reader.fault("filters", "invalid-value", f"expected a list of filters, found {json_text.kind_of(raw)}{hint}")
        return []
    if settings.reject_old_filter_form:
        for place in old_forms(raw):
            reader.fault(place, "invalid-value", "this form was withdrawn: write the attribute's name and its value instead")
    try:
        filters.parse(DIALECT, raw)
    except FilterSyntaxError as error:
        reader.faults.append(filter_param(error))
    return raw


def old_forms(raw: object, at: str = "filters", depth: int = 0) -> Iterator[str]:
    """Places of filters in the withdrawn form, which by their shape are about attributes called `attribute` and `value`."""
    if depth > 40:
        return
    if isinstance(raw, list):
        for n, one in enumerate(raw[:1000]):
            yield from old_forms(one, f"{at}.{n}", depth + 1)
    elif isinstance(raw, dict):
        for word, inner in raw.items():
            if word in ("exact", "prefix", "suffix") and isinstance(inner, dict) and inner.keys() == _OLD:
                yield f"{at}.{word}"
            elif word in ("all", "any", "not"):
                yield from old_forms(inner, f"{at}.{word}", depth + 1)


def filter_of(criteria: Mapping[str, Any]) -> FilterText | None:
    """The filter of these criteria, as the dialect writes it; the domain is the topic."""
    text = {name: criteria[name] for name in ("source", "types", "filters") if name in criteria}
    if not text:
        return None
    return FilterText(dialect=DIALECT, text=text["filters"] if text.keys() == {"filters"} else text)


def source_of(criteria: Mapping[str, Any], snapshot: Snapshot, reader: DocumentReader) -> Source:
    """Where the events come from: the topic of one domain, or all domains in their one order of arrival."""
    domain = criteria.get("domain")
    if domain is None:
        return NamespaceSource(NAMESPACE)
    paper = domain_papers(snapshot).get(domain)
    if paper is None:
        reader.fault("domain", "does_not_exist", "there is no domain of this name")
        return NamespaceSource(NAMESPACE)
    return TopicsSource((topic_of(paper),))
