"""Topics: `GET /api/topics`, `PUT|PATCH|GET|DELETE /api/topics/{name}`."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Query, Response
from pydantic import Field

from tidings.access.principals import Principal, Right
from tidings.doors import registry_changes
from tidings.doors.api_parts import ApiParts
from tidings.doors.native.bodies.avro import AvroBody, SchemaVersionView, avro_from, avro_view, version_view
from tidings.doors.native.bodies.feed import FeedBody, feed_from, feed_view
from tidings.doors.native.bodies.wire import Duration, Labels, Size, Wire, name_in_path, same_name
from tidings.doors.native.callers import Caller, PartsOf, sees_topic, topic_of
from tidings.doors.native.door_documents import refuse_derived
from tidings.doors.native.patch.merge_patch import Patch, patched, shown
from tidings.doors.requests.merge_patch import unless_changed
from tidings.registry.model import Name, Topic
from tidings.registry.port import DocumentEnd
from tidings.registry.rules import parse_name

router = APIRouter(tags=["topics"])

WHOLE = frozenset({"schema", "avro.schema"})
"""Members that a patch replaces."""


class TopicBody(Wire):
    """A topic. What is left out is the hub's default."""

    name: str | None = Field(default=None, description="May be left out; where it is given it must be that of the address.")
    description: str = ""
    retention: Duration | None = Field(
        default=None, description='How long events are kept at least: seconds, or "7d". They are removed in the hour after it.'
    )
    max_event_bytes: Size | None = Field(default=None, description='Largest event: bytes, or "64KiB".')
    duplicates: str | None = Field(
        None, description='Duplicate check by source and id: "off", a window such as "24h", "forever".'
    )
    key_attribute: str = Field(default="subject", description="Events with the same value keep their order.")
    json_schema: dict[str, Any] | None = Field(
        None, alias="schema", description="A JSON Schema that the data of events must satisfy."
    )
    avro: AvroBody | None = Field(
        default=None, description="Payloads are Avro, written by this schema. Not together with `schema`."
    )
    labels: Labels = Field(default_factory=dict)
    feed: FeedBody = Field(default_factory=FeedBody, description="How the topic is read as a feed.")


class TopicView(TopicBody):
    """A topic as it is."""

    name: str


class SchemaVersions(Wire):
    """Versions of an Avro schema."""

    versions: list[SchemaVersionView]


class TopicList(Wire):
    """Topics by name."""

    topics: list[TopicView]


def topic_from(name: Name, body: TopicBody) -> Topic:
    """The topic that a body describes."""
    return Topic(
        name=name,
        description=body.description,
        retention=body.retention,
        max_event_bytes=body.max_event_bytes,
        duplicates=body.duplicates,
        key_attribute=body.key_attribute,
        schema=body.json_schema,
        avro=None if body.avro is None else avro_from(body.avro),
        labels=body.labels,
        feed=feed_from(body.feed),
    )


def view_of(topic: Topic) -> TopicView:
    """The topic as it is shown."""
    return TopicView(
        name=str(topic.name),
        description=topic.description,
        retention=topic.retention,
        max_event_bytes=topic.max_event_bytes,
        duplicates=topic.duplicates,
        key_attribute=topic.key_attribute,
        schema=None if topic.schema is None else dict(topic.schema),
        avro=None if topic.avro is None else avro_view(topic.avro),
        labels=dict(topic.labels),
        feed=feed_view(topic.feed),
    )


@router.get("/api/topics")
async def list_topics(parts: PartsOf, caller: Caller) -> TopicList:
    """All topics that the caller may do anything with."""
    found = sorted(parts.snapshot.topics.items())
    return TopicList(topics=[view_of(topic) for name, topic in found if sees_topic(caller, name)])


@router.put("/api/topics/{name:path}", responses={201: {"model": TopicView, "description": "Created."}})
async def put_topic(name: str, body: TopicBody, parts: PartsOf, caller: Caller, response: Response) -> TopicView:
    """Create or replace a topic: what is left out is the default. Replacing keeps its events; PATCH changes single members."""
    caller.require(Right.ADMIN)
    wanted = topic_from(same_name(name, body.name), body)
    response.status_code = HTTPStatus.OK if wanted.name in parts.snapshot.topics else HTTPStatus.CREATED
    return await _stored(parts, caller, wanted)


@router.patch("/api/topics/{name:path}", responses={201: {"model": TopicView, "description": "Created."}})
async def patch_topic(name: str, patch: Patch, parts: PartsOf, caller: Caller, response: Response) -> TopicView:
    """Change what the body names, and nothing else, or create a topic with it. `feed` and `labels` are merged."""
    caller.require(Right.ADMIN)
    full = parse_name(name)
    standing = parts.snapshot.topics.get(full)
    body = patched(TopicBody, {} if standing is None else shown(view_of(standing), TopicBody), patch, WHOLE)
    wanted = topic_from(same_name(name, body.name), body)
    response.status_code = HTTPStatus.CREATED if standing is None else HTTPStatus.OK
    return await _stored(parts, caller, wanted, unless_changed(lambda now: now.topics.get(full), standing))


async def _stored(
    parts: ApiParts, caller: Principal, wanted: Topic, guard: registry_changes.Guard = registry_changes.nothing_against
) -> TopicView:
    refuse_derived(parts.doors, [wanted])
    (stored,) = await registry_changes.put(parts, [wanted], caller.name, guard)
    assert isinstance(stored, Topic)
    return view_of(stored)


@router.get("/api/topics/{name:path}/schema-versions")
async def list_schema_versions(name: str, parts: PartsOf, caller: Caller) -> SchemaVersions:
    """The versions of the topic's Avro schema, oldest first; none where its payloads are not Avro."""
    topic = topic_of(parts, caller, name)
    return SchemaVersions(versions=[version_view(one) for one in topic.avro.versions] if topic.avro else [])


@router.get("/api/topics/{name:path}")
async def get_topic(name: str, parts: PartsOf, caller: Caller) -> TopicView:
    """One topic."""
    return view_of(topic_of(parts, caller, name))


@router.delete("/api/topics/{name:path}", status_code=HTTPStatus.NO_CONTENT)
async def delete_topic(
    name: str,
    parts: PartsOf,
    caller: Caller,
    force: bool = Query(False, description="Also when subscriptions ask for it; they keep their other topics, or end."),
) -> None:
    """End a topic. Its events stay in the log until their retention has passed, but nobody can ask for them any more."""
    caller.require(Right.ADMIN)
    ending = DocumentEnd(Topic, name_in_path(name, "topic"), force)
    refuse_derived(parts.doors, (), [ending])
    await registry_changes.end(parts, ending, caller.name)
