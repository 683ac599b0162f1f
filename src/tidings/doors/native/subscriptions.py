"""Subscriptions: `GET /api/subscriptions`, `PUT|PATCH|GET|DELETE /api/subscriptions/{name}`."""

from __future__ import annotations

from http import HTTPStatus

import msgspec
from fastapi import APIRouter, Response

from tidings.access.principals import Principal, Right
from tidings.access.signing_keys import shown_once
from tidings.delivery.push.records.causes import without_query
from tidings.doors import handshakes, registry_changes
from tidings.doors.advice import advice_on
from tidings.doors.api_parts import ApiParts
from tidings.doors.covered_headers import headers_shown
from tidings.doors.deliveries.refills import fill_from
from tidings.doors.door import owner_of
from tidings.doors.native.bodies.credential import signing_shown
from tidings.doors.native.bodies.subscription import (
    SubscriptionAnswer,
    SubscriptionBody,
    SubscriptionView,
    subscription_from,
    view_of,
)
from tidings.doors.native.bodies.wire import Wire, same_name
from tidings.doors.native.callers import Caller, PartsOf, is_admin, owns, refuse_foreign, subscription_of
from tidings.doors.native.delivery.webhooks import Handshake, policy_in
from tidings.doors.native.door_documents import refuse_derived
from tidings.doors.native.patch.merge_patch import Patch
from tidings.doors.native.patch.subscription_patch import patched_subscription
from tidings.doors.requests.merge_patch import unless_changed
from tidings.errors import Forbidden
from tidings.registry.model import Name, Push, Snapshot, Subscription, TopicsSource
from tidings.registry.port import DocumentEnd
from tidings.registry.rules import parse_name

router = APIRouter(tags=["subscriptions"])


class SubscriptionList(Wire):
    """Subscriptions by name."""

    subscriptions: list[SubscriptionView]


def wanted_by(caller: Principal, name: Name, body: SubscriptionBody, standing: Subscription | None) -> Subscription:
    """The subscription that the caller asks for. Raises Forbidden where they may not."""
    owner = standing.owner if standing is not None and body.owner is None else body.owner or caller.name
    if owner != caller.name and not is_admin(caller):
        raise Forbidden("only administrators may name another owner", at="owner", found=owner)
    wanted = subscription_from(name, body, owner, standing)
    source = wanted.source
    topics = source.topics if isinstance(source, TopicsSource) else (Name(source.namespace, "*"),)
    for topic in topics:
        caller.require(Right.SUBSCRIBE, topic)
    return wanted


async def begun(parts: ApiParts, wanted: Subscription, start: str | None, standing: Subscription | None) -> Subscription:
    """The subscription with the start that was asked for, where it is made now. Raises Malformed."""
    fill = await fill_from(parts.events, start, parts.clock.now())
    return wanted if standing is not None else msgspec.structs.replace(wanted, fill=fill)


def shown(parts: ApiParts, subscription: Subscription, secret: str | None = None) -> SubscriptionView:
    """The subscription with the approvals it needs. `secret`: its signing key, where it was just made."""
    pairs = parts.snapshot.approvals.items()
    approvals = {str(topic): one.state.value for (name, topic), one in pairs if name == subscription.name}
    view, door = (
        view_of(subscription, approvals, headers_shown(subscription, parts.box)),
        owner_of(parts.doors, subscription.name),
    )
    if door is not None:
        view = view.model_copy(update={"door": door.name})
    if view.delivery.url and door is not None:
        # Nobody puts it back here, and the door that it belongs to shows the whole address to its subscriber alone.
        delivery = view.delivery.model_copy(update={"url": without_query(view.delivery.url)})
        view = view.model_copy(update={"delivery": delivery})
    keys = subscription.delivery.signing if isinstance(subscription.delivery, Push) else ()
    return view.model_copy(update={"signing": signing_shown(keys, parts.clock.now(), secret)})


def secret_in(wanted: Subscription) -> str | None:
    """The signing secret that was just made for a subscription, before it is sealed."""
    return shown_once(wanted.delivery.signing) if isinstance(wanted.delivery, Push) else None


@router.get("/api/subscriptions")
async def list_subscriptions(parts: PartsOf, caller: Caller) -> SubscriptionList:
    """The caller's subscriptions; for administrators, all."""
    found = sorted(parts.snapshot.subscriptions.items())
    mine = [subscription for _, subscription in found if owns(caller, subscription)]
    return SubscriptionList(subscriptions=[shown(parts, subscription) for subscription in mine])


@router.put("/api/subscriptions/{name:path}", responses={201: {"model": SubscriptionAnswer, "description": "Created."}})
async def put_subscription(
    name: str, body: SubscriptionBody, parts: PartsOf, caller: Caller, response: Response
) -> SubscriptionAnswer:
    """Create or replace a subscription: what is left out is the default. PATCH changes single members.

    It gets every event whose publishing begins after this is answered; with `start`, when it is made, older ones too.
    """
    full = same_name(name, body.name)
    refuse_foreign(caller, full, parts.snapshot)
    standing = parts.snapshot.subscriptions.get(full)
    response.status_code = HTTPStatus.CREATED if standing is None else HTTPStatus.OK
    wanted = await begun(parts, wanted_by(caller, full, body, standing), body.start, standing)
    return await _stored(parts, caller, wanted, body.handshake)


@router.patch("/api/subscriptions/{name:path}", responses={201: {"model": SubscriptionAnswer, "description": "Created."}})
async def patch_subscription(name: str, patch: Patch, parts: PartsOf, caller: Caller, response: Response) -> SubscriptionAnswer:
    """Change what the body names, and nothing else, or create a subscription with it. `delivery` and `labels` are merged.

    Another kind of delivery starts afresh; another address needs secret headers and credentials again.
    """
    full = parse_name(name)
    refuse_foreign(caller, full, parts.snapshot)
    standing = parts.snapshot.subscriptions.get(full)
    body = patched_subscription(None if standing is None else shown(parts, standing), patch)
    wanted = await begun(parts, wanted_by(caller, same_name(name, body.name), body, standing), body.start, standing)
    response.status_code = HTTPStatus.CREATED if standing is None else HTTPStatus.OK
    guard = unless_changed(lambda now: now.subscriptions.get(full), standing)
    return await _stored(parts, caller, wanted, body.handshake, guard)


async def _stored(
    parts: ApiParts,
    caller: Principal,
    wanted: Subscription,
    handshake: Handshake,
    guard: registry_changes.Guard = registry_changes.nothing_against,
) -> SubscriptionAnswer:
    refuse_derived(parts.doors, [wanted])
    registry_changes.check_documents(parts, [wanted])
    wanted = await handshakes.shaken(parts, wanted, policy_in(handshake))

    def allowed(now: Snapshot) -> None:
        # Looked at again at the moment of the change: somebody else may have taken the name meanwhile.
        refuse_foreign(caller, wanted.name, now)
        guard(now)

    (stored,) = await registry_changes.put(parts, [wanted], caller.name, allowed)
    assert isinstance(stored, Subscription)
    view = shown(parts, stored, secret_in(wanted))
    return SubscriptionAnswer(
        **dict(view), warnings=[*handshakes.warnings_about(parts, stored), *advice_on(stored, parts.regex)]
    )


@router.get("/api/subscriptions/{name:path}")
async def get_subscription(name: str, parts: PartsOf, caller: Caller) -> SubscriptionView:
    """One subscription."""
    return shown(parts, subscription_of(parts, caller, name))


@router.delete("/api/subscriptions/{name:path}", status_code=HTTPStatus.NO_CONTENT)
async def delete_subscription(name: str, parts: PartsOf, caller: Caller) -> None:
    """End a subscription. What is on its way finishes; its lane goes."""
    subscription = subscription_of(parts, caller, name)
    ending = DocumentEnd(Subscription, subscription.name)
    refuse_derived(parts.doors, (), [ending])
    await registry_changes.end(parts, ending, caller.name, lambda now: refuse_foreign(caller, subscription.name, now))
