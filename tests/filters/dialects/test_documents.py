"""Whatever is written, in any dialect that is JSON: a filter comes out, or FilterSyntaxError; nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.filters.documents import DOCUMENTS, nonsense
from tests.filters.made_up import events
from tidings.errors import FilterSyntaxError
from tidings.events.model import Event
from tidings.filters import explain, matches, parse

DEEP: list[Any] = []
for _ in range(5000):
    DEEP = [DEEP]


@settings(max_examples=300, deadline=None)
@given(dialect=st.sampled_from(sorted(DOCUMENTS)), raw=nonsense)
def test_nonsense_is_refused_or_is_a_filter(dialect: str, raw: Any) -> None:
    try:
        filter = parse(dialect, raw)
    except FilterSyntaxError as error:
        assert str(error)
    else:
        assert matches(filter, Event({"type": "a"}, b"{}")) in (True, False)


@settings(max_examples=200, deadline=None)
@given(data=st.data(), dialect=st.sampled_from(sorted(DOCUMENTS)), event=events())
def test_a_document_is_decided_and_explained_for_any_event(data: st.DataObject, dialect: str, event: Event) -> None:
    filter = parse(dialect, data.draw(DOCUMENTS[dialect]))
    told = explain(filter, event)
    assert told.holds is matches(filter, event)
    assert "matches" in told.as_json()


@pytest.mark.parametrize("dialect", sorted(DOCUMENTS))
@pytest.mark.parametrize(
    "raw", [DEEP, {"eq": {"field": "a", "value": DEEP}}, {"in": {"field": "a", "value": DEEP}}, {"and": DEEP}, {"not": DEEP}]
)
def test_what_is_nested_too_deeply_is_refused(dialect: str, raw: Any) -> None:
    with pytest.raises(FilterSyntaxError):
        parse(dialect, raw)
