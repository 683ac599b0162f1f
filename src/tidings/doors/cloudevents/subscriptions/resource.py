"""What is answered below `/subscriptions`: list, create, read, replace, delete, a new key, going on (SUB-08, SW-09, WH-26)."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import msgspec

from tidings.access.principals import Principal, Right
from tidings.access.signing_keys import new_key, rotated, shown_once
from tidings.clock import SECOND, Instant
from tidings.config import seconds
from tidings.delivery.push.reader import LaneView
from tidings.delivery.push.request.handshake import NoSupport
from tidings.doors import handshakes, registry_changes
from tidings.doors.advice import advice_on
from tidings.doors.api_parts import ApiParts
from tidings.doors.cloudevents.names import CONFIRM, NAMESPACE, PREFIX, subscription_name
from tidings.doors.cloudevents.subscriptions.configuration import FIRST, NOW
from tidings.doors.cloudevents.subscriptions.document import SubscriptionDocument, document_in
from tidings.doors.cloudevents.subscriptions.faults import our_places
from tidings.doors.cloudevents.subscriptions.request import SubscriptionsReply, SubscriptionsRequest
from tidings.doors.cloudevents.subscriptions.status import status_of
from tidings.doors.cloudevents.subscriptions.translation import paper_from, shown, signing_shown, subscription_from
from tidings.doors.deliveries.commands import command
from tidings.doors.deliveries.start_points import instant_of, marks_at_any
from tidings.errors import Conflict, EventFault, InvalidDocument, Malformed, NotFound, shortened
from tidings.log.commands import Enable
from tidings.registry.model import LaneFill, Name, NamespaceSource, Paper, Push, Snapshot, Source, Subscription, TopicsSource
from tidings.registry.port import DocumentEnd
from tidings.registry.rules.callback_addresses import STRICT

GRACE, LONGEST_GRACE = 86400.0, 7 * 86400.0


async def listed(asked: SubscriptionsRequest) -> SubscriptionsReply:
    """The caller's subscriptions, as a bare array."""
    snapshot = asked.parts.snapshot
    ours = [each for name, each in sorted(snapshot.subscriptions.items()) if name.namespace == NAMESPACE]
    return SubscriptionsReply(HTTPStatus.OK, await _views(asked.parts, [each for each in ours if _owns(asked.caller, each)]))


async def created(asked: SubscriptionsRequest) -> SubscriptionsReply:
    """A new subscription; it gets every event whose publishing begins after this is answered."""
    name = Name(NAMESPACE, str(uuid.uuid4()))
    document = document_in(await asked.body(), None, asked.parts.regex)
    view = await _put(asked, name, document, None)
    return SubscriptionsReply(HTTPStatus.CREATED, view, {"location": f"{asked.prefix}/subscriptions/{name.name}"})


async def retrieved(asked: SubscriptionsRequest) -> SubscriptionsReply:
    """One subscription."""
    (view,) = await _views(asked.parts, [_standing(asked)])
    return SubscriptionsReply(HTTPStatus.OK, view)


async def replaced(asked: SubscriptionsRequest) -> SubscriptionsReply:
    """Everything of a subscription anew, but for secrets that the document leaves out."""
    standing = _standing(asked)
    document = document_in(await asked.body(), standing, asked.parts.regex)
    return SubscriptionsReply(HTTPStatus.OK, await _put(asked, standing.name, document, standing))


async def deleted(asked: SubscriptionsRequest) -> SubscriptionsReply:
    """End a subscription; what is on its way finishes."""
    standing = _standing(asked)
    (view,) = await _views(asked.parts, [standing])
    endings: list[DocumentEnd] = [DocumentEnd(Subscription, standing.name)]
    if standing.name in asked.parts.snapshot.papers:
        endings.append(DocumentEnd(Paper, standing.name))
    await registry_changes.change(asked.parts, (), endings, asked.caller.name, lambda now: _still(asked.caller, standing, now))
    return SubscriptionsReply(HTTPStatus.OK, view)


async def key_rotated(asked: SubscriptionsRequest) -> SubscriptionsReply:
    """A new signing key; for the grace time deliveries carry the signatures of both."""
    standing = _standing(asked)
    members = await asked.members(("grace",))
    grace, push, now = _grace(members.get("grace", GRACE)), standing.delivery, asked.parts.clock.now()
    if not isinstance(push, Push) or not push.signing:
        raise Conflict("deliveries of this subscription are not signed", expected="config.signing v1 or v1a")
    fresh = new_key(push.signing[0].version, os.urandom)
    keys = rotated(push.signing, fresh, now, Instant(now + round(grace * SECOND)))
    wanted = msgspec.structs.replace(standing, delivery=msgspec.structs.replace(push, signing=keys))
    await registry_changes.put(asked.parts, [wanted], asked.caller.name, lambda at: _still(asked.caller, standing, at))
    return SubscriptionsReply(HTTPStatus.OK, signing_shown(keys, now, shown_once(keys)))


async def enabled(asked: SubscriptionsRequest) -> SubscriptionsReply:
    """Let a disabled subscription go on: where it stopped, or with what comes now. 202: it will, as soon as delivery can."""
    standing = _standing(asked)
    start = (await asked.members(("from",))).get("from", "stop")
    if start not in ("stop", "now"):
        raise InvalidDocument([EventFault(0, "/from", "invalid", f"expected stop or now, found {shortened(start)}")])
    done = await command(asked.parts, standing.lane, asked.caller.name, Enable(skip=start == "now"))
    (view,) = await _views(asked.parts, [standing])
    return SubscriptionsReply(HTTPStatus.OK if done else HTTPStatus.ACCEPTED, view)


async def _put(
    asked: SubscriptionsRequest, name: Name, document: SubscriptionDocument, standing: Subscription | None
) -> dict[str, Any]:
    """Check, ask the sink, store: nothing is stored unless all of it went well."""
    parts, caller = asked.parts, asked.caller
    for topic in _topics(document.configuration.source):
        caller.require(Right.SUBSCRIBE, topic)
    await handshakes.check_sink(parts, document.sink, STRICT)
    policy = NoSupport(parts.settings.cloudevents.handshake)
    owner = standing.owner if standing is not None else caller.name
    wanted = subscription_from(name, document, owner, standing, policy)
    if standing is None:
        wanted = msgspec.structs.replace(wanted, fill=await _fill(parts, document.configuration.start))
    with our_places():
        registry_changes.check_change(parts, [wanted], ())
    wanted = await handshakes.shaken(parts, wanted, policy, f"{PREFIX}{CONFIRM}")

    def guard(now: Snapshot) -> None:
        if standing is not None:
            _still(caller, standing, now)

    with our_places():
        stored, paper = await registry_changes.put(parts, [wanted, paper_from(name, document, owner)], caller.name, guard)
    assert isinstance(stored, Subscription) and isinstance(paper, Paper)
    secret = shown_once(wanted.delivery.signing) if isinstance(wanted.delivery, Push) else None
    (view,) = await _views(parts, [stored], secret)
    lint = [*handshakes.warnings_about(parts, stored), *advice_on(stored, parts.regex)]
    return view | ({"lint": lint} if lint else {})


async def _fill(parts: ApiParts, start: str) -> LaneFill | None:
    """Where on the log a new subscription begins; None: with what comes now. A later PUT does not begin again."""
    if start == NOW:
        return None
    if start == FIRST:
        return LaneFill.beyond({})
    if instant_of(start) > parts.clock.now():
        raise InvalidDocument([EventFault(0, "/config/start", "invalid", "expected now, first, or a time in the past")])
    return LaneFill.beyond(await marks_at_any(parts.events, start))


async def _views(parts: ApiParts, subscriptions: Sequence[Subscription], secret: str | None = None) -> list[dict[str, Any]]:
    lanes = await asyncio.to_thread(_lanes, parts, subscriptions)
    snapshot, now = parts.snapshot, parts.clock.now()
    return [
        shown(each, snapshot.papers.get(each.name), status_of(snapshot, each, lane), parts.box, now, secret)
        for each, lane in zip(subscriptions, lanes, strict=True)
    ]


def _lanes(parts: ApiParts, subscriptions: Sequence[Subscription]) -> list[LaneView]:
    return [parts.delivery.lane(each.lane) for each in subscriptions]


def _standing(asked: SubscriptionsRequest) -> Subscription:
    """The subscription that the path names, for its owner; others learn nothing, not even that it is there (SUB-17)."""
    name = subscription_name(asked.id)
    subscription = asked.parts.snapshot.subscriptions.get(name)
    if subscription is None or not _owns(asked.caller, subscription):
        raise NotFound(f"there is no subscription {asked.id}")
    return subscription


def _owns(caller: Principal, subscription: Subscription) -> bool:
    return caller.may(Right.ADMIN) or (caller.may(Right.SUBSCRIBE) and subscription.owner == caller.name)


def _still(caller: Principal, standing: Subscription, now: Snapshot) -> None:
    """Looked at again at the moment of the change."""
    found = now.subscriptions.get(standing.name)
    if found is None or not _owns(caller, found):
        raise NotFound(f"there is no subscription {standing.name.name}")
    if found != standing:
        raise Conflict("somebody else has just changed this subscription; look again")


def _topics(source: Source) -> Sequence[Name]:
    match source:
        case TopicsSource(topics):
            return topics
        case NamespaceSource(namespace):
            return (Name(namespace, "*"),)


def _grace(raw: object) -> float:
    try:
        if isinstance(raw, bool) or not isinstance(raw, (int, float, str)):
            raise ValueError(raw)
        grace = float(seconds(raw))
    except ValueError:
        grace = -1.0
    if not 0 <= grace <= LONGEST_GRACE:
        raise Malformed("the grace time cannot be taken", at="/grace", found=raw, expected="0 to 7d, such as 24h or 3600")
    return grace
