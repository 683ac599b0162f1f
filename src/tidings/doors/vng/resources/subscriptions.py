"""`/subscriptions`: made after a handshake with their sink, shown, replaced, patched, ended (VNG-20, VNG-60 to VNG-72)."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any

from tidings.access.principals import Right
from tidings.delivery.push.reader import LaneView
from tidings.delivery.push.request.handshake import NoSupport
from tidings.doors import handshakes, registry_changes
from tidings.doors.deliveries.commands import command
from tidings.doors.requests.merge_patch import merged, unless_changed
from tidings.doors.vng.documents.members import DocumentReader
from tidings.doors.vng.documents.subscription import (
    MEMBERS_HERE,
    SubscriptionContext,
    WantedSubscription,
    new_secret,
    shown_subscription,
    standing_subscription,
    subscription_from,
)
from tidings.doors.vng.names import SUBSCRIPTIONS, uuid_of
from tidings.doors.vng.refusals import translated
from tidings.doors.vng.resources.pages import cut, page_answer, page_of
from tidings.doors.vng.resources.request import EVERY_DOMAIN, VngAnswer, VngRequest
from tidings.errors import InvalidDocument, NotFound
from tidings.ids import random_id
from tidings.log.commands import Enable
from tidings.registry.credentials import Consent
from tidings.registry.model import Paper, Push, Snapshot, Subscription, TopicsSource
from tidings.registry.port import DocumentEnd
from tidings.registry.rules.callback_addresses import STRICT

DISABLED = "disabled"

WHOLE = frozenset(("filters", "types"))
"""Members that a patch replaces."""


async def list_subscriptions(request: VngRequest) -> VngAnswer:
    request.require_reader()
    page = page_of(request.query)
    snapshot = request.parts.snapshot
    papers = [paper for name, paper in snapshot.papers.items() if name.namespace == SUBSCRIPTIONS and _may_see(request, paper)]
    standing = [one for paper in papers if (one := standing_subscription(snapshot, paper.name.name)) is not None]
    standing.sort(key=lambda one: one.subscription.lane)
    results = [await _shown(request, one) for one in cut(standing, page)]
    return page_answer(len(standing), page, results, _address(request), {})


async def create_subscription(request: VngRequest) -> VngAnswer:
    request.by.require(Right.SUBSCRIBE)
    context = SubscriptionContext(request.parts, request.by.name, None)
    wanted = subscription_from(await request.document(), random_id(), context)
    stored = await _stored(request, wanted, None)
    return VngAnswer(HTTPStatus.CREATED, await _shown(request, stored, new_secret(wanted)), _url(request, wanted))


async def show_subscription(request: VngRequest, uuid: str) -> VngAnswer:
    request.require_reader()
    return VngAnswer(HTTPStatus.OK, await _shown(request, _found(request, uuid)))


async def replace_subscription(request: VngRequest, uuid: str) -> VngAnswer:
    request.by.require(Right.SUBSCRIBE)
    standing = _own(request, uuid)
    return await _changed(request, standing, await request.document())


async def patch_subscription(request: VngRequest, uuid: str) -> VngAnswer:
    request.by.require(Right.SUBSCRIBE)
    standing = _own(request, uuid)
    known = await _shown(request, standing)
    patch = await request.patch()
    raw = merged({name: value for name, value in known.items() if name not in ("url", "id")}, patch, WHOLE)
    return await _changed(request, standing, raw)


async def delete_subscription(request: VngRequest, uuid: str) -> VngAnswer:
    request.by.require(Right.SUBSCRIBE)
    standing = _own(request, uuid)
    endings = [DocumentEnd(Subscription, standing.subscription.name), DocumentEnd(Paper, standing.paper.name)]

    def still_there(now: Snapshot) -> None:
        if standing.paper.name not in now.papers:
            raise _absent(uuid)

    await registry_changes.change(request.parts, (), endings, request.by.name, still_there)
    return VngAnswer(HTTPStatus.NO_CONTENT)


async def _changed(request: VngRequest, standing: WantedSubscription, raw: dict[str, Any]) -> VngAnswer:
    uuid = standing.paper.name.name
    context = SubscriptionContext(request.parts, standing.paper.owner, standing)
    _refuse_other_id(raw, uuid)
    wanted = subscription_from(raw, uuid, context)
    lane = await _lane(request, standing)
    disabled = lane.state == DISABLED
    if disabled and isinstance(wanted.subscription.delivery, Push):
        # Whoever said that it is gone has to consent again (VNG-67).
        wanted = wanted.asking_again()
    stored = await _stored(request, wanted, standing)
    if disabled:
        await command(request.parts, stored.subscription.lane, request.by.name, Enable())
    return VngAnswer(HTTPStatus.OK, await _shown(request, stored, new_secret(wanted)))


def _refuse_other_id(raw: dict[str, Any], uuid: str) -> None:
    given = raw.get("id")
    if given is not None and (not isinstance(given, str) or uuid_of(given) != uuid):
        reader = DocumentReader(raw, [])
        reader.fault("id", "invalid", f"expected the id of the address, {uuid}")
        reader.refuse()


async def _stored(request: VngRequest, wanted: WantedSubscription, standing: WantedSubscription | None) -> WantedSubscription:
    """Checked by the core, agreed on with the sink, and in force."""
    parts, subscription = request.parts, wanted.subscription
    source = subscription.source
    for topic in source.topics if isinstance(source, TopicsSource) else (EVERY_DOMAIN,):
        request.by.require(Right.SUBSCRIBE, topic)
    push = subscription.delivery
    assert isinstance(push, Push)
    try:
        registry_changes.check_documents(parts, [subscription, wanted.paper])
        await handshakes.check_sink(parts, push.url, STRICT)
        policy = NoSupport(parts.settings.vng.handshake)
        subscription = await handshakes.shaken(parts, subscription, policy)
        guard = unless_changed(lambda now: now.papers.get(wanted.paper.name), None if standing is None else standing.paper)
        stored, paper = await registry_changes.put(parts, [subscription, wanted.paper], request.by.name, guard)
    except InvalidDocument as error:
        raise InvalidDocument(translated(error.faults, MEMBERS_HERE)) from error
    assert isinstance(stored, Subscription) and isinstance(paper, Paper)
    return WantedSubscription(paper, stored)


def _may_see(request: VngRequest, paper: Paper) -> bool:
    return request.sees_all or paper.owner == request.by.name


def _found(request: VngRequest, text: str) -> WantedSubscription:
    """A subscription that the caller may see. Raises NotFound: others learn nothing (VNG-37)."""
    uuid = uuid_of(text)
    standing = standing_subscription(request.parts.snapshot, uuid) if uuid is not None else None
    if standing is None or not _may_see(request, standing.paper):
        raise _absent(text)
    return standing


def _own(request: VngRequest, text: str) -> WantedSubscription:
    """A subscription that the caller may change. Raises NotFound."""
    standing = _found(request, text)
    if standing.paper.owner != request.by.name and not request.by.may(Right.ADMIN):
        raise _absent(text)
    return standing


def _absent(text: str) -> NotFound:
    return NotFound("there is no subscription of this id", found=text[:100])


async def _lane(request: VngRequest, standing: WantedSubscription) -> LaneView:
    return await asyncio.to_thread(request.parts.delivery.lane, standing.subscription.lane)


async def _shown(request: VngRequest, standing: WantedSubscription, secret: str | None = None) -> dict[str, Any]:
    context = SubscriptionContext(request.parts, standing.paper.owner, standing)
    shown = shown_subscription(standing, _address(request), context, await _status(request, standing))
    return shown if secret is None else {**shown, "signingSecret": secret}


async def _status(request: VngRequest, standing: WantedSubscription) -> tuple[str, str]:
    """How deliveries stand, and why."""
    push = standing.subscription.delivery
    if isinstance(push, Push) and push.webhook is not None and push.webhook.consent is Consent.PENDING:
        return "pending", "the sink may consent at the callback address that it was given"
    lane = await _lane(request, standing)
    unverified = isinstance(push, Push) and push.webhook is not None and push.webhook.consent is Consent.UNVERIFIED
    if lane.state == "active" and unverified:
        return "unverified", "the sink knows no handshake; it gets at most 6 requests a minute"
    return lane.state, lane.detail.disabled


def _url(request: VngRequest, wanted: WantedSubscription) -> str:
    return f"{_address(request)}/{wanted.paper.name.name}"


def _address(request: VngRequest) -> str:
    return f"{request.address}/subscriptions"
