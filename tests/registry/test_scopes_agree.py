"""What a Horizon document shows of merged scopes and what routing makes of them are one truth (HOR-102 to HOR-105)."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.builders import an_event
from tidings.filters import matches, parse
from tidings.filters.algebra import any_of
from tidings.filters.dialects.horizon.scopes import HorizonScope as Written
from tidings.filters.dialects.horizon.scopes import merged, selection_of
from tidings.registry.model import FilterText, ProjectionText, Scope
from tidings.registry.rules.scopes import offered

NAMES = ("default", "gold", "silver")

written = st.builds(
    Written,
    name=st.just(""),
    attributes=st.none() | st.dictionaries(st.sampled_from("ab"), st.sampled_from(["x", "y"]), max_size=2),
    expression=st.none() | st.sampled_from([{"eq": {"field": "$.a", "value": "x"}}, {"ge": {"field": "$.n", "value": 2}}]),
    paths=st.lists(st.sampled_from(["a", "b", "n"]), max_size=3).map(tuple),
    mode=st.just("INCLUDE"),
)
events = st.fixed_dictionaries({}, optional={"a": st.sampled_from(["x", "y"]), "b": st.just("x"), "n": st.integers(1, 3)})


def stored(one: Written) -> Scope:
    selection = selection_of(one)
    return Scope(
        filter=None if selection is None else FilterText(dialect="horizon", text=selection),
        projection=ProjectionText(mode="include", paths=one.paths) if one.paths else None,
    )


@given(st.dictionaries(st.sampled_from(NAMES), written), st.data(), events)
def test_what_is_shown_of_merged_scopes_is_what_is_routed(
    scopes: dict[str, Written], data: st.DataObject, payload: dict[str, Any]
) -> None:
    named = data.draw(st.lists(st.sampled_from(list(scopes)), unique=True)) if scopes else []
    shown = merged([Written(name, one.attributes, one.expression, one.paths, one.mode) for name, one in scopes.items()], named)
    offer = offered({name: stored(one) for name, one in scopes.items()}, named)

    assert offer is not None
    assert [text.text for text in offer.select] == list(shown.selections)
    assert (offer.scope.paths if offer.scope else ()) == shown.paths
    routed = any_of(*(parse(text.dialect, text.text) for text in offer.select)) if offer.select else None
    assert routed == shown.select
    if routed is not None and shown.select is not None:
        event = an_event(json.dumps(payload).encode())
        assert matches(routed, event) == matches(shown.select, event)
