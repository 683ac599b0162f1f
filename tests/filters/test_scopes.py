"""Horizon's scopes merged (HOR-102 to HOR-104, HOR-176), beside the published vectors."""

from __future__ import annotations

from tests.builders import an_event
from tidings.filters import matches
from tidings.filters.dialects.horizon.scopes import HorizonScope, Merged, merged

RED = HorizonScope("red", attributes={"color": "red", "Size": "1"})
OLD = HorizonScope("old", expression={"gt": {"field": "age", "value": 18}})
DEFAULT = HorizonScope("default", attributes={"color": "blue"})


def test_without_a_name_the_default_scope_applies() -> None:
    assert merged([RED, DEFAULT], []).trigger == {"advancedSelectionFilter": {"eq": {"field": "color", "value": "blue"}}}
    assert merged([RED, DEFAULT], ["red"]) == merged([RED], ["red"])


def test_without_a_default_scope_nothing_is_filtered() -> None:
    assert merged([RED, OLD], []) == Merged()
    assert Merged().trigger is None
    assert Merged().select is None


def test_several_scopes_are_alternatives_in_the_order_of_the_exposure() -> None:
    both = merged([RED, OLD], ["old", "red"])
    assert both.trigger == {"advancedSelectionFilter": {"or": [both.selections[0], OLD.expression]}}
    select = both.select
    assert select is not None
    assert matches(select, an_event(b'{"color":"red","Size":"1"}'))
    assert matches(select, an_event(b'{"color":"blue","age":18.5}'))
    assert not matches(select, an_event(b'{"color":"red","Size":1,"age":18}'))


def test_entries_of_a_simple_filter_are_sorted() -> None:
    assert merged([RED], ["red"]).selections == (
        {"and": [{"eq": {"field": "Size", "value": "1"}}, {"eq": {"field": "color", "value": "red"}}]},
    )


def test_a_scope_without_selection_adds_nothing() -> None:
    assert merged([OLD, HorizonScope("open", paths=("a",))], ["old", "open"]).select == merged([OLD], ["old"]).select


def test_paths_are_united_and_the_last_mode_wins() -> None:
    scopes = [
        HorizonScope("x", paths=("a", "b"), mode="Include"),
        HorizonScope("y", paths=("b", "c"), mode="Exclude"),
        HorizonScope("z"),
    ]
    assert merged(scopes, ["x", "y", "z"]).trigger == {
        "responseFilter": ["a", "b", "c"],
        "responseFilterMode": "EXCLUDE",
    }


def test_the_limit_of_operators_holds_for_each_scope_as_written() -> None:
    much = {"and": [{"eq": {"field": "a", "value": 1}}] * 41}
    scopes = [HorizonScope("x", expression=much), HorizonScope("y", expression=much)]
    assert merged(scopes, ["x", "y"]).select is not None
