"""`/topics/{topicName}/subscriptions`: subscriptions and their state (HER-15 to HER-19)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from tidings.clock import SECOND
from tidings.doors import handshakes
from tidings.doors.deliveries.commands import command
from tidings.doors.hermes.documents import stored
from tidings.doors.hermes.documents.fields import merged
from tidings.doors.hermes.documents.filters import check_filters
from tidings.doors.hermes.documents.subscriptions import SubscriptionRequest, core_subscription, subscription_request
from tidings.doors.hermes.names import provider_name, subscription_name, subscription_paper
from tidings.doors.hermes.refusals import ErrorCode, invalid, no_provider, refused
from tidings.doors.hermes.resources.request import (
    HermesCaller,
    HermesRequest,
    body_of,
    body_schema,
    document_of,
    done,
    json_of,
    told,
)
from tidings.doors.hermes.resources.secret_headers import with_opened_headers, with_sealed_headers
from tidings.log.commands import Act, Activate, Suspend
from tidings.registry.model import Paper, Subscription
from tidings.registry.port import Document, DocumentEnd

router = APIRouter(tags=["subscriptions"])

ACTIVE, SUSPENDED, PENDING = "ACTIVE", "SUSPENDED", "PENDING"
_ACTS: Mapping[str, Act] = {ACTIVE: Activate(), SUSPENDED: Suspend()}
_BODY = body_schema("topicName", "name", "description", "endpoint", owner={"type": "object"})
_STATE_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"enum": [ACTIVE, SUSPENDED, PENDING]}}},
    }
}


@router.get("/topics/{topic}/subscriptions")
async def list_subscriptions(topic: str, asked: HermesCaller, tracked: bool = False) -> Response:
    """The names of a topic's subscriptions; `tracked`: only where tracking is on."""
    stored.topic(asked.snapshot, topic)
    found = stored.subscriptions(asked.snapshot, topic)
    return told([one["name"] for one in found if not tracked or one["trackingEnabled"]])


@router.post("/topics/{topic}/subscriptions", status_code=HTTPStatus.CREATED, openapi_extra=_BODY, response_class=Response)
async def create_subscription(topic: str, request: Request, asked: HermesCaller) -> Response:
    """Create a subscription. It gets every message whose publishing begins after this is answered."""
    asked.require_changing(topic)
    raw = await document_of(request)
    stored.topic(asked.snapshot, topic)
    wanted = subscription_request(raw)
    name = wanted.document["name"]
    if wanted.document["topicName"] != topic:
        raise invalid([("Subscription.topicName", f"must be the topic of the path, {topic}")])
    async with asked.changing:
        if stored.has_paper(asked.snapshot, subscription_paper(topic, name)):
            raise refused(ErrorCode.SUBSCRIPTION_ALREADY_EXISTS, f"Subscription {name} for topic {topic} already exists")
        now = asked.parts.clock.now() / SECOND
        warnings = await _put(asked, wanted, {"createdAt": now, "modifiedAt": now})
    return done(HTTPStatus.CREATED, [*wanted.warnings, *warnings])


@router.get("/topics/{topic}/subscriptions/{name}")
async def get_subscription(topic: str, name: str, asked: HermesCaller) -> Response:
    """One subscription, its secrets masked."""
    document = with_opened_headers(asked.parts.box, stored.subscription(asked.snapshot, topic, name))
    created = stored.core_subscription_of(asked.snapshot, topic, name).created / SECOND
    return told({**document, "state": await state_of(asked, topic, name), "createdAt": created})


@router.put("/topics/{topic}/subscriptions/{name}", openapi_extra=body_schema(), response_class=Response)
async def update_subscription(topic: str, name: str, request: Request, asked: HermesCaller) -> Response:
    """Change what the body names: objects merge level by level, lists are replaced (HER-18)."""
    asked.require_changing(topic)
    patch = await document_of(request)
    async with asked.changing:
        standing = with_opened_headers(asked.parts.box, stored.subscription(asked.snapshot, topic, name))
        wanted = subscription_request(_over(standing, patch))
        if (wanted.document["topicName"], wanted.document["name"]) != (topic, name):
            raise invalid([("Subscription.name", "a subscription keeps its name and its topic")])
        times = {"createdAt": standing["createdAt"], "modifiedAt": asked.parts.clock.now() / SECOND}
        warnings = await _put(asked, wanted, times)
    state = patch.get("state")
    if state in _ACTS:
        await _order(asked, topic, name, _ACTS[state])
    return done(HTTPStatus.OK, [*wanted.warnings, *warnings])


def _over(standing: Mapping[str, Any], patch: Any) -> Any:
    """The patch over what stands. The tracking mode wins over the older boolean unless only that one is given."""
    found = merged(dict(standing), patch)
    if isinstance(patch, dict) and "trackingEnabled" in patch and "trackingMode" not in patch:
        found["trackingMode"] = "trackingAll" if patch["trackingEnabled"] else "trackingOff"
    if isinstance(patch, dict) and patch.get("deliveryType", standing["deliveryType"]) != standing["deliveryType"]:
        found["subscriptionPolicy"] = patch.get("subscriptionPolicy")
    return found


@router.delete("/topics/{topic}/subscriptions/{name}", response_class=Response)
async def delete_subscription(topic: str, name: str, asked: HermesCaller) -> Response:
    """End a subscription. What is on its way finishes."""
    asked.require_changing(topic)
    async with asked.changing:
        stored.subscription(asked.snapshot, topic, name)
        core, paper = subscription_name(topic, name), subscription_paper(topic, name)
        await asked.change([], [DocumentEnd(Subscription, core), DocumentEnd(Paper, paper)])
    return done()


@router.get("/topics/{topic}/subscriptions/{name}/state")
async def get_state(topic: str, name: str, asked: HermesCaller) -> Response:
    """Whether messages are sent."""
    stored.subscription(asked.snapshot, topic, name)
    return told(await state_of(asked, topic, name))


@router.put("/topics/{topic}/subscriptions/{name}/state", openapi_extra=_STATE_BODY, response_class=Response)
@router.post("/topics/{topic}/subscriptions/{name}/state", openapi_extra=_STATE_BODY, response_class=Response)
async def set_state(topic: str, name: str, request: Request, asked: HermesCaller) -> Response:
    """Suspend a subscription, or let it go on where it stopped (HER-19)."""
    asked.require_changing(topic)
    stored.subscription(asked.snapshot, topic, name)
    state = json_of(await body_of(request))
    if state not in (*_ACTS, PENDING):
        raise refused(ErrorCode.FORMAT_ERROR, f'the state must be "{ACTIVE}" or "{SUSPENDED}", in double quotes')
    if state != PENDING:
        await _order(asked, topic, name, _ACTS[state])
    return done()


async def _order(asked: HermesRequest, topic: str, name: str, act: Act) -> None:
    subscription = stored.core_subscription_of(asked.snapshot, topic, name)
    await command(asked.parts, subscription.lane, asked.caller.name, act)


async def state_of(asked: HermesRequest, topic: str, name: str) -> str:
    """The state as delivery knows it."""
    lane = stored.core_subscription_of(asked.snapshot, topic, name).lane
    view = await asyncio.to_thread(asked.parts.delivery.lane, lane)
    return SUSPENDED if view.state == "suspended" else ACTIVE


async def _put(asked: HermesRequest, wanted: SubscriptionRequest, times: Mapping[str, float]) -> list[str]:
    """Check what a subscription refers to, and store it; what will keep its deliveries from arriving all the same."""
    document, snapshot = wanted.document, asked.snapshot
    topic = stored.topic(snapshot, document["topicName"])
    policy = document.get("oAuthPolicy")
    if policy is not None and provider_name(policy["providerName"]) not in snapshot.providers:
        raise no_provider(policy["providerName"])
    await asyncio.to_thread(_check_filters, asked, document["filters"], topic["contentType"])
    standing = snapshot.subscriptions.get(subscription_name(document["topicName"], document["name"]))
    core = core_subscription(wanted, standing, stored.core_topic_of(snapshot, document["topicName"]))
    kept = with_sealed_headers(asked.parts.box, document)
    paper = Paper(name=subscription_paper(document["topicName"], document["name"]), text={**kept, **times})
    documents: list[Document] = [paper, core]
    await asked.change(documents)
    return handshakes.warnings_about(asked.parts, core)


def _check_filters(asked: HermesRequest, chain: list[dict[str, Any]], content: str) -> None:
    # Imported late: the filters need numpy, which nobody who only publishes should wait for.
    from tidings import filters

    regex = asked.parts.regex
    check_filters(chain, content, lambda dialect, text: filters.parse(dialect, text, regex))
