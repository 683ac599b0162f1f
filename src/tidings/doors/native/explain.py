"""`POST /api/topics/{name}/explain`: who gets this event, who does not, and why."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import Field

from tidings.doors.explanation import ExplainQuestion, RouteVerdict, stored, verdicts
from tidings.doors.native.bodies.wire import Wire
from tidings.doors.native.callers import Caller, PartsOf, owns, subscription_of, topic_of
from tidings.doors.native.filters import Sent, event_of
from tidings.errors import Malformed
from tidings.events.model import Event
from tidings.ingest.avro_payloads import AdmittedAvro
from tidings.log.cursor import position_of
from tidings.registry.model import Topic

router = APIRouter(tags=["filters"])


class ExplainBody(Wire):
    """A published event (cursor), or one that could be (event, or only its data); all subscriptions, or one."""

    cursor: str | None = Field(default=None, description="Of a published event, as publishing or reading gave it.")
    event: dict[str, Any] | None = None
    data: Any = None
    subscription: str | None = None


class VerdictView(Wire):
    """Whether a subscription gets the event, and why."""

    subscription: str
    gets: bool
    why: str
    because: list[Any] | None = None
    tree: Any = None


class ExplainView(Wire):
    """The verdicts, for every subscription the caller may see."""

    topic: str
    cursor: str | None = None
    verdicts: list[VerdictView]


@router.post("/api/topics/{name:path}/explain")
async def explain(name: str, body: ExplainBody, sent: Sent, parts: PartsOf, caller: Caller) -> ExplainView:
    """Why an event reaches, or does not reach, subscriptions. A published event is judged by what was in force for it."""
    topic = topic_of(parts, caller, name)
    if (body.cursor is not None) == (body.event is not None or "data" in body.model_fields_set):
        raise Malformed("one event is needed", expected="cursor, event or data")
    cursor = body.cursor
    question = (
        ExplainQuestion(topic, _possible(topic, event_of(body, sent)))
        if cursor is None
        else await stored(parts, topic, position_of(cursor))
    )
    chosen = (
        [subscription_of(parts, caller, body.subscription)]
        if body.subscription is not None
        else [each for each in parts.snapshot.subscriptions.values() if owns(caller, each)]
    )
    return ExplainView(
        topic=str(topic.name),
        cursor=body.cursor,
        verdicts=[_view(verdict) async for verdict in verdicts(parts, question, chosen)],
    )


def _possible(topic: Topic, event: Event) -> Event:
    """The event as it would be stored. Raises InvalidEvent where the topic's Avro schema does not let it in."""
    return event if topic.avro is None else AdmittedAvro(topic.avro).admitted([event], None)[0]


def _view(verdict: RouteVerdict) -> VerdictView:
    told = {} if verdict.explanation is None else verdict.explanation.as_json()
    return VerdictView(
        subscription=str(verdict.subscription.name),
        gets=verdict.gets,
        why=verdict.why,
        because=told.get("because"),
        tree=told.get("tree"),
    )
