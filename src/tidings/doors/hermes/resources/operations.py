"""Below a subscription: figures, health, undelivered messages, traces, retransmission (HER-20, HER-21, HER-136 to HER-148)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, tzinfo
from http import HTTPStatus
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from tidings.clock import SECOND
from tidings.delivery.push.reader import LaneView
from tidings.doors.deliveries.commands import command
from tidings.doors.deliveries.newest_first import newest
from tidings.doors.deliveries.statuses import EventStatuses
from tidings.doors.explanation import ExplainQuestion, verdicts
from tidings.doors.hermes.documents import stored
from tidings.doors.hermes.documents.dates import retransmission_start
from tidings.doors.hermes.documents.policies import BATCH
from tidings.doors.hermes.names import PREFIX
from tidings.doors.hermes.refusals import ErrorCode, refused
from tidings.doors.hermes.resources.request import HermesCaller, HermesRequest, body_of, told
from tidings.doors.hermes.views.metrics import DeliveryRates, health_shown, metrics_shown
from tidings.doors.hermes.views.traces import FILTERED, TracedSubscription, delivered, published, undelivered
from tidings.events.stored import event_from
from tidings.log.commands import Rewind
from tidings.log.port import Between, Entry
from tidings.log.position import START, Marks
from tidings.registry.model import LaneFill, Subscription

router = APIRouter(tags=["operations"])

LISTED = 100
LOOKED_AT = 20_000
"""Messages of a topic that are looked through for one id, newest first."""

MINUTE = 60.0
_S = "/topics/{topic}/subscriptions/{name}"
_DATES = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"oneOf": [{"type": "string"}, {"type": "object"}]}}},
    }
}


@router.get(f"{_S}/metrics")
async def get_metrics(topic: str, name: str, request: Request, asked: HermesCaller) -> Response:
    """Counts since the subscription exists, and rates over the last minute."""
    subscription = stored.core_subscription_of(asked.snapshot, topic, name)
    view = await _view(asked, subscription)
    document = stored.subscription(asked.snapshot, topic, name)
    batches = await asyncio.to_thread(_batch_rate, asked, view) if document["deliveryType"] == BATCH else 0.0
    return told(metrics_shown(view, rates_of(request).of(view), await _lag(asked, view), batches))


def rates_of(request: Request) -> DeliveryRates:
    """The rates of this door, which are sampled from the first question on."""
    rates: DeliveryRates = request.app.state.rates
    rates.start()
    return rates


async def _lag(asked: HermesRequest, view: LaneView) -> int:
    """Messages of the lane that are not final."""
    backlogs = await asked.parts.lane_index.backlogs({view.lane: view.low_water})
    return backlogs[view.lane].entries


def _batch_rate(asked: HermesRequest, view: LaneView) -> float:
    """Batches a second in the last minute: the messages of one were final at the same time."""
    since = asked.parts.clock.now() - MINUTE * SECOND
    facts = asked.parts.delivery.deliveries(view.lane, None, 1000)
    return len({fact.at for fact in facts if fact.at >= since}) / MINUTE


@router.get(f"{_S}/metrics/persistent")
async def get_persistent(topic: str, name: str, asked: HermesCaller) -> Response:
    """What is counted since the subscription exists."""
    view = await _view(asked, stored.core_subscription_of(asked.snapshot, topic, name))
    return told({"delivered": view.delivered, "discarded": view.counts.dead, "volume": view.counts.bytes})


async def _view(asked: HermesRequest, subscription: Subscription) -> LaneView:
    return await asyncio.to_thread(asked.parts.delivery.lane, subscription.lane)


@router.get(f"{_S}/health")
async def get_health(topic: str, name: str, request: Request, asked: HermesCaller) -> Response:
    """Whether the subscription keeps up, and what is wrong with its endpoint."""
    subscription = stored.core_subscription_of(asked.snapshot, topic, name)
    document = stored.subscription(asked.snapshot, topic, name)
    view = await _view(asked, subscription)
    return told(
        health_shown(
            rates_of(request).of(view),
            await _lag(asked, view),
            await _topic_rate(asked, topic),
            suspended=view.state == "suspended",
            retries_client_errors=document["subscriptionPolicy"]["retryClientErrors"],
        )
    )


async def _topic_rate(asked: HermesRequest, topic: str) -> float:
    """Messages published a second in the last minute, as far as they are looked through."""
    now, count = asked.parts.clock.now(), 0
    async for entry in _newest(asked, topic):
        if entry.at < now - MINUTE * SECOND:
            return count / MINUTE
        count += 1
        if count == LOOKED_AT:
            return count / max((now - entry.at) / SECOND, 1.0)
    return count / MINUTE


async def _newest(asked: HermesRequest, topic: str) -> AsyncIterator[Entry]:
    """The newest messages of a topic, newest first, at most so many as are looked through."""
    events, count = asked.parts.events, 0
    everything = Between({}, await events.ends())
    async for page in newest(events, stored.core_topic_of(asked.snapshot, topic).number, everything):
        for entry in page[: LOOKED_AT - count]:
            yield entry
        count += len(page)
        if count >= LOOKED_AT:
            return


@router.get(f"{_S}/undelivered/last")
async def last_undelivered(topic: str, name: str, asked: HermesCaller) -> Response:
    """The newest discarded message, with its body."""
    subscription = stored.core_subscription_of(asked.snapshot, topic, name)
    found = await asyncio.to_thread(asked.parts.dead_letters.last_dead_letters, subscription.lane, 1)
    if not found:
        raise refused(ErrorCode.OTHER, "HTTP 404 Not Found", HTTPStatus.NOT_FOUND)
    return told(undelivered(_who(asked, topic, name), found[0], with_message=True))


@router.get(f"{_S}/undelivered")
async def list_undelivered(topic: str, name: str, asked: HermesCaller) -> Response:
    """The last hundred discarded messages, newest first."""
    subscription = stored.core_subscription_of(asked.snapshot, topic, name)
    found = await asyncio.to_thread(asked.parts.dead_letters.last_dead_letters, subscription.lane, LISTED)
    who = _who(asked, topic, name)
    return told([undelivered(who, letter, with_message=False) for letter in found])


def _who(asked: HermesRequest, topic: str, name: str) -> TracedSubscription:
    return TracedSubscription(topic, name, asked.parts.settings.hermes.cluster)


@router.get(f"{_S}/events/{{message}}/trace")
async def get_trace(topic: str, name: str, message: str, asked: HermesCaller) -> Response:
    """What became of a message: when it was published, and each attempt that is kept."""
    subscription = stored.core_subscription_of(asked.snapshot, topic, name)
    return told(await _trace(asked, subscription, _who(asked, topic, name), message))


async def _trace(
    asked: HermesRequest, subscription: Subscription, who: TracedSubscription, message: str
) -> list[dict[str, Any]]:
    entry = await _entry_of(asked, who.topic, message)
    if entry is None:
        return []
    lines = published(who.topic, who.cluster, message, entry.at)
    found = await EventStatuses(asked.parts).of(subscription, entry.position)
    if found is not None:
        return [*lines, *delivered(who, message, found.status)]
    if await _is_filtered(asked, subscription, entry):
        return [*lines, who.entry(message, entry.at, FILTERED, entry.position)]
    return lines


async def _entry_of(asked: HermesRequest, topic: str, message: str) -> Entry | None:
    """The message of this id, among the newest of its topic."""
    sought = message.encode()
    async for entry in _newest(asked, topic):
        # The head is read only where the id stands in it.
        if sought in entry.head and event_from(entry.head, None).id == message:
            return entry
    return None


async def _is_filtered(asked: HermesRequest, subscription: Subscription, entry: Entry) -> bool:
    """Whether routing has come to the message, and the subscription's filters kept it out."""
    routed = await asked.parts.lanes.routed()
    if routed.get(entry.position.partition, START) < entry.position.offset or entry.at < subscription.created:
        return False
    topic = stored.core_topic_of(asked.snapshot, subscription.name.namespace.removeprefix(PREFIX))
    question = ExplainQuestion(topic, event_from(entry.head, entry.data), entry)
    return not all([verdict.gets async for verdict in verdicts(asked.parts, question, [subscription])])


@router.put(f"{_S}/retransmission", openapi_extra=_DATES)
async def retransmit(topic: str, name: str, request: Request, asked: HermesCaller, dryRun: bool = Query(False)) -> Response:
    """Send again what was published since a time; `dryRun` only says from where."""
    asked.require_changing(topic)
    subscription = stored.core_subscription_of(asked.snapshot, topic, name)
    body = await body_of(request)
    start = retransmission_start(body, asked.parts.clock.now(), _zone(asked))
    marks = await asked.parts.events.before(start)
    if not dryRun and start >= subscription.created:
        await command(asked.parts, subscription.lane, asked.caller.name, Rewind(marks))
    elif not dryRun:
        # Its lane never had what was published before: it is filled anew, by the filters of now.
        async with asked.changing:
            subscription = stored.core_subscription_of(asked.snapshot, topic, name)
            await asked.change([msgspec.structs.replace(subscription, fill=LaneFill.beyond(marks))])
    return told({asked.parts.settings.hermes.cluster: _places(asked, topic, marks)})


def _zone(asked: HermesRequest) -> tzinfo:
    named = asked.parts.settings.hermes.time_zone
    return UTC if named == "UTC" else ZoneInfo(named)


def _places(asked: HermesRequest, topic: str, marks: Marks) -> Sequence[dict[str, Any]]:
    """The offset of the first message that is sent again, in each partition."""
    flat = asked.parts.settings.hermes.retransmission_shape == "flat"
    shown: Any = topic if flat else {"value": topic}
    return [{"topic": shown, "partition": partition, "offset": offset + 1} for partition, offset in sorted(marks.items())]
