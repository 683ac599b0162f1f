"""Conditions on several values are found through the values in arrays, and mean what the plain reading says."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.filters.made_up import events, leaves, trees
from tests.filters.test_agreement import a_batch, plainly
from tidings.events.model import Event
from tidings.filters import Router, RouteSpec
from tidings.filters.algebra import Each, Filter, Inside, Quantifier, ValueKind
from tidings.filters.paths import ITEM, DataPath, ScalarsPath
from tidings.filters.routing import compiled

item_conditions = leaves(st.just(ITEM))
each = st.builds(
    Each,
    st.sampled_from(["$.c", "$.a", "$.c[*]", "$..a"]).map(ScalarsPath),
    st.sampled_from(list(Quantifier)),
    item_conditions.filter(lambda leaf: type(leaf).__name__ in ("Compare", "OneOf", "Text")),
)
places = st.sampled_from([DataPath(("c",)), DataPath(("a",)), DataPath(("b",))])
members = leaves(st.just(DataPath(("a",))))
inside = st.builds(Inside, places, st.just(ValueKind.VALUE), trees(item_conditions)) | st.builds(
    Inside, places, st.just(ValueKind.OBJECT), trees(members)
)
filters: st.SearchStrategy[Filter] = each | inside | trees(each | inside | leaves())


@pytest.mark.parametrize("alone", [0, 10**9], ids=["index", "generated"])
@settings(max_examples=150, deadline=None)
@given(chosen=st.lists(filters, min_size=1, max_size=8), published=st.lists(events(), min_size=1, max_size=8))
def test_conditions_on_arrays_are_routed_as_they_are_read(alone: int, chosen: list[Filter], published: list[Event]) -> None:
    specs = [RouteSpec(lane, frozenset([1]), filter, 0) for lane, filter in enumerate(chosen)]
    topics = [1] * len(published)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidings.filters.router.ALONE", alone)
        patch.setattr(compiled, "FEW", -1)
        patch.setattr(compiled, "plainly", None)
        found = Router(specs).route(a_batch(published, topics))
    assert found.aside == []
    assert list(zip(found.lanes.tolist(), found.events.tolist(), strict=True)) == plainly(specs, published, topics)
