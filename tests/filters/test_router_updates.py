"""A router after a change of its routes: it answers as a new one would, and compiles only what is new."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.filters.made_up import events
from tests.filters.test_agreement import a_batch as batch_of
from tests.filters.test_agreement import plainly, routes
from tests.filters.test_router import BILLS, ORDERS, a_batch, a_route, numbered
from tidings.events.model import Event
from tidings.events.stored import head_of
from tidings.filters import Router, RouteSpec
from tidings.filters.routing import compiled, layout


def pairs(router: Router, count: int, topic: int = ORDERS) -> list[tuple[int, int]]:
    found = router.route(a_batch(*numbered(count), topics=[topic] * count))
    assert (found.aside, found.fell_back) == ([], 0)
    return list(zip(found.lanes.tolist(), found.events.tolist(), strict=True))


@pytest.fixture
def laid_out(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many terms were compiled, each time."""
    sizes: list[int] = []
    whole = layout.TermLayout

    def counted(terms: object) -> layout.TermLayout:
        listed = list(terms)  # type: ignore[call-overload]
        sizes.append(len(listed))
        return whole(listed)

    monkeypatch.setattr(compiled, "TermLayout", counted)
    return sizes


def test_one_changed_route_among_many_is_compiled_alone(laid_out: list[int]) -> None:
    before = [a_route(lane, f"n = {lane} or name = 'item-{lane}'") for lane in range(500)]
    router = Router(before)
    pairs(router, 300)
    now = [*before[:7], a_route(7, "n >= 7 and n < 9"), *before[8:], a_route(900)]
    changed = router.updated(now)
    assert pairs(changed, 300) == pairs(Router(now), 300)
    assert pairs(router, 300) == pairs(Router(before), 300)
    assert laid_out[:2] == [1000, 1]
    assert changed.changed == 3


def test_routes_that_are_equal_but_not_the_same_are_known_again(laid_out: list[int]) -> None:
    def made() -> list[RouteSpec]:
        return [a_route(lane, f"n = {lane}") for lane in range(200)]

    router = Router(made())
    pairs(router, 300)
    changed = router.updated(made())
    pairs(changed, 300)
    assert laid_out == [200]
    assert changed.changed == 0


def test_after_many_changes_all_is_compiled_anew(laid_out: list[int]) -> None:
    router = Router([a_route(lane, f"n = {lane}") for lane in range(200)])
    pairs(router, 300)
    now = [a_route(lane, f"n = {lane + 1}") for lane in range(200)]
    changed = router.updated(now)
    assert pairs(changed, 300) == [(lane, lane + 1) for lane in range(200)]
    assert laid_out == [200, 200]


def test_changes_add_up_and_a_rebuild_puts_them_into_one_base() -> None:
    router = Router([a_route(lane, f"n = {lane}") for lane in range(200)])
    pairs(router, 300)
    now = list(router._routes)
    for lane in range(20):
        now = [a_route(lane, f"n = {lane + 100}"), *(route for route in now if route.lane != lane)]
        router = router.updated(now)
        pairs(router, 300)
    assert router.changed == 40
    expected = pairs(Router(now), 300)
    assert pairs(router, 300) == expected
    router.rebuild()
    assert router.changed == 0
    assert pairs(router, 300) == expected


def test_single_events_see_the_change_too() -> None:
    before = [a_route(lane, f"n = {lane}") for lane in range(100)]
    router = Router(before)
    pairs(router, 5)
    changed = router.updated([*before[1:], a_route(0, "n = 3"), a_route(500, until=2)])
    assert pairs(changed, 5) == [(0, 3), (1, 1), (2, 2), (3, 3), (4, 4), (500, 0), (500, 1)]


def test_a_topic_that_leaves_or_joins_a_group_gets_its_own_routes() -> None:
    both, other = a_route(1, "n >= 2", topics=[ORDERS, BILLS]), a_route(2, topics=[BILLS])
    router = Router([both])
    assert pairs(router, 3) == pairs(router, 3, BILLS) == [(1, 2)]
    changed = router.updated([both, other])
    assert pairs(changed, 3) == [(1, 2)]
    assert pairs(changed, 3, BILLS) == [(1, 2), (2, 0), (2, 1), (2, 2)]
    assert pairs(changed.updated([other]), 3) == []


@pytest.mark.parametrize("alone", [0, 10**9])
@settings(max_examples=60, deadline=None)
@given(data=st.data(), before=st.lists(routes(), min_size=1, max_size=6), published=st.lists(events(), min_size=1, max_size=6))
def test_any_change_routes_as_a_new_router_does(
    data: st.DataObject, alone: int, before: list[RouteSpec], published: list[Event]
) -> None:
    now = data.draw(st.lists(st.sampled_from(before) | routes(), max_size=7))
    topics = data.draw(st.lists(st.sampled_from([1, 1, 2, 4]), min_size=len(published), max_size=len(published)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidings.filters.router.ALONE", alone)
        patch.setattr(compiled, "FEW", -1)
        patch.setattr(compiled, "plainly", None)
        router = Router(before)
        router.route(batch_of(published, topics))
        found = router.updated(now).route(batch_of(published, topics))
    assert found.aside == []
    assert list(zip(found.lanes.tolist(), found.events.tolist(), strict=True)) == plainly(now, published, topics)


def test_a_single_event_reaches_routes_that_came_later_however_often_it_is_asked() -> None:
    before = [a_route(lane, f"n = {lane}") for lane in range(200)]
    router = Router(before)
    event = numbered(6)[5]

    def lanes(of: Router) -> list[int]:
        return sorted(of.route_one(1, ORDERS, head_of(event), event.data).lanes)

    assert [lanes(router), lanes(router)] == [[5], [5]]
    # The second answer is the one that a quick way would give, which knows only what was compiled together.
    grown, shrunk = router.updated([*before, a_route(900, "n > 4")]), router.updated([*before[:5], *before[6:]])
    assert [lanes(grown), lanes(grown)] == [[5, 900], [5, 900]]
    assert [lanes(shrunk), lanes(shrunk)] == [[], []]
