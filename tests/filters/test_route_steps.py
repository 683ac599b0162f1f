"""The order of the way: scope selects, scope projects, the filter sees what is left, the projection comes last."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import an_event
from tidings import filters
from tidings.filters.projection import projection
from tidings.filters.route_steps import RouteSteps, Stop, through

JSON = "application/json"
SCOPE = projection("include", ["item.product", "item.quantity"])


def where(text: str) -> Any:
    return filters.parse("where", text)


def device(**changes: Any) -> RouteSteps:
    return RouteSteps(**{"select": where('type = "DEVICE"'), "scope": SCOPE, **changes})


DATA = b'{"type":"DEVICE","customer":2,"item":{"product":"p","quantity":3.0,"price":4}}'


def test_nothing_in_the_way_lets_the_event_through_as_it_is() -> None:
    event = an_event(b"\xff", datacontenttype="image/png")
    assert through(RouteSteps(), event) is event


def test_the_scope_selects_on_the_whole_payload_and_then_strips_it() -> None:
    got = through(device(), an_event(DATA, datacontenttype=JSON))
    assert not isinstance(got, Stop)
    assert got.data == b'{"item":{"product":"p","quantity":3.0}}'
    assert through(device(), an_event(b'{"type":"X"}', datacontenttype=JSON)) is Stop.SCOPE


@pytest.mark.parametrize(
    ("condition", "passes"), [("item.quantity > 2", True), ("customer = 2", False), ("item.price = 4", False)]
)
def test_the_filter_sees_only_what_the_scope_left(condition: str, passes: bool) -> None:
    got = through(device(filter=where(condition)), an_event(DATA, datacontenttype=JSON))
    assert (got is Stop.FILTER) is not passes


def test_the_projection_comes_last() -> None:
    passage = device(filter=where('item.product = "p"'), projection=projection("include", ["item.quantity", "customer"]))
    got = through(passage, an_event(DATA, datacontenttype=JSON))
    assert not isinstance(got, Stop)
    assert (got.data, got.id) == (b'{"item":{"quantity":3.0}}', "1")


@pytest.mark.parametrize(("data", "content_type"), [(b"\xff", "image/png"), (b"<a/>", "text/xml"), (b"{", JSON), (None, JSON)])
def test_no_part_can_be_chosen_of_what_is_no_json(data: bytes | None, content_type: str) -> None:
    event = an_event(data, datacontenttype=content_type)
    assert through(RouteSteps(scope=SCOPE), event) is Stop.NOT_JSON
    assert through(RouteSteps(projection=SCOPE), event) is Stop.NOT_JSON
