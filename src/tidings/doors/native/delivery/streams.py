"""`GET /api/subscriptions/{name}/stream`: the events of a subscription with delivery kind sse, as they come (server-sent events).

Each frame has the delivery id and the event as structured JSON. `Last-Event-ID` goes on after that event.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tidings.delivery.sse.socket_protocol import StreamEntry
from tidings.doors.api_parts import ApiParts
from tidings.doors.entitlement import require_entitled
from tidings.doors.native.avro_form import AVRO_FORM, AvroForm, schemas_for
from tidings.doors.native.callers import Caller, PartsOf, subscription_of
from tidings.doors.sse.lane_stream import terminate
from tidings.doors.sse.message_ids import last_seen
from tidings.doors.sse.response import W3C, StreamLimits, StreamRequest, Style, answer_stream
from tidings.errors import Conflict
from tidings.events.avro.payloads import NO_SCHEMAS, SchemaBook, json_stored
from tidings.events.json_lines import compact_event
from tidings.registry.model import Stream, Subscription

router = APIRouter(tags=["streams"])

KEEP_ALIVE = 15.0

_EXAMPLE = 'id: 6f1c…\ndata: {"specversion":"1.0","id":"1","source":"/shop","type":"order.created","data":{"total":5}}\n\n'
_GET: dict[int | str, dict[str, Any]] = {200: {"description": "Events as they come.", "content": {W3C: {"example": _EXAMPLE}}}}


class _Streamed(Response):
    """An answer that goes on until somebody ends it."""

    media_type = W3C

    def __init__(self, parts: ApiParts, asked: StreamRequest, style: Style) -> None:
        super().__init__()
        self._parts, self._asked, self._style = parts, asked, style

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await answer_stream(self._parts, self._asked, self._style, scope, receive, send)


def frame(entry: StreamEntry, schemas: SchemaBook = NO_SCHEMAS) -> bytes:
    """One event as a frame, without insignificant white space (FEED-26)."""
    return b"id: %b\ndata: %b\n\n" % (entry.id.encode(), compact_event(*json_stored(entry.head, entry.data, schemas)))


def _streamed(subscription: Subscription) -> Subscription:
    if not isinstance(subscription.delivery, Stream):
        raise Conflict("this subscription is not streamed", expected="a subscription with delivery.kind sse")
    return subscription


@router.get("/api/subscriptions/{name:path}/stream", status_code=200, response_class=_Streamed, responses=_GET)
async def get_stream(
    name: str,
    parts: PartsOf,
    caller: Caller,
    limit: int = Query(0, ge=0, description="End after so many events; 0: never."),
    last_event_id: Annotated[str, Header(description="Go on after this event: the frame's id, or the event's own.")] = "",
    payload: AvroForm = AVRO_FORM,
) -> Response:
    """Read a subscription's events as they come. A second stream ends the first; what was not read waits for the next."""
    subscription = _streamed(subscription_of(parts, caller, name))
    require_entitled(parts, subscription)
    asked = StreamRequest(subscription.lane, await last_seen(parts, subscription, last_event_id), StreamLimits(number=limit))
    framed = partial(frame, schemas=schemas_for(parts, payload))
    style = Style(W3C, framed, keep_alive=parts.settings.sse.keep_alive or KEEP_ALIVE, at_once=True)
    return _Streamed(parts, asked, style)


@router.delete("/api/subscriptions/{name:path}/stream", status_code=204)
async def end_stream(name: str, parts: PartsOf, caller: Caller) -> None:
    """End a subscription's stream, if one is open."""
    await terminate(parts, _streamed(subscription_of(parts, caller, name)).lane)
