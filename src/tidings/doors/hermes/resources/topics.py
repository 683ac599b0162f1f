"""`/topics`: topics and their schemas (HER-11 to HER-13)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from tidings.clock import SECOND
from tidings.doors.hermes.documents import stored
from tidings.doors.hermes.documents.fields import merged
from tidings.doors.hermes.documents.subscriptions import with_schemas
from tidings.doors.hermes.documents.topics import core_exposure, core_topic, schema_text, topic_document
from tidings.doors.hermes.names import AVRO, PREFIX, subscription_name, subscription_paper, topic_name, topic_paper, topic_path
from tidings.doors.hermes.refusals import ErrorCode, refused
from tidings.doors.hermes.resources.request import HermesCaller, HermesRequest, body_of, body_schema, document_of, done, told
from tidings.registry.model import Paper, Snapshot, Subscription, Topic
from tidings.registry.port import Document, DocumentEnd
from tidings.registry.rules.avro import settled_avro

router = APIRouter(tags=["topics"])

SCHEMA = "schema"
"""Where a topic's document keeps the text of its schema."""

_BODY = body_schema(
    "name",
    "description",
    "contentType",
    owner={"type": "object"},
    retentionTime={"type": "object"},
    contentType={"enum": ["JSON", "AVRO"]},
)
_SCHEMA_BODY = {"requestBody": {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}}}


@router.get("/topics")
async def list_topics(asked: HermesCaller, groupName: str = "", tracked: bool = False) -> Response:
    """The names of all topics, or those of a group; `tracked`: only where tracking is on."""
    found = stored.topics(asked.snapshot, groupName)
    return told([one["name"] for one in found if not tracked or one["trackingEnabled"]])


@router.post("/topics", status_code=HTTPStatus.CREATED, openapi_extra=_BODY, response_class=Response)
async def create_topic(request: Request, asked: HermesCaller) -> Response:
    """Create a topic, with its schema where it has one."""
    asked.require_changing()
    raw = await document_of(request)
    document, schema = topic_document(raw), schema_text(raw)
    path = topic_path(document["name"])
    assert path is not None
    async with asked.changing:
        stored.group(asked.snapshot, path.group)
        if stored.has_paper(asked.snapshot, topic_paper(document["name"])):
            raise refused(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic {path} already exists")
        now = asked.parts.clock.now() / SECOND
        await asked.change(_documents({**document, "createdAt": now, "modifiedAt": now}, schema, asked.snapshot))
    return done(HTTPStatus.CREATED)


@router.get("/topics/{topic}")
async def get_topic(topic: str, asked: HermesCaller) -> Response:
    """One topic and its schema."""
    return told(stored.topic(asked.snapshot, topic))


@router.put("/topics/{topic}", openapi_extra=body_schema(), response_class=Response)
async def update_topic(topic: str, request: Request, asked: HermesCaller) -> Response:
    """Change what the body names of a topic. Its name and its content type stay."""
    asked.require_changing()
    patch = await document_of(request)
    async with asked.changing:
        standing = stored.topic(asked.snapshot, topic)
        wanted = merged(standing, patch)
        document = topic_document(wanted)
        if document["name"] != topic or document["contentType"] != standing["contentType"]:
            raise refused(ErrorCode.VALIDATION_ERROR, "Topic.name and Topic.contentType cannot be changed")
        await asked.change(_changed(asked, standing, document, schema_text(wanted)))
    return done()


@router.delete("/topics/{topic}", response_class=Response)
async def delete_topic(topic: str, asked: HermesCaller) -> Response:
    """Delete a topic, with the subscriptions that go with it (HER-12)."""
    asked.require_changing()
    async with asked.changing:
        stored.topic(asked.snapshot, topic)
        if not asked.parts.settings.hermes.topic_removal:
            told_why = "Topics cannot be removed here; the setting hermes.topic_removal allows it"
            raise refused(ErrorCode.OPERATION_DISABLED, told_why)
        below = stored.subscriptions(asked.snapshot, topic)
        if not all(one["autoDeleteWithTopicEnabled"] for one in below):
            raise refused(ErrorCode.TOPIC_NOT_EMPTY, f"Topic {topic} is not empty")
        await asked.change([], _endings(topic, [one["name"] for one in below]))
    return done()


def _endings(topic: str, subscriptions: Sequence[str]) -> list[DocumentEnd]:
    endings = [DocumentEnd(Topic, topic_name(topic)), DocumentEnd(Paper, topic_paper(topic))]
    for name in subscriptions:
        endings.append(DocumentEnd(Subscription, subscription_name(topic, name)))
        endings.append(DocumentEnd(Paper, subscription_paper(topic, name)))
    return endings


def _documents(document: dict[str, Any], schema: str | None, before: Snapshot) -> list[Document]:
    """A topic's document and what it comes to; where its Avro schemas grow, its subscriptions learn of the new one."""
    kept = {**document, SCHEMA: schema} if schema is not None else document
    topic = core_topic(document, schema)
    paper = Paper(name=topic_paper(document["name"]), text=kept)
    return [paper, topic, core_exposure(document), *_readers(topic, before)]


def _readers(topic: Topic, before: Snapshot) -> Iterator[Document]:
    standing = before.topics.get(topic.name)
    if standing is None or topic.avro is None:
        return
    after = msgspec.structs.replace(topic, avro=settled_avro(topic, standing))
    for name, subscription in before.subscriptions.items():
        if name.namespace == f"{PREFIX}{topic.name.name}":
            yield with_schemas(subscription, after)


def _changed(asked: HermesRequest, standing: Mapping[str, Any], document: dict[str, Any], schema: str | None) -> list[Document]:
    times = {"createdAt": standing["createdAt"], "modifiedAt": asked.parts.clock.now() / SECOND}
    return _documents({**document, **times}, schema, asked.snapshot)


@router.get("/topics/{topic}/schema", responses={204: {"description": "The topic has none."}}, response_class=Response)
async def get_schema(topic: str, asked: HermesCaller) -> Response:
    """The text of a topic's schema."""
    text = stored.topic(asked.snapshot, topic).get(SCHEMA)
    if text is None:
        return done(HTTPStatus.NO_CONTENT)
    return Response(text, media_type="application/json")


@router.post("/topics/{topic}/schema", status_code=HTTPStatus.CREATED, openapi_extra=_SCHEMA_BODY, response_class=Response)
async def put_schema(
    topic: str, request: Request, asked: HermesCaller, validate: bool = Query(True, description="It always is.")
) -> Response:
    """Give a topic another schema."""
    asked.require_changing()
    text = (await body_of(request)).decode("utf-8", "replace")
    async with asked.changing:
        standing = stored.topic(asked.snapshot, topic)
        document = {name: value for name, value in standing.items() if name != SCHEMA}
        await asked.change(_changed(asked, standing, document, text))
    return done(HTTPStatus.CREATED)


@router.delete("/topics/{topic}/schema", response_class=Response)
async def delete_schema(topic: str, asked: HermesCaller) -> Response:
    """Take the schema from a JSON topic."""
    asked.require_changing()
    async with asked.changing:
        standing = stored.topic(asked.snapshot, topic)
        if standing["contentType"] == AVRO:
            raise refused(ErrorCode.OPERATION_DISABLED, "An Avro topic keeps its schema: messages were written by it")
        document = {name: value for name, value in standing.items() if name != SCHEMA}
        await asked.change(_changed(asked, standing, document, None))
    return done()


@router.get("/topics/{topic}/schema/versions/{version}")
async def get_schema_version(topic: str, version: int, asked: HermesCaller) -> Response:
    """One version of a topic's schema. A JSON schema has but one."""
    core, text = stored.core_topic_of(asked.snapshot, topic), stored.topic(asked.snapshot, topic).get(SCHEMA)
    if core.avro is not None:
        found = core.avro.version(version)
        text = None if found is None else found.schema
    if text is None or (core.avro is None and version != 1):
        raise refused(ErrorCode.SCHEMA_VERSION_DOES_NOT_EXIST, f"Topic {topic} has no schema version {version}")
    return Response(text, media_type="application/json")
