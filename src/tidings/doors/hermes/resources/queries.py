"""Questions about many documents, and filters on trial (HER-16, HER-23, HER-24)."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from tidings.delivery.push.reader import LaneView
from tidings.doors.hermes.documents import stored
from tidings.doors.hermes.documents.fields import fields_of
from tidings.doors.hermes.documents.filters import check_filters, read_filters
from tidings.doors.hermes.documents.queries import Found, read_query
from tidings.doors.hermes.names import AVRO, topic_name
from tidings.doors.hermes.refusals import ErrorCode, refused
from tidings.doors.hermes.resources.request import HermesCaller, HermesRequest, body_schema, document_of, told
from tidings.doors.hermes.resources.secret_headers import with_opened_headers
from tidings.errors import Malformed
from tidings.events import json_text
from tidings.events.avro.payloads import AVRO_BINARY, SchemaBook
from tidings.events.avro.schema import compiled
from tidings.events.model import Event
from tidings.log.position import LaneNumber

router = APIRouter(tags=["queries"])

MATCHED, NOT_MATCHED, ERROR = "MATCHED", "NOT_MATCHED", "ERROR"
_QUERY = body_schema(query={"type": "object"})
_TRIAL = body_schema("message", filters={"type": "array", "items": {"type": "object"}})


@router.post("/topics/query", openapi_extra=_QUERY)
async def topic_names(request: Request, asked: HermesCaller) -> Response:
    """The names of the topics that a query finds."""
    return told([one["name"] for one in _chosen(await _query(request), stored.topics(asked.snapshot))])


@router.post("/topics/{topic}/subscriptions/query", openapi_extra=_QUERY)
async def subscription_names(topic: str, request: Request, asked: HermesCaller) -> Response:
    """The names of a topic's subscriptions that a query finds."""
    stored.topic(asked.snapshot, topic)
    return told([one["name"] for one in _chosen(await _query(request), stored.subscriptions(asked.snapshot, topic))])


@router.post("/query/groups", openapi_extra=_QUERY)
async def query_groups(request: Request, asked: HermesCaller) -> Response:
    """The groups that a query finds."""
    return told(list(_chosen(await _query(request), stored.groups(asked.snapshot))))


@router.post("/query/topics", openapi_extra=_QUERY)
async def query_topics(request: Request, asked: HermesCaller) -> Response:
    """The topics that a query finds."""
    return told(list(_chosen(await _query(request), stored.topics(asked.snapshot))))


@router.post("/query/subscriptions", openapi_extra=_QUERY)
async def query_subscriptions(request: Request, asked: HermesCaller) -> Response:
    """The subscriptions that a query finds."""
    return told(list(_chosen(await _query(request), _opened(asked))))


@router.post("/query/subscriptions/metrics", openapi_extra=_QUERY)
async def query_subscription_metrics(request: Request, asked: HermesCaller) -> Response:
    """What the subscriptions that a query finds have counted; queries may ask for these figures too."""
    found = await _query(request)
    views = await asyncio.to_thread(asked.parts.delivery.lanes)
    return told(list(_chosen(found, (_with_counts(asked, one, views) for one in stored.all_subscriptions(asked.snapshot)))))


def _opened(asked: HermesRequest) -> Iterator[Mapping[str, Any]]:
    return (with_opened_headers(asked.parts.box, one) for one in stored.all_subscriptions(asked.snapshot))


def _with_counts(asked: HermesRequest, document: Mapping[str, Any], views: Mapping[LaneNumber, LaneView]) -> dict[str, Any]:
    lane = stored.core_subscription_of(asked.snapshot, document["topicName"], document["name"]).lane
    view = views.get(lane) or LaneView(lane=lane)
    counts = {"delivered": view.delivered, "discarded": view.counts.dead, "volume": view.counts.bytes}
    return {"name": document["name"], "topicName": document["topicName"], "metrics": counts}


async def _query(request: Request) -> Found:
    from tidings.filters.text_patterns import fitting

    return read_query(await document_of(request), fitting)


def _chosen(found: Found, documents: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    return (one for one in documents if found(one))


@router.post("/filters/{topic}", openapi_extra=_TRIAL)
async def try_filters(topic: str, request: Request, asked: HermesCaller) -> Response:
    """Whether a message, in base64, passes a chain of filters. Nothing is stored."""
    content = stored.topic(asked.snapshot, topic)["contentType"]
    fields = fields_of(await document_of(request), "MessageFilters")
    chain = read_filters(fields).filters
    try:
        message = base64.b64decode(fields.text("message", longest=1 << 22), validate=True)
    except (binascii.Error, ValueError) as error:
        raise refused(ErrorCode.FORMAT_ERROR, f"MessageFilters.message is not base64: {error}") from error
    return told(await asyncio.to_thread(_verdict, asked, topic, content, chain, message))


def _verdict(asked: HermesRequest, topic: str, content: str, chain: list[dict[str, Any]], message: bytes) -> dict[str, Any]:
    from tidings import filters

    regex = asked.parts.regex
    check_filters(chain, content, lambda dialect, text: filters.parse(dialect, text, regex))
    parsed = filters.parse("hermes", chain, regex)
    event, book, fault = _message(asked, topic, content, message)
    if fault and content == AVRO:
        return {"status": ERROR, "errorMessage": fault}
    passed = filters.matches(parsed, event, book)
    # As seen: what is not JSON is not matched, and it is told why.
    return {"status": MATCHED if passed else NOT_MATCHED, **({"errorMessage": fault} if fault and not passed else {})}


def _message(asked: HermesRequest, topic: str, content: str, message: bytes) -> tuple[Event, SchemaBook, str]:
    """The message as an event of its topic, and what is wrong with it."""
    attributes = {"specversion": "1.0", "id": "0", "source": "/", "type": topic}
    try:
        avro = asked.snapshot.topics[topic_name(topic)].avro
        if content == AVRO and avro is not None:
            schema = compiled(avro.newest.schema)
            event = Event({**attributes, "datacontenttype": AVRO_BINARY}, message, avro=schema.fingerprint)
            schema.check(message)
            return event, SchemaBook([schema.text]), ""
        event = Event({**attributes, "datacontenttype": "application/json"}, message)
        json_text.parse(message)
    except Malformed as error:
        return event, SchemaBook(), str(error)
    return event, SchemaBook(), ""
