"""One event at a time: the generated function answers as a batch does, within its bounds."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import an_event
from tests.filters.documents import all_filters as filters
from tests.filters.made_up import events
from tests.filters.test_router import ORDERS, VALUES, a_batch, a_route, numbered
from tidings.events.model import NO_JSON, TEXT, Event
from tidings.events.stored import head_of
from tidings.filters import Router, RouteSpec, matches, parse
from tidings.filters.algebra import Filter
from tidings.filters.routing import compiled, leaf
from tidings.filters.routing.layout import TermLayout
from tidings.filters.routing.single_event import Names, Single
from tidings.filters.routing.terms import terms_of


@pytest.fixture(autouse=True)
def generated_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few filters there are, and never rescued by the plain way."""
    monkeypatch.setattr(compiled, "FEW", -1)
    monkeypatch.setattr(compiled, "plainly", None)


def lanes(router: Router, event: Event, position: int = 1, topic: int = ORDERS) -> list[int]:
    found = router.route_one(position, topic, head_of(event), event.data)
    assert (list(found.aside), found.fell_back) == ([], False)
    assert len(set(found.lanes)) == len(found.lanes)
    again = router.route_one(position, topic, head_of(event), event.data)  # the first time, the quick way was not there yet
    assert sorted(again.lanes) == sorted(found.lanes)
    return sorted(found.lanes)


def expected(routes: Sequence[RouteSpec], event: Event) -> list[int]:
    return sorted({route.lane for route in routes if route.filter is None or matches(route.filter, event)})


def agree(routes: Sequence[RouteSpec], published: Sequence[Event]) -> Router:
    router = Router(routes)
    for event in published:
        assert lanes(router, event) == expected(routes, event)
    return router


@pytest.mark.parametrize("room", [0, 4096])
def test_ranges_of_every_shape_with_and_without_room_for_their_answers(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaf, "_TABLE", room)
    monkeypatch.setattr(leaf, "_PER_SLOT", 0 if room == 0 else 16)
    kinds = (
        "n >= {0}",
        "n > {0}",
        "n < {0}",
        "n <= {0}",
        "n >= {0} and n < {1}",
        "not n >= {0}",
        "n != {0}",
        "n not in ({0}, {1})",
    )
    wheres = [kind.format(n, n + 30) for n in range(0, 100, 9) for kind in kinds]
    wheres += [f"region = 'EU' and {where}" for where in wheres]
    agree([a_route(lane, where) for lane, where in enumerate(wheres)], numbered(110))


def test_answers_for_wide_ranges_do_not_grow_with_their_square() -> None:
    wheres = [f"n > {n} and n < {4000 - n}" for n in range(1500)]
    router = agree([a_route(lane, where) for lane, where in enumerate(wheres)], numbered(10))
    single = next(iter(router._groups.values()))._base.compiled._single
    assert isinstance(single, Single)
    _, sets, (values, ranges, left) = single._space["root_leaf"]
    assert isinstance(sets, leaf.Growing)
    assert sum(len(routes) for routes in ranges[0].sets) <= 4096 + 16 * 1500
    assert values == []
    assert left


@pytest.mark.parametrize("event", numbered(3))
def test_an_event_like_most_goes_the_quick_way(event: Event, monkeypatch: pytest.MonkeyPatch) -> None:
    wheres = [
        "region = 'EU' and n >= 1",
        "n < 2",
        "n < 2 or name ends with '1'",
        "name matches '^item-[12]'",
        "x is missing",
        None,
    ]
    routes = [a_route(90 - lane, where) for lane, where in enumerate(wheres)]
    router = agree(routes, [event])
    monkeypatch.setattr(Router, "_with_care", None)
    assert sorted(router.route_one(1, ORDERS, head_of(event), event.data).lanes) == expected(routes, event)


def test_a_number_is_exact_on_the_quick_way_too() -> None:
    numbers = ("1", "0.1", "100", "-5", "1.5", "3", "-0.0", "9007199254740991")
    wheres = [f"n {op} {number}" for op in ("<", "<=", ">", ">=") for number in numbers]
    texts = (
        *(
            b"0.1",
            b"0.10000000000000000001",
            b"0.09999999999999999999",
            b"1",
            b"1.0",
            b"1.00000000000000000001",
            b"-5",
            b"-5.0",
        ),
        *(
            b"0",
            b"-0",
            b"0.0",
            b"1e2",
            b"99.99999999999999999999",
            b"9007199254740993",
            b"9007199254740991",
            b"1e400",
            b"1e-400",
        ),
        *(b"-1e300", b"true", b'"1"', b"null", b"[1]", b'{"n":1}', b"12345678901234567890123", b"9007199254740990.9999"),
    )
    published = [an_event(b'{"n":%s,"m":"x"}' % text) for text in texts] + [an_event(b'{"m":"x"}')]
    agree([a_route(lane, where) for lane, where in enumerate(wheres)], published)
    agree([a_route(lane, f"m = 'x' and {where}") for lane, where in enumerate(wheres)], published)
    near = ["n < 1", "n <= 1.0000000000000001", "n > 1.0000000000000002", "n >= 1.00000000000000000001", "n > 1e400"]
    agree([a_route(lane, where) for lane, where in enumerate(near)], published)


@settings(max_examples=200, deadline=None)
@given(chosen=st.lists(filters, min_size=1, max_size=10), published=st.lists(events(), min_size=1, max_size=6))
def test_what_the_quick_way_does_not_give_up_on_is_right(chosen: list[Filter], published: list[Event]) -> None:
    layout = TermLayout((n, term) for n, filter in enumerate(chosen) for term in terms_of(filter))
    single = Single(layout, names=Names({n: 100 - n for n in range(len(chosen))}, [7]))
    for event in published:
        try:
            found = single.quick(head_of(event), event.data)
        except Exception:  # odd: left to the careful way
            continue
        assert sorted(found) == sorted([7, *(100 - n for n, filter in enumerate(chosen) if matches(filter, event))])


def test_many_partners_of_one_path() -> None:
    wheres = [f"n = {n} and m{n % 20} = 'x'" for n in range(200)] + ["n = 7 and m7 = 'x' and m8 = 'y'"]
    published = [an_event(b'{"n":%d,"m%d":"x","m8":"y"}' % (n, n % 20)) for n in range(0, 200, 3)]
    agree([a_route(lane, where) for lane, where in enumerate(wheres)], published)


@pytest.mark.parametrize("value", VALUES)
def test_values_of_every_kind_where_another_is_looked_up(value: bytes) -> None:
    wheres = [
        "n = 1 and m = true",
        "n = true and m = 1",
        "n = 'x' and m = 0",
        "n in (1, null)",
        "m = false",
        "n exists and m = 1",
    ]
    wheres += ["m starts with 't'", "n matches '^x'", "n = 1 and not m = 1", "n >= 1 and m > 0"]
    published = [an_event(b'{"n":%s,"m":%s}' % (value, other)) for other in VALUES]
    agree([a_route(lane, where) for lane, where in enumerate(wheres)], published)


def test_arrays_are_looked_into_though_another_filter_cannot_look_them_up() -> None:
    pattern = parse("eventbridge", {"detail": {"n": ["x", 5]}})
    routes = [RouteSpec(1, frozenset([ORDERS]), pattern, 0), a_route(2, "n = 'x'"), a_route(3, "n = true and m = 1")]
    published = [
        an_event(b'{"n":%s,"m":1}' % value) for value in (b'["x"]', b'["y",[5]]', b'"x"', b"[]", b"true", b'{"n":"x"}')
    ]
    agree(routes, published)


def test_versions_and_topics_count_for_single_events_too() -> None:
    router = Router([a_route(1, "n >= 0", since=1, until=3), a_route(1, since=3), a_route(2, until=2), a_route(3, topics=[9])])
    (event,) = numbered(1)
    assert [lanes(router, event, position) for position in range(1, 6)] == [[2], [1, 2], [1], [1], [1]]
    assert lanes(router, event, topic=9) == [3]
    assert lanes(router, event, topic=77) == []


def test_a_bad_head_or_payload_sets_only_that_event_aside() -> None:
    router = Router([a_route(1, "n exists"), a_route(2)])
    found = router.route_one(1, ORDERS, b"{broken", b'{"n":1}')
    assert found.lanes == [2]
    assert [(one.event, one.lane) for one in found.aside] == [(0, None)]
    assert lanes(router, an_event(b'{"n":')) == [2]
    assert lanes(router, an_event(b'{"z":"\xff","n":1}')) == [1, 2]


def test_a_large_index_is_not_given_up_for_a_few_single_events() -> None:
    router = Router([a_route(lane, f"n = {lane}") for lane in range(2000)])
    router.route(a_batch(*numbered(200)))
    (group,) = router._groups.values()
    router.route(a_batch(*numbered(5)))
    assert "_single" not in group._base.compiled.__dict__
    for _ in range(30):
        router.route(a_batch(*numbered(5)))
    assert "_single" in group._base.compiled.__dict__


def test_what_a_door_does_not_take_for_json_is_not_read_one_by_one_nor_in_batches() -> None:
    payload, routes = b'{"n":1}', [a_route(1, "n = 1"), a_route(2, "n not exists")]
    published = [
        msgspec.structs.replace(an_event(payload, datacontenttype=kind), form=form)
        for kind in ("text/json", "application/json", "application/x+json")
        for form in ("", TEXT, *NO_JSON)
        if kind != "application/json" or form not in NO_JSON
    ]
    agree(routes, published)
    found = Router(routes).route(a_batch(*published))
    assert list(zip(found.lanes.tolist(), found.events.tolist(), strict=True)) == sorted(
        (lane, n) for n, event in enumerate(published) for lane in expected(routes, event)
    )
    assert [1 in expected(routes, event) for event in published] == [event.form not in NO_JSON for event in published]
