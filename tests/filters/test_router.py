"""The router as a part: order, versions, topics, and that nothing stops a batch."""

from __future__ import annotations

import pickle
from collections.abc import Sequence

import numpy as np
import pytest

from tests.builders import an_event
from tidings.events.model import Event
from tidings.events.stored import head_of
from tidings.filters import Router, RouteSpec, RoutingBatch, matches, parse
from tidings.filters.routing import compiled, facts, group
from tidings.filters.routing.columns import EventRow
from tidings.filters.routing.index import Index
from tidings.filters.routing.predicates import predicate

ORDERS, BILLS = 1, 2


def a_route(
    lane: int, where: str | None = None, *, topics: Sequence[int] = (ORDERS,), since: int = 0, until: int | None = None
) -> RouteSpec:
    return RouteSpec(lane, frozenset(topics), None if where is None else parse("where", where), since, until)


def a_batch(*published: Event, topics: Sequence[int] | None = None, positions: Sequence[int] | None = None) -> RoutingBatch:
    count = len(published)
    return RoutingBatch(
        positions or range(1, count + 1),
        topics or [ORDERS] * count,
        [head_of(event) for event in published],
        [e.data for e in published],
    )


def routed(routes: Sequence[RouteSpec], batch: RoutingBatch) -> list[tuple[int, int]]:
    found = Router(routes).route(batch)
    assert found.aside == []
    return list(zip(found.lanes.tolist(), found.events.tolist(), strict=True))


def numbered(count: int) -> list[Event]:
    return [an_event(b'{"n":%d,"region":"%s","name":"item-%d"}' % (n, (b"EU", b"US", b"UK")[n % 3], n)) for n in range(count)]


def test_pairs_come_by_lane_and_position_each_once() -> None:
    routes = [a_route(7, "n >= 0 or region = 'EU'"), a_route(3), a_route(3, "n = 1"), a_route(5, "n in (0, 1)")]
    batch = a_batch(*numbered(3), positions=[30, 10, 20])
    assert routed(routes, batch) == [(3, 1), (3, 2), (3, 0), (5, 1), (5, 0), (7, 1), (7, 2), (7, 0)]


def test_lanes_may_have_large_numbers() -> None:
    lanes = [2**32 - 1, 70_000, 65_536, 1]
    assert routed([a_route(lane) for lane in lanes], a_batch(*numbered(2))) == [
        (lane, n) for lane in sorted(lanes) for n in (0, 1)
    ]


def test_a_lane_is_told_once_per_event_however_many_ways_lead_to_it() -> None:
    routes = [
        a_route(70_000, "n >= 0 or region = 'EU' or name starts with 'item'"),
        a_route(9, "n < 5 or region = 'EU'"),
        a_route(9),
    ]
    expected = [(9, n) for n in range(200)] + [(70_000, n) for n in range(200)]
    assert routed(routes, a_batch(*numbered(200))) == expected


def test_an_empty_batch_and_a_router_without_routes_match_nothing() -> None:
    assert routed([], a_batch(*numbered(3))) == []
    assert routed([a_route(1)], a_batch()) == []
    assert Router([]).route(a_batch()).events.dtype == np.int64


@pytest.mark.parametrize("where", [None, "n >= 0", "region exists"])
def test_a_version_is_in_force_after_since_up_to_until(where: str | None) -> None:
    routes = [a_route(1, where, since=1, until=3), a_route(1, where, since=4), a_route(2, where, until=1)]
    assert routed(routes, a_batch(*numbered(6))) == [(1, 1), (1, 2), (1, 4), (1, 5), (2, 0)]


def test_a_batch_that_spans_a_change_of_filter_uses_each_version_for_its_positions() -> None:
    routes = [a_route(1, "region = 'EU'", until=300), a_route(1, "region = 'US'", since=300)]
    found = routed(routes, a_batch(*numbered(600)))
    assert found == [(1, n) for n in range(600) if n % 3 == (0 if n < 300 else 1)]


def test_an_event_meets_only_the_routes_of_its_topic() -> None:
    routes = [
        a_route(1, topics=[ORDERS]),
        a_route(2, "n >= 0", topics=[BILLS]),
        a_route(3, topics=[ORDERS, BILLS]),
        a_route(4, topics=[]),
    ]
    batch = a_batch(*numbered(4), topics=[ORDERS, BILLS, 99, BILLS])
    assert routed(routes, batch) == [(1, 0), (2, 1), (2, 3), (3, 0), (3, 1), (3, 3)]


def test_thousands_of_topics_with_a_route_each_and_one_for_all() -> None:
    topics = range(2000)
    routes = [a_route(topic, "n >= 1000", topics=[topic]) for topic in topics] + [a_route(5000, "region = 'EU'", topics=topics)]
    found = routed(routes, a_batch(*numbered(2000), topics=list(topics)))
    assert found == [(n, n) for n in range(1000, 2000)] + [(5000, n) for n in range(0, 2000, 3)]


def test_compiled_groups_are_dropped_when_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidings.filters.router._COMPILED", 3)
    router = Router([a_route(topic, topics=[topic]) for topic in range(2)])
    router._limit = 1
    for _ in range(2):
        assert router.route(a_batch(*numbered(2), topics=[0, 1])).lanes.tolist() == [0, 1]
    assert len(router._groups) == 1


@pytest.mark.usefixtures("index_only")
def test_many_filters_of_every_kind_agree_with_the_plain_reading() -> None:
    kinds = (
        "n = {0}",
        "n >= {0}",
        "n >= {0} and n < {1}",
        "name = 'item-{0}'",
        "name starts with 'item-{0}'",
        "name ends with '{0}'",
        "name like 'item-?{0}'",
        "name matches '-{0}.$'",
        "name contains '{0}'",
        "region = 'EU' and n > {0}",
        "region != 'EU' and n < {0}",
        "region not in ('EU', 'UK') and name not like '*{0}'",
        "not (n < {0}) and not n > {1}",
        "n = {0} or name = 'item-{1}'",
        "region in ('EU', 'US') and (n = {0} or n = {1} or name ends with '7')",
        "absent is missing and n = {0}",
        "n <= {0} and absent exists",
    )
    texts = [kind.format(n, n + 13) for n in range(0, 120, 7) for kind in kinds]
    filters = [parse("where", text) for text in texts]
    published = numbered(150)
    routes = [RouteSpec(lane, frozenset([ORDERS]), filter, 0) for lane, filter in enumerate(filters)]
    expected = [(lane, n) for lane, filter in enumerate(filters) for n, event in enumerate(published) if matches(filter, event)]
    assert routed(routes, a_batch(*published)) == expected


def test_memos_stay_bounded_when_texts_never_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "_MAX_TEXTS", 50)
    router = Router([a_route(1, "name starts with 'item-1'"), a_route(2, "name matches '9$'")])
    router.route(a_batch(*numbered(1000)))
    (made,) = router._groups.values()
    ((_, found),) = made._base.compiled._index._facts
    assert isinstance(found, facts.TextFacts)
    assert 0 < len(found._memo) <= 50


@pytest.mark.usefixtures("index_only")
def test_numbers_are_exact_though_few_candidates_ask_for_them() -> None:
    numbers = (b"5", b"5.0", b"5.00000000000000000001", b"4.99999999999999999999", b"7", b"null", b'"5"', b"4")
    texts = [b'{"k":"x%d","n":%s}' % (n, numbers[n % len(numbers)]) for n in range(400)]
    routes = [
        a_route(n, f"k = 'x{n}' and n {op} 5") for n, op in zip(range(0, 400, 9), ("<", "<=", ">", ">=") * 12, strict=False)
    ]
    routes.append(a_route(900, "k in ('x3', 'x5') and n > 4 and n < 5.5 and m is missing"))
    published = [an_event(text) for text in texts]
    expected = [(r.lane, n) for r in routes for n, event in enumerate(published) if r.filter and matches(r.filter, event)]
    assert routed(routes, a_batch(*published)) == expected


@pytest.mark.usefixtures("index_only")
def test_numbers_that_only_differ_beyond_a_float_are_told_apart() -> None:
    texts = [
        b"0.1",
        b"0.10000000000000000001",
        b"9007199254740993",
        b"9007199254740992.5",
        b"1e400",
        b"1e-400",
        b"0",
        b"-0.0",
        b"1E2",
    ] * 60
    routes = [
        a_route(lane, f"n {op} {number}")
        for lane, (op, number) in enumerate(
            (op, number)
            for op in ("=", "<", "<=", ">", ">=")
            for number in ("0.1", "9007199254740992", "9007199254740993", "1e400", "0", "100")
        )
    ]
    published = [an_event(b'{"n":%s}' % text) for text in texts]
    expected = [
        (route.lane, n)
        for route in routes
        for n, event in enumerate(published)
        if route.filter and matches(route.filter, event)
    ]
    assert routed(routes, a_batch(*published)) == expected
    ranges = [route for route in routes if route.lane >= 6]  # without equality, fractions are decoded as floats
    assert routed(ranges, a_batch(*published)) == [pair for pair in expected if pair[0] >= 6]


@pytest.mark.usefixtures("index_only")
def test_payloads_that_only_together_look_like_json_stay_apart() -> None:
    pieces = [b'{"n":[1', b"2]}", b'{"n":1},{"n":1}', b"", b'{"n":1']
    published = [an_event(piece or None, datacontenttype="application/json") for piece in pieces] + [an_event(b'{"n":1}')]
    assert routed([a_route(1, "n exists")], a_batch(*published * 100)) == [(1, n) for n in range(5, 600, 6)]


@pytest.mark.parametrize("count", [1, 200])
def test_payloads_that_are_no_json_have_no_members(count: int) -> None:
    deep = b'{"n":1,"z":' + b"[" * 600 + b"]" * 600 + b"}"
    published = [
        an_event(b'{"n":1}'),
        an_event(b'{"n":1}', datacontenttype="text/plain"),
        an_event(b'{"n":1}', base64=True),
        an_event(b'{"n":1}', base64=True, datacontenttype="application/json"),
        an_event(deep),
        an_event(),
    ]
    expected = [(1, n) for n in range(6 * count) if n % 6 in (0, 3)]
    assert routed([a_route(1, "n = 1")], a_batch(*published * count)) == expected


def test_a_bad_head_is_set_aside_and_the_rest_goes_on() -> None:
    good = a_batch(*numbered(600))
    heads = list(good.heads)
    heads[4] = b"{not json"
    found = Router([a_route(1, "not absent = 1"), a_route(2)]).route(
        RoutingBatch(good.positions, good.topics, heads, good.datas)
    )
    assert [(one.event, one.lane) for one in found.aside] == [(4, None)]
    assert "cannot be read" in found.aside[0].reason
    assert found.events[found.lanes == 1].tolist() == [n for n in range(600) if n != 4]
    assert found.events[found.lanes == 2].tolist() == list(range(600))


class Surprise(Exception):
    """What nobody thought of."""


def surprising(columns: object, event: int) -> bool:
    if event == 2:
        raise Surprise("at event 2")
    return True


def at_name_2(row: EventRow, event: int) -> bool:
    if row.payload is not None and b'"item-2"' in row.payload:
        raise Surprise("at event 2")
    return True


@pytest.mark.parametrize("count", [5, 600])
def test_a_predicate_that_fails_sets_only_its_event_aside(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidings.filters.routing.index.predicate", lambda filter, numbers: surprising)
    monkeypatch.setattr("tidings.filters.routing.one_by_one.predicate", lambda filter, numbers: at_name_2)
    routes = [a_route(1, "n >= 0 and not name matches 'x'"), a_route(2), a_route(3, "not name matches 'y'", since=count)]
    found = Router(routes).route(a_batch(*numbered(count)))
    assert found.aside == [(2, 1, "Surprise: at event 2")]
    assert found.events[found.lanes == 1].tolist() == [n for n in range(count) if n != 2]
    assert found.events[found.lanes == 2].tolist() == list(range(count))


def test_a_predicate_that_fails_among_many_sets_only_its_lane_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    tested = parse("where", "not name matches 'x'")
    monkeypatch.setattr(
        "tidings.filters.routing.single_event.predicate", lambda f, test: at_name_2 if f == tested else predicate(f, test)
    )
    routes = [a_route(70 + n, f"n = {n}") for n in range(30)] + [a_route(5, "n >= 0 and not name matches 'x'"), a_route(6)]
    router = Router(routes)
    for n, event in enumerate(numbered(4)):
        found = router.route_one(n + 1, ORDERS, head_of(event), event.data)
        assert sorted(found.lanes) == ([6, 72] if n == 2 else [5, 6, 70 + n])
        assert list(found.aside) == ([(0, 5, "Surprise: at event 2")] if n == 2 else [])


def fails(*_: object) -> None:
    raise Surprise("everywhere")


def test_an_index_that_fails_is_replaced_by_the_plain_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Index, "match", fails)
    batch = a_batch(*numbered(600))
    assert routed([a_route(1, "n < 3")], batch) == [(1, 0), (1, 1), (1, 2)]
    heads = [b"?" if n == 1 else head for n, head in enumerate(batch.heads)]
    found = Router([a_route(1, "n < 3")]).route(RoutingBatch(batch.positions, batch.topics, heads, batch.datas))
    assert found.events.tolist() == [0, 2]
    assert [(one.event, one.lane) for one in found.aside] == [(1, None)]


def test_whatever_fails_the_batch_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group.Group, "match", fails)
    monkeypatch.setattr(group.Group, "match_one", fails)
    found = Router([a_route(1)]).route(a_batch(*numbered(2), topics=[ORDERS, 99]))
    assert found.aside == [(0, None, "Surprise: everywhere")]
    assert len(found.events) == 0


@pytest.fixture
def index_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The index must not be rescued by the plain way."""
    monkeypatch.setattr(compiled, "plainly", None)


VALUES = b'1|true|"1"|1.0|null|[]|{}|"x"|0|false|-0.0|-1|"5"|5|[1]|{"n":1}|1.5|"true"|5e0|9007199254740993|1e400'.split(b"|")
CONDITIONS = [
    *(f"n {op} {value}" for op in ("=", "!=") for value in ("1", "true", "0", "false", "null", "'1'", "'x'", "5", "1.5")),
    *(f"n {op} {value}" for op in ("<", "<=", ">", ">=") for value in ("0", "1", "1.5", "5", "'1'", "9007199254740992")),
    *("n in (1)", "n in (true, 5)", "n not in (0)", "n in ('x', null, false)", "n exists", "n is missing"),
    *("n starts with 't'", "n starts with ''", "n ends with ''", "n ends with 'true'", "n ends with 'e'"),
    *("n like '?'", "n like 't*e'", "n like '*u*'", "n not contains '1'", "n matches '^.$'"),
]


@pytest.mark.parametrize("negation", ["", "not "])
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.usefixtures("index_only")
def test_a_condition_alone_is_routed_as_it_is_read_for_values_of_every_kind(condition: str, negation: str) -> None:
    published = [an_event(b'{"n":%s}' % value) for value in VALUES] + [an_event(b"{}"), an_event()]
    route = a_route(1, f"{negation}{condition}")
    assert route.filter is not None
    expected = [(1, n) for n, event in enumerate(published * 15) if matches(route.filter, event)]
    assert routed([route], a_batch(*published * 15)) == expected


@pytest.mark.usefixtures("index_only")
def test_a_tree_too_large_to_split_is_still_exact() -> None:
    pairs = " and ".join(f"(n = {n} or not name ends with '{n}' or n > {n + 500})" for n in range(8))
    routes = [a_route(1, pairs), a_route(2, f"region = 'EU' and not ({pairs})")]
    published = numbered(600)
    expected = [(r.lane, n) for r in routes for n, event in enumerate(published) if r.filter and matches(r.filter, event)]
    assert routed(routes, a_batch(*published)) == expected


def test_routes_travel_between_processes() -> None:
    route = a_route(1, "name matches '^item' and not (n in (1, true, 1.5) or @type like 'x*')", until=5)
    assert pickle.loads(pickle.dumps(route)) == route
