"""Scopes: what they come to together, what is refused, and that nothing they hold back ever gets through by a change."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.builders import a_filter, a_subscription, a_topic, an_approval, an_exposure
from tests.registry.worlds import a_world, put, states
from tidings.errors import InvalidDocument
from tidings.log.position import Marks, embedded
from tidings.registry.model import Exposure, NamespaceSource, ProjectionText, Route, Scope, Subscription
from tidings.registry.rules import Version as V
from tidings.registry.rules import check, routes
from tidings.registry.rules.scopes import EVERYTHING, Offer, offered

MARKS: dict[int, Marks] = {0: {}, **{n: embedded(10 * n) for n in range(1, 10)}}


def including(*paths: str) -> ProjectionText:
    return ProjectionText(mode="include", paths=paths)


EU = Scope(filter=a_filter("region = 'EU'", "where"), projection=including("total", "region"))
UK = Scope(filter=a_filter("region = 'UK'", "where"), projection=including("region", "tax"))
BARE = Scope()


@pytest.mark.parametrize(
    ("scopes", "wanted", "offer"),
    [
        ({}, (), EVERYTHING),
        ({"eu": EU}, (), EVERYTHING),
        ({"eu": EU, "default": UK}, (), Offer((UK.filter,), UK.projection)),
        ({"eu": EU, "default": UK}, ("eu",), Offer((EU.filter,), EU.projection)),
        ({"eu": EU, "uk": UK}, ("uk", "eu"), Offer((EU.filter, UK.filter), including("total", "region", "tax"))),
        ({"eu": EU, "bare": BARE}, ("eu", "bare"), Offer((EU.filter,), EU.projection)),
        ({"eu": EU}, ("uk",), None),
        ({"eu": EU}, ("eu", "uk"), None),
        ({}, ("default",), None),
    ],
)
def test_what_scopes_come_to(scopes: dict[str, Scope], wanted: tuple[str, ...], offer: Offer | None) -> None:
    assert offered(scopes, wanted) == offer


def faults(document: Any) -> list[str]:
    with pytest.raises(InvalidDocument) as refused:
        check([document])
    return [fault.attribute for fault in refused.value.faults]


def test_scopes_are_checked_as_far_as_their_filters_and_paths() -> None:
    wrong = Scope(
        filter=a_filter("a ===", "where"), projection=ProjectionText(mode="include", paths=("$.a[",), syntax="jsonpath")
    )
    assert {"scopes.x.filter", "scopes.x.projection"} <= set(faults(an_exposure(scopes={"x": wrong})))
    assert faults(an_exposure(scopes={"no name!": BARE})) == ["scopes.no name!"]
    assert faults(an_exposure(scopes={"x": Scope(projection=including())})) == ["scopes.x.projection"]


def test_scopes_of_a_topic_that_include_and_exclude_are_refused() -> None:
    mixed = {"eu": EU, "rest": Scope(projection=ProjectionText(mode="exclude", paths=("tax",)))}
    assert faults(an_exposure(scopes=mixed)) == ["scopes"]


def test_scopes_that_together_have_too_many_paths_are_refused() -> None:
    many = {name: Scope(projection=including(*(f"{name}{n}" for n in range(200)))) for name in "ab"}
    assert faults(an_exposure(scopes=many)) == ["scopes"]


def test_a_projection_is_checked_with_its_subscription() -> None:
    assert faults(a_subscription(projection=ProjectionText(mode="keep", paths=("a",)))) == ["projection"]
    assert faults(a_subscription(projection=including("a", ""))) == ["projection"]
    assert faults(a_subscription(projection=including())) == ["projection"]
    assert faults(a_subscription(scopes=("eu", "eu"))) == ["scopes"]
    check([a_subscription(projection=including("a.b", "items.*.name"), scopes=("eu",))])


def test_an_unknown_scope_is_refused_with_the_known_names() -> None:
    world = a_world(a_topic(), an_exposure(scopes={"device-orders": EU, "default": UK}))
    with pytest.raises(InvalidDocument, match="it has device-orders, default"):
        put(world, a_subscription(scopes=("deviceorders",)))
    with pytest.raises(InvalidDocument, match="it has none"):
        put(a_world(a_topic()), a_subscription(scopes=("eu",)))


def test_other_scopes_need_another_approval() -> None:
    exposure = an_exposure(approval="manual", scopes={"eu": EU, "uk": UK})
    world = a_world(a_topic(), exposure, a_subscription(scopes=("eu",)), an_approval())
    assert states(world)["billing", "orders"] == "granted"
    assert states(put(world, a_subscription(scopes=("eu",), description="x")))["billing", "orders"] == "granted"
    assert states(put(world, a_subscription(scopes=("eu", "uk"))))["billing", "orders"] == "pending"
    assert states(put(world, a_subscription()))["billing", "orders"] == "pending"


def test_fewer_scopes_need_no_other_approval_but_none_at_all_may() -> None:
    exposure = an_exposure(approval="manual", scopes={"eu": EU, "uk": UK})
    world = a_world(a_topic(), exposure, a_subscription(scopes=("eu", "uk")), an_approval())
    fewer = put(world, a_subscription(scopes=("uk",)))
    assert states(fewer)["billing", "orders"] == "granted"
    assert states(put(fewer, a_subscription()))["billing", "orders"] == "pending"
    with_default = put(fewer, an_exposure(approval="manual", scopes={"uk": UK, "default": EU}))
    assert states(put(with_default, a_subscription()))["billing", "orders"] == "granted"


def parts(route: Route) -> tuple[set[int], int, tuple[Any, ...], Any]:
    return set(route.topics), route.since[0], route.select, route.scope  # type: ignore[index]


T1, T2 = a_topic("a", number=1), a_topic("b", number=2)
GRANTED = [V(an_approval("s", "a"), 2), V(an_approval("s", "b"), 2)]


def sub(*topics: str, **fields: Any) -> Subscription:
    return a_subscription("s", *(topics or ("a",)), lane=7, **fields)


def test_topics_with_different_scopes_are_different_routes_of_one_lane() -> None:
    exposed = V(an_exposure("a", scopes={"default": EU}), 1)
    found = routes([V(T1, 1), V(T2, 1), exposed, V(sub("a", "b"), 2), *GRANTED], MARKS)
    assert sorted(map(parts, found), key=str) == [({1}, 20, (EU.filter,), EU.projection), ({2}, 20, (), None)]
    assert {route.lane for route in found} == {7}


def test_a_changed_scope_takes_over_without_gap_or_overlap() -> None:
    exposures = [V(an_exposure("a", scopes={"default": EU}), 1, 4), V(an_exposure("a", scopes={"default": UK}), 4)]
    found = routes([V(T1, 1), *exposures, V(sub(), 2), *GRANTED], MARKS)
    assert [(route.since[0], route.until and route.until[0], route.scope) for route in found] == [  # type: ignore[index]
        (20, 40, EU.projection),
        (40, None, UK.projection),
    ]


def test_a_new_projection_is_a_new_route() -> None:
    found = routes([V(T1, 1), V(sub(), 2, 4), V(sub(projection=including("x")), 4)], MARKS)
    assert [(route.since[0], route.projection) for route in found] == [(20, None), (40, including("x"))]  # type: ignore[index]


def test_a_scope_that_is_removed_later_blocks_and_never_opens() -> None:
    exposures = [V(an_exposure("a", scopes={"eu": EU}), 1, 4), V(an_exposure("a", scopes={"uk": UK}), 4, 6)]
    found = routes([V(T1, 1), *exposures, V(sub(scopes=("eu",)), 2), *GRANTED], MARKS)
    assert [(route.since[0], route.until and route.until[0]) for route in found] == [(20, 40)]  # type: ignore[index]


def test_a_namespace_gets_only_topics_that_offer_the_scopes_it_names() -> None:
    exposed = V(an_exposure("a", scopes={"eu": EU}), 1)
    found = routes([V(T1, 1), V(T2, 1), exposed, V(sub(source=NamespaceSource("default"), scopes=("eu",)), 2), *GRANTED], MARKS)
    assert [parts(route) for route in found] == [({1}, 20, (EU.filter,), EU.projection)]


def test_documents_of_before_there_were_scopes_still_decode() -> None:
    old_exposure = b'{"topic":{"namespace":"default","name":"a"}}'
    assert msgspec.json.decode(old_exposure, type=Exposure).scopes == {}
    old = (
        b'{"name":{"namespace":"default","name":"s"},"source":{"kind":"namespace","namespace":"x"},"delivery":{"kind":"pull"}}'
    )
    found = msgspec.json.decode(old, type=Subscription)
    assert (found.projection, found.scopes) == (None, ())
