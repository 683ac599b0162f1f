"""`matches`, `explain` and `Router` must always agree: for any filters and events, however odd."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.filters.documents import all_filters as filters
from tests.filters.made_up import events
from tidings.events.model import Event
from tidings.events.stored import event_from, head_of
from tidings.filters import Router, RouteSpec, RoutingBatch, explain, matches, router
from tidings.filters.algebra import Filter
from tidings.filters.routing import compiled, rows


@st.composite
def routes(draw: st.DrawFn) -> RouteSpec:
    since = draw(st.integers(0, 8))
    until = draw(st.none() | st.integers(since, 12))
    topics = draw(st.sampled_from([frozenset({1}), frozenset({1}), frozenset({2}), frozenset({1, 2}), frozenset({3})]))
    return RouteSpec(draw(st.integers(1, 6)), topics, draw(st.none() | filters), since, until)


def a_batch(published: Sequence[Event], topics: Sequence[int]) -> RoutingBatch:
    positions = range(1, len(published) + 1)
    return RoutingBatch(positions, topics, [head_of(event) for event in published], [event.data for event in published])


def plainly(specs: Sequence[RouteSpec], published: Sequence[Event], topics: Sequence[int]) -> list[tuple[int, int]]:
    """The slow, obviously right answer: (lane, event), in order."""
    return sorted(
        {
            (spec.lane, n)
            for spec in specs
            for n, (event, topic) in enumerate(zip(published, topics, strict=True))
            if topic in spec.topics and spec.since < n + 1 and (spec.until is None or n + 1 <= spec.until)
            if spec.filter is None or matches(spec.filter, event)
        }
    )


def routed(specs: Sequence[RouteSpec], batch: RoutingBatch) -> list[tuple[int, int]]:
    found = Router(specs).route(batch)
    assert found.aside == []
    return list(zip(found.lanes.tolist(), found.events.tolist(), strict=True))


@pytest.fixture(params=["one by one", "generated", "index", "index with sorted keys"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each way of matching in turn, whatever the size of the batch, and no other in its place."""
    monkeypatch.setattr(compiled, "FEW", 10**9 if request.param == "one by one" else -1)
    monkeypatch.setattr(router, "ALONE", 0 if request.param.startswith("index") else 10**9)
    monkeypatch.setattr(compiled, "plainly", None)
    if request.param == "index with sorted keys":
        monkeypatch.setattr(rows, "_DENSE", 0)


@pytest.mark.usefixtures("way")
@settings(max_examples=120, deadline=None)
@given(data=st.data(), specs=st.lists(routes(), min_size=1, max_size=8), published=st.lists(events(), max_size=12))
def test_the_router_agrees_with_the_plain_reading(data: st.DataObject, specs: list[RouteSpec], published: list[Event]) -> None:
    topics = data.draw(st.lists(st.sampled_from([1, 1, 2, 4]), min_size=len(published), max_size=len(published)))
    assert routed(specs, a_batch(published, topics)) == plainly(specs, published, topics)


@settings(max_examples=150, deadline=None)
@given(filter=filters, event=events())
def test_an_explanation_agrees_with_the_plain_reading(filter: Filter, event: Event) -> None:
    told = explain(filter, event)
    assert told.holds is matches(filter, event)
    assert told.as_json()["matches"] is told.holds
    assert told.causes
    assert str(told).startswith("match" if told.holds else "no match")


@settings(max_examples=100, deadline=None)
@given(filter=filters, event=events())
def test_a_stored_event_matches_as_the_published_one(filter: Filter, event: Event) -> None:
    assert matches(filter, event_from(head_of(event), event.data)) is matches(filter, event)
