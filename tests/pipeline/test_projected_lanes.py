"""Routing to lanes that get parts: agrees with the plain reading of the way, makes equal bodies once, keeps to its budget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import a_filter, an_event
from tidings import filters
from tidings.events.model import Event
from tidings.events.stored import head_of
from tidings.filters.route_steps import Stop, through
from tidings.lanes.parts import KEY_BYTES, WHOLE
from tidings.log.position import EMBEDDED, LaneNumber, TopicNumber, embedded
from tidings.pipeline.route import Routing
from tidings.pipeline.routed_rows import ASIDE, ENTRIES, PART
from tidings.pipeline.routes import encode_route
from tidings.registry.model import FilterText, ProjectionText, Route
from tidings.registry.route_steps import passage_of

ALL = 1 << 30


def a_route(lane: int, topic: int = 1, *, since: int = 0, until: int | None = None, **fields: Any) -> Route:
    given_fields = {"filter": None, **fields}
    end = None if until is None else embedded(until)
    return Route(
        lane=LaneNumber(lane), topics=frozenset({TopicNumber(topic)}), since=embedded(since), until=end, **given_fields
    )


def where(text: str) -> FilterText:
    return a_filter(text, "where")


def including(*paths: str) -> ProjectionText:
    return ProjectionText(mode="include", paths=paths)


def excluding(*paths: str) -> ProjectionText:
    return ProjectionText(mode="exclude", paths=paths)


def json_event(data: Any) -> Event:
    raw = data if isinstance(data, bytes) else msgspec.json.encode(data)
    return an_event(raw, datacontenttype="application/json")


def routed(
    routes: list[Route], events: list[Event], budget: int = ALL, topics: list[int] | None = None
) -> tuple[dict[int, list[tuple[int, bytes | None]]], list[Any], int]:
    """What each lane gets: offsets (10, 20, …) and bodies, None for references; all rows; how far they go."""
    offsets = np.array([10 * (n + 1) for n in range(len(events))], np.int64)
    batch = filters.RoutingBatch(
        positions=offsets.tolist(),
        topics=topics or [1] * len(events),
        heads=[head_of(event) for event in events],
        datas=[event.data for event in events],
    )
    rows, reached = Routing(map(encode_route, routes), EMBEDDED).route(batch, offsets, budget)
    bodies = {(row[2], row[5]): row[6] for row in rows if row[0] == PART}
    return {row[1]: entries(row, bodies) for row in rows if row[0] == ENTRIES and row[1] is not None}, rows, reached


def entries(row: Any, bodies: Mapping[tuple[int, bytes | None], bytes | None]) -> list[tuple[int, bytes | None]]:
    offsets = np.frombuffer(row[4], "<i8").tolist()
    digests = row[5] or WHOLE * len(offsets)
    named = [digests[n * KEY_BYTES : (n + 1) * KEY_BYTES] for n in range(len(offsets))]
    return [(at, None if digest == WHOLE else bodies[at, digest]) for at, digest in zip(offsets, named, strict=True)]


def test_a_projected_lane_gets_bodies_and_an_unprojected_one_references() -> None:
    lanes, rows, _ = routed([a_route(1), a_route(2, projection=including("a"))], [json_event(b'{"a":1.0,"b":2}')])
    assert lanes == {1: [(10, None)], 2: [(10, b'{"a":1.0}')]}
    assert next(row for row in rows if row[:2] == (ENTRIES, 1))[5] is None, "an unprojected lane carries no digests"


def test_a_projection_that_changes_nothing_is_a_reference() -> None:
    lanes, rows, _ = routed([a_route(1, projection=excluding("zz"))], [json_event({"a": 1})])
    assert lanes == {1: [(10, None)]}
    assert not [row for row in rows if row[0] == PART]


def test_an_event_that_says_where_the_whole_payload_is_gets_a_body_although_nothing_is_taken_away() -> None:
    referring = an_event(b'{"a":1}', datacontenttype="application/json", dataref="https://shop.example/1")
    routes = [a_route(1, projection=excluding("zz")), a_route(2, scope=including("a")), a_route(3)]
    lanes, rows, _ = routed(routes, [referring])
    assert lanes == {1: [(10, b'{"a":1}')], 2: [(10, b'{"a":1}')], 3: [(10, None)]}
    assert len([row for row in rows if row[0] == PART]) == 1


def test_a_consumers_filter_cannot_ask_for_the_address_that_a_scope_hides() -> None:
    referring = an_event(b'{"a":1,"b":2}', datacontenttype="application/json", dataref="https://shop.example/1")
    asking = where("@dataref exists")
    lanes, _, _ = routed([a_route(1, scope=including("a"), filter=asking), a_route(2, filter=asking)], [referring])
    assert lanes == {2: [(10, None)]}


def test_equal_projections_of_one_event_are_one_body() -> None:
    same = [a_route(lane, projection=including("a")) for lane in range(1, 51)] + [a_route(51, projection=excluding("b"))]
    lanes, rows, _ = routed(same, [json_event({"a": 1, "b": 2}), json_event({"a": 1, "b": 3})])
    assert all(lanes[lane] == [(10, b'{"a":1}'), (20, b'{"a":1}')] for lane in range(1, 52))
    assert len([row for row in rows if row[0] == PART]) == 2


def test_a_lane_with_scoped_and_open_topics_has_one_block_in_order() -> None:
    routes = [a_route(1, 1, scope=including("a")), a_route(1, 2)]
    lanes, rows, _ = routed(routes, [json_event({"a": n, "b": n}) for n in range(4)], topics=[1, 2, 1, 2])
    assert lanes == {1: [(10, b'{"a":0}'), (20, None), (30, b'{"a":2}'), (40, None)]}
    assert len([row for row in rows if row[0] == ENTRIES]) == 1


def test_a_new_projection_holds_from_its_position() -> None:
    routes = [a_route(1, until=10), a_route(1, since=10, until=20, projection=including("a")), a_route(1, since=20)]
    lanes, _, _ = routed(routes, [json_event({"a": 1, "b": 2})] * 3)
    assert lanes == {1: [(10, None), (20, b'{"a":1}'), (30, None)]}


def test_what_is_no_json_does_not_reach_a_projected_lane() -> None:
    events = [an_event(b"\xff", datacontenttype="image/png"), json_event(b"{"), json_event({"a": 1}), an_event(None)]
    lanes, _, _ = routed([a_route(1, projection=including("a")), a_route(2)], events)
    assert lanes == {1: [(30, None)], 2: [(10, None), (20, None), (30, None), (40, None)]}


def test_a_budget_ends_the_step_between_two_events_and_the_next_step_takes_the_rest() -> None:
    events = [json_event({"a": "x" * 1000, "n": n}) for n in range(10)]
    routes = [a_route(1), a_route(2, projection=including("a")), a_route(3, projection=excluding("a"))]
    lanes, _, reached = routed(routes, events, budget=2500)
    assert reached == 30
    assert [offset for offset, _ in lanes[2]] == [10, 20, 30]
    _, _, alone = routed(routes, events[:1], budget=0)
    assert alone == 10, "at least one event"


def test_a_projection_that_no_longer_parses_sets_only_its_own_events_aside() -> None:
    routes = [a_route(1), a_route(2, projection=ProjectionText(mode="keep", paths=("a",)))]
    lanes, rows, _ = routed(routes, [json_event({"a": 1})])
    assert lanes == {1: [(10, None)]}
    assert [(row[1], row[2]) for row in rows if row[0] == ASIDE] == [(2, 10)]


conditions = st.sampled_from(
    ["a = 1", "b = 1", "not a = 1", "exists c.d", 'c.d = "x"', "a = 1 or b = 2", '@type = "order.created"']
)
some_filter = st.none() | conditions.map(where)
some_paths = st.lists(st.sampled_from(["a", "b", "c", "c.d", "l.*", "l.0.a", "zz"]), min_size=1, max_size=3).map(tuple)
some_projection = st.none() | st.builds(ProjectionText, mode=st.sampled_from(["include", "exclude"]), paths=some_paths)
values = st.sampled_from([0, 1, 2, "x", None, {"d": "x"}, {"d": "x", "e": 1}, [{"a": 1}, 2]])
datas = st.dictionaries(st.sampled_from("abcl"), values).map(msgspec.json.encode) | st.sampled_from([b"", b"{", b"5", b"[1,2]"])
some_event = st.builds(
    lambda data, kind: an_event(data, datacontenttype=kind), datas, st.sampled_from(["application/json"] * 4 + ["text/plain"])
)


@st.composite
def some_route(draw: st.DrawFn) -> Route:
    return a_route(
        draw(st.integers(1, 50)),
        filter=draw(some_filter),
        select=tuple(draw(st.lists(conditions.map(where), max_size=2))),
        scope=draw(some_projection),
        projection=draw(some_projection),
    )


@given(st.lists(some_route(), max_size=6, unique_by=lambda route: route.lane), st.lists(some_event, min_size=1, max_size=5))
def test_every_lane_gets_what_the_plain_reading_lets_through(routes: list[Route], events: list[Event]) -> None:
    lanes, _, _ = routed(routes, events)
    for route in routes:
        passed = [(10 * (n + 1), through(passage_of(route), event), event) for n, event in enumerate(events)]
        wanted = [(at, got.data, event.data) for at, got, event in passed if not isinstance(got, Stop)]
        found = lanes.get(route.lane, [])
        assert [at for at, _ in found] == [at for at, _, _ in wanted]
        assert [whole if body is None else body for (_, body), (_, _, whole) in zip(found, wanted, strict=True)] == [
            data for _, data, _ in wanted
        ]


@pytest.mark.parametrize("slices", [1, 500])
def test_events_are_stripped_in_slices_without_losing_any(slices: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from tidings.pipeline import projected_lanes

    monkeypatch.setattr(projected_lanes, "SLICE_EVENTS", slices)
    routes = [a_route(1, scope=including("a"), filter=where("a >= 5"), projection=excluding("zz"))]
    lanes, _, _ = routed(routes, [json_event({"a": n, "b": n}) for n in range(10)])
    assert lanes == {1: [(10 * (n + 1), b'{"a":%d}' % n) for n in range(5, 10)]}
