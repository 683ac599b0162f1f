"""Events of one topic: `GET /api/topics/{name}/events` reads the log as lines of JSON, `POST` is the hot path.

A line is `{"cursor", "time", "event"}`; the last one, `{"cursor"}`, says where to go on. With `wait` the answer is held back until
there is something to tell.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from tidings.access.principals import Right
from tidings.clock import rfc3339
from tidings.doors.api_parts import ApiParts
from tidings.doors.deliveries.start_points import FIRST, LAST, marks_at
from tidings.doors.native.avro_form import AVRO_FORM, AvroForm, schemas_for
from tidings.doors.native.callers import Caller, PartsOf, topic_of
from tidings.doors.native.publish import NativePublish
from tidings.errors import Expired
from tidings.events.avro.payloads import SchemaBook, json_stored
from tidings.events.stored import event_from
from tidings.events.structured import structured_line
from tidings.log.cursor import cursor_at, cursor_of
from tidings.log.port import Entry, Limit, Page
from tidings.log.position import START, Marks, TopicNumber

router = APIRouter(tags=["events"])

NDJSON = "application/x-ndjson"
LONGEST_WAIT = 60.0
STEP = Limit(entries=100, bytes=256 << 10)
"""Read and written between two turns of the event loop: about a millisecond, so that publishing does not starve."""

_POST: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"example": {"total": 5}},
            "application/x-ndjson": {"schema": {"type": "string"}, "example": '{"total": 5}\n{"total": 6}\n'},
            "application/cloudevents+json": {
                "example": {"specversion": "1.0", "id": "1", "source": "/shop", "type": "order.created", "data": {"total": 5}}
            },
            "application/cloudevents-batch+json": {"schema": {"type": "array", "items": {"type": "object"}}},
        },
    },
    "responses": {
        "202": {
            "description": "Every event is durable.",
            "content": {"application/json": {"example": {"accepted": 1, "first": "0-42", "last": "0-42"}}},
        }
    },
}
_EXAMPLE = '{"cursor":"0-42","time":"…","event":{…}}\n{"cursor":"0-42"}\n'
_GET: dict[int | str, dict[str, Any]] = {200: {"content": {NDJSON: {"example": _EXAMPLE}}}}


class _Handover(Response):
    """Lets the hot path answer."""

    def __init__(self, parts: ApiParts, topic: str) -> None:
        super().__init__()
        self._publish, self._topic = NativePublish(parts), topic

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._publish(scope, receive, send, self._topic)


@router.post("/api/topics/{name:path}/events", status_code=202, response_class=_Handover, openapi_extra=_POST)
async def publish(name: str, request: Request, parts: PartsOf) -> Response:
    """Publish one event or many: a CloudEvent (binary, structured, batch), plain JSON, or lines of JSON. All or nothing."""
    return _Handover(parts, name)


@router.get("/api/topics/{name:path}/events", response_class=StreamingResponse, responses=_GET)
async def read_events(
    name: str,
    parts: PartsOf,
    caller: Caller,
    after: str = Query(FIRST, description=f"A cursor, `{FIRST}` or `{LAST}`."),
    limit: int = Query(1000, ge=1, le=10_000),
    wait: float = Query(0, ge=0, le=LONGEST_WAIT, description="Seconds to wait for an event when there is none."),
    payload: AvroForm = AVRO_FORM,
) -> Response:
    """Read the events of a topic in order, whatever subscriptions there are."""
    topic = topic_of(parts, caller, name)
    caller.require(Right.READ, topic.name)
    start = await _start(parts, topic.number, after)
    page = await _first_page(parts, topic.number, start, min(limit, STEP.entries), wait)
    return StreamingResponse(_lines(parts, topic.number, page, limit, schemas_for(parts, payload)), media_type=NDJSON)


async def _start(parts: ApiParts, topic: TopicNumber, after: str) -> Marks:
    """Where to begin. The first event that is still there is never expired; any other cursor below it is."""
    marks = await marks_at(parts.events, after)
    removed = await parts.events.removed(topic)
    if after == FIRST:
        return removed
    if any(marks.get(partition, START) < offset for partition, offset in removed.items()):
        raise Expired("events after this cursor were removed after their retention", found=after, expected=FIRST)
    return marks


async def _first_page(parts: ApiParts, topic: TopicNumber, after: Marks, entries: int, wait: float) -> Page:
    deadline = parts.clock.monotonic() + wait
    limit = Limit(entries=entries, bytes=STEP.bytes)
    while not (page := await parts.events.read(topic, after, limit)).entries:
        left = deadline - parts.clock.monotonic()
        if left <= 0 or parts.waiting.over:
            break
        after = page.reached
        await parts.waiting.wait(left)
    return page


async def _lines(parts: ApiParts, topic: TopicNumber, page: Page, limit: int, schemas: SchemaBook) -> AsyncIterator[bytes]:
    left = limit
    while page.entries:
        yield b"".join([_line(entry, schemas) for entry in page.entries])
        left -= len(page.entries)
        if left <= 0:
            break
        await asyncio.sleep(0)
        page = await parts.events.read(topic, page.reached, Limit(entries=min(left, STEP.entries), bytes=STEP.bytes))
    yield b'{"cursor":"%b"}\n' % cursor_of(page.reached).encode()


def _line(entry: Entry, schemas: SchemaBook) -> bytes:
    event = structured_line(event_from(*json_stored(entry.head, entry.data, schemas)))
    return b'{"cursor":"%b","time":"%b","event":%b}\n' % (cursor_at(entry.position).encode(), rfc3339(entry.at).encode(), event)
