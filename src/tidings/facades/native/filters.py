"""Trying a filter: `POST /api/filters/test` says whether it matches an event, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from fastapi import APIRouter
from pydantic import Field

from tidings.access.principals import Right
from tidings.errors import Malformed
from tidings.events import structured
from tidings.events.checks import checked
from tidings.events.model import Event
from tidings.facades.native.callers import Caller, PartsOf
from tidings.facades.native.subscription_body import WHERE, FilterBody
from tidings.facades.native.wire import Wire
from tidings.facades.parts import Parts

if TYPE_CHECKING:
    from tidings.filters import Filter

router = APIRouter(tags=["filters"])


class TestBody(Wire):
    """A filter (where or filter) and an event (a whole CloudEvent, or only its data)."""

    where: str | None = None
    filter: FilterBody | None = None
    event: dict[str, Any] | None = None
    data: Any = None


class TestView(Wire):
    """Whether the filter matches, the conditions that decided, and the whole tree."""

    matches: bool
    because: list[Any]
    tree: Any
    text: str = Field(description="The same in words.")


@router.post("/api/filters/test")
async def test_filter(body: TestBody, parts: PartsOf, caller: Caller) -> TestView:
    """Try a filter on an event. Nothing is stored."""
    caller.require(Right.SUBSCRIBE)
    # Imported late: the router behind it needs numpy, which nobody who only publishes should wait for.
    from tidings import filters

    explanation = filters.explain(_filter(body, parts), event_of(body))
    return TestView(**explanation.as_json(), text=str(explanation))


def _filter(body: TestBody, parts: Parts) -> Filter:
    from tidings import filters

    if (body.where is None) == (body.filter is None):
        raise Malformed("a filter is needed", expected="where or filter")
    if body.filter is not None:
        return filters.parse(body.filter.dialect, body.filter.filter, parts.regex)
    return filters.parse(WHERE, body.where, parts.regex)


class HasEvent(Protocol):
    """A body with an event, or only its data."""

    event: dict[str, Any] | None
    data: Any

    @property
    def model_fields_set(self) -> set[str]: ...


def event_of(body: HasEvent) -> Event:
    """The event that a body names. Raises Malformed unless it is exactly one."""
    has_data = "data" in body.model_fields_set
    if (body.event is None) != has_data:
        raise Malformed("an event is needed", expected="event or data")
    if body.event is not None:
        return structured.read(msgspec.json.encode(body.event), {})
    attributes: dict[str, Any] = {"specversion": "1.0", "id": "test", "source": "/api/filters/test", "type": "test"}
    return checked(attributes | {"datacontenttype": "application/json"}, msgspec.json.encode(body.data))
