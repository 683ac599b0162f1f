"""Filters alone: `POST /api/filters/test` says whether one matches an event, and why; `…/convert` writes it in another dialect."""

from __future__ import annotations

from typing import Annotated, Any, Protocol

import msgspec
from fastapi import APIRouter, Depends, Request, Response
from pydantic import Field

from tidings.access.principals import Right
from tidings.doors.native.bodies.subscription import WHERE, FilterBody
from tidings.doors.native.bodies.wire import Wire
from tidings.doors.native.callers import Caller, PartsOf
from tidings.errors import Malformed
from tidings.events import json_text, structured
from tidings.events.attribute_rules import checked
from tidings.events.model import Event

router = APIRouter(tags=["filters"])


_exact = msgspec.json.Encoder(decimal_format="number").encode
"""Writes a number with all its digits, as a number."""


async def _sent(request: Request) -> bytes:
    return await request.body()


Sent = Annotated[bytes, Depends(_sent)]
"""The text of a request. Its values as Python sees them have lost what decides filters: the digits of long numbers."""


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
    warnings: list[str] | None = Field(default=None, description="What in the filter may not be meant as it is written.")


@router.post("/api/filters/test")
async def test_filter(body: TestBody, sent: Sent, parts: PartsOf, caller: Caller) -> TestView:
    """Try a filter on an event. Nothing is stored."""
    caller.require(Right.SUBSCRIBE)
    # Imported late: the router behind it needs numpy, which nobody who only publishes should wait for.
    from tidings import filters
    from tidings.filters.lint import advice

    dialect, written = _written(body)
    parsed = filters.parse(dialect, written, parts.regex)
    explanation = filters.explain(parsed, event_of(body, sent))
    warnings = list(map(str, advice(dialect, written, parsed)))
    return TestView(**explanation.as_json(), text=str(explanation), warnings=warnings or None)


class ConvertBody(Wire):
    """A filter, the dialect it is written in, and the one it shall be written in."""

    dialect: str = Field(description="A dialect of FILTERS.md, or `logical`: like `where`, but a bare name is an attribute.")
    filter: Any
    to: str = Field(description="The dialect that it shall be written in.")


class ConvertedView(Wire):
    """The filter as it is written in the other dialect."""

    dialect: str
    filter: Any
    differences: list[str] = Field(description="Events of these kinds are decided differently; empty: none are.")


@router.post("/api/filters/convert", response_model=ConvertedView)
async def convert_filter(body: ConvertBody, parts: PartsOf, caller: Caller) -> Response:
    """Write a filter in another dialect, or say why it cannot be said there. Nothing is stored."""
    caller.require(Right.SUBSCRIBE)
    from tidings.filters.conversion import convert

    converted = convert(body.dialect, body.filter, body.to, parts.regex)
    answer = {"dialect": body.to, "filter": converted.filter, "differences": list(map(str, converted.differences))}
    return Response(_exact(answer), media_type="application/json")


def _written(body: TestBody) -> tuple[str, Any]:
    """The dialect of the filter to try, and the filter."""
    if (body.where is None) == (body.filter is None):
        raise Malformed("a filter is needed", expected="where or filter")
    return (WHERE, body.where) if body.filter is None else (body.filter.dialect, body.filter.filter)


class _Event(msgspec.Struct):
    event: msgspec.Raw = msgspec.Raw()
    data: msgspec.Raw = msgspec.Raw()


class HasEvent(Protocol):
    """A body with an event, or only its data."""

    event: dict[str, Any] | None
    data: Any

    @property
    def model_fields_set(self) -> set[str]: ...


def event_of(body: HasEvent, sent: bytes) -> Event:
    """The event that a body names, read from the text that was sent. Raises Malformed unless it is exactly one."""
    has_data = "data" in body.model_fields_set
    if (body.event is None) != has_data:
        raise Malformed("an event is needed", expected="event or data")
    written = _written_event(sent)
    if body.event is not None:
        return structured.read(bytes(written.event), {})
    attributes: dict[str, Any] = {"specversion": "1.0", "id": "test", "source": "/api/filters/test", "type": "test"}
    return checked(attributes | {"datacontenttype": "application/json"}, bytes(written.data))


def _written_event(sent: bytes) -> _Event:
    try:
        return msgspec.json.decode(sent, type=_Event)
    except msgspec.DecodeError as error:
        raise json_text.unreadable(sent, error) from error
