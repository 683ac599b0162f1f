"""Subscriptions and the decisions on them, below `/v1/{environment}` (HOR-40, HOR-153, HOR-160)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

import msgspec
from fastapi import APIRouter, Query, Request

from tidings.doors import registry_changes
from tidings.doors.horizon.documents.apply_results import sse_url
from tidings.doors.horizon.names import ROVER, paper_name, subscription_name
from tidings.doors.horizon.resources.request import AskedBy, HorizonRequest, hub_address, json_of
from tidings.doors.horizon.views.breakers import shown_breaker, shown_callback
from tidings.doors.horizon.views.states import BLOCKED, STATES, state_of, topic_of
from tidings.errors import Conflict
from tidings.filters.dialects.horizon.scopes import HorizonScope as WrittenScope
from tidings.filters.dialects.horizon.scopes import merged
from tidings.registry.model import Approval, ApprovalState, Exposure, Push, Snapshot, Subscription
from tidings.registry.rules import decided

router = APIRouter(tags=["subscriptions"])

StateWord = Literal["ACTIVE", "PENDING", "REJECTED", "BLOCKED"]
_DECISIONS = {"APPROVE": ApprovalState.GRANTED, "REJECT": ApprovalState.REJECTED}
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["decision"],
                    "properties": {
                        "decision": {"enum": list(_DECISIONS)},
                        "reason": {"type": "string", "maxLength": 1000},
                        "approver": {"type": "string", "description": "Who decides, where access is open and nobody is known."},
                    },
                }
            }
        },
    }
}


class Decision(msgspec.Struct, frozen=True):
    """What the owner of a type says to a subscription."""

    decision: Literal["APPROVE", "REJECT"]
    reason: str = ""
    approver: str = ""


@router.get("/v1/{environment}/subscriptions/{subscription}")
async def show(subscription: str, asked: AskedBy) -> dict[str, Any]:
    """A subscription as it stands, for its subscriber, the owner of its type, and administrators."""
    found = subscription_of(asked, subscription, owner=True)
    return shown_subscription(asked, found)


@router.post("/v1/{environment}/subscriptions/{subscription}/approval", openapi_extra=_BODY)
async def decide(subscription: str, request: Request, asked: AskedBy) -> dict[str, Any]:
    """Approve or reject a subscription; for the owner of its type and administrators."""
    said = await json_of(request, Decision)
    what = f"the event type of the subscription {subscription[:80]}"
    found = known(asked, subscription, what)
    now = asked.parts.snapshot
    asked.client.require((_owner(now, found),), what)
    by = (said.approver or asked.client.id) if asked.client.unchecked else asked.client.id
    wanted = _decided(now, found, said, by)
    await registry_changes.put(asked.parts, [wanted], asked.client.id, partial(_undecided, now, found))
    return shown_subscription(asked, found)


@router.get("/v1/{environment}/approvals")
async def approvals(
    asked: AskedBy,
    state: StateWord | None = Query(None, description="Only those in this state; PENDING unless it is given."),
    event_type: str | None = Query(None, alias="eventType", description="Only those to this type."),
) -> dict[str, Any]:
    """The subscriptions to the caller's event types, to decide on; for administrators, to all."""
    now, namespace = asked.parts.snapshot, subscription_name(asked.environment, "").namespace
    wanted = state or "PENDING"
    items = [
        _asked_for(asked, one)
        for name, one in sorted(now.subscriptions.items())
        if name.namespace == namespace
        and state_of(now, one).word == wanted
        and event_type in (None, topic_of(one).name)
        and asked.client.acts_for(_owner(now, one))
    ]
    return {"items": items}


def known(asked: HorizonRequest, subscription: str, what: str) -> Subscription:
    """The subscription of this id. Raises NotFound, or Forbidden for those who must not learn whether there is one."""
    found = asked.parts.snapshot.subscriptions.get(subscription_name(asked.environment, subscription))
    if found is None:
        raise asked.client.absent(what)
    return found


def subscription_of(asked: HorizonRequest, subscription: str, *, owner: bool = False) -> Subscription:
    """The subscription, for its subscriber and administrators; with `owner`, for the owner of its type too. Raises Forbidden."""
    what = f"the subscription {subscription[:80]}"
    found = known(asked, subscription, what)
    owners = (found.owner, _owner(asked.parts.snapshot, found)) if owner else (found.owner,)
    asked.client.require(owners, what)
    return found


def shown_subscription(asked: HorizonRequest, subscription: Subscription) -> dict[str, Any]:
    """A subscription as it is shown (HOR-105, HOR-153)."""
    now = asked.parts.snapshot
    exposure, topic = _exposure(now, subscription), topic_of(subscription)
    shown = _asked_for(asked, subscription)
    scopes = list(subscription.scopes) or (["default"] if exposure is not None and "default" in exposure.scopes else [])
    if state_of(now, subscription).word != BLOCKED and exposure is not None:
        shown["publisherTrigger"] = _merged(exposure, scopes)
        shown["appliedScopes"] = scopes
    if isinstance(subscription.delivery, Push):
        view = asked.parts.delivery.lane(subscription.lane)
        shown["circuitBreaker"] = shown_breaker(view.detail.breaker, subscription, asked.parts)
    else:
        shown["sseUrl"] = sse_url(hub_address(asked.parts), asked.environment, topic.name, subscription.name.name)
    return shown


def _asked_for(asked: HorizonRequest, subscription: Subscription) -> dict[str, Any]:
    """What somebody who decides on a subscription wants to know."""
    now = asked.parts.snapshot
    state, topic = state_of(now, subscription), topic_of(subscription)
    approval = now.approvals.get((subscription.name, topic))
    shown = {
        "subscriptionId": subscription.name.name,
        "eventType": topic.name,
        "environment": topic.namespace.partition("/")[2],
        "subscriberId": subscription.owner,
        "publisherId": _owner(now, subscription),
        "state": state.word,
        "reason": state.reason or None,
        "approvedBy": list(approval.by) if approval is not None and approval.by else None,
        **_written(asked, subscription),
    }
    return {name: value for name, value in shown.items() if value is not None}


def _written(asked: HorizonRequest, subscription: Subscription) -> Mapping[str, Any]:
    """The entry of the subscriber's document that asks for it."""
    now = asked.parts.snapshot
    topic = topic_of(subscription)
    environment = topic.namespace.partition("/")[2]
    paper = now.papers.get(paper_name(environment, ROVER, subscription.owner))
    entries = paper.text["spec"].get("subscriptions", ()) if paper is not None else ()
    entry: Mapping[str, Any] = next((one for one in entries if one.get("eventType") == topic.name), {})
    if not entry.get("callback"):
        return entry
    return {**entry, "callback": shown_callback(entry["callback"], asked.client, subscription)}


def _owner(now: Snapshot, subscription: Subscription) -> str:
    exposure = _exposure(now, subscription)
    return "" if exposure is None else exposure.owner


def _exposure(now: Snapshot, subscription: Subscription) -> Exposure | None:
    return now.exposures.get(topic_of(subscription))


def _merged(exposure: Exposure, names: list[str]) -> dict[str, Any] | None:
    """The trigger that the publisher's scopes come to, as it is written in documents."""
    scopes = [
        WrittenScope(
            name,
            expression=None if scope.filter is None else scope.filter.text,
            paths=() if scope.projection is None else scope.projection.paths,
            mode=None if scope.projection is None else scope.projection.mode.upper(),
        )
        for name, scope in exposure.scopes.items()
    ]
    return merged(scopes, names).trigger if names else None


def _undecided(before: Snapshot, subscription: Subscription, now: Snapshot) -> None:
    """Two who decide at the same time must not overwrite each other."""
    pair = (subscription.name, topic_of(subscription))
    if now.approvals.get(pair) != before.approvals.get(pair):
        raise Conflict("somebody else has just decided on this subscription; look again")


def _decided(now: Snapshot, subscription: Subscription, said: Decision, by: str) -> Approval:
    topic = topic_of(subscription)
    standing, exposure = now.approvals.get((subscription.name, topic)), now.exposures.get(topic)
    if subscription.blocked or standing is None or exposure is None:
        raise Conflict(f"there is nothing to decide: {subscription.blocked or 'the event type is not exposed'}")
    return msgspec.structs.replace(decided(standing, exposure.approval, _DECISIONS[said.decision], by), reason=said.reason)


assert set(StateWord.__args__) == set(STATES)  # type: ignore[attr-defined]
