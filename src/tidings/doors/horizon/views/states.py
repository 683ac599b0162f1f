"""Where subscriptions and exposures stand, in Horizon's words (HOR-39, HOR-174). Derived, never stored."""

from __future__ import annotations

from typing import Any, NamedTuple

from tidings.doors.horizon.names import SPECIFIED
from tidings.errors import Conflict
from tidings.registry.model import ApprovalState, Exposure, Name, Snapshot, Subscription, TopicsSource
from tidings.registry.rules.entitlements import entitlement

ACTIVE, PENDING, REJECTED, BLOCKED, INCOMPLETE = "ACTIVE", "PENDING", "REJECTED", "BLOCKED", "INCOMPLETE"
STATES = (ACTIVE, PENDING, REJECTED, BLOCKED)

_OF_APPROVAL = {ApprovalState.PENDING: PENDING, ApprovalState.REJECTED: REJECTED}


class State(NamedTuple):
    """A state, and why where it is not plain."""

    word: str
    reason: str = ""


def shown_state(state: State) -> dict[str, Any]:
    """A state as answers show it."""
    return {"state": state.word, **({"reason": state.reason} if state.reason else {})}


def topic_of(subscription: Subscription) -> Name:
    """The one topic of a subscription of this door."""
    assert isinstance(subscription.source, TopicsSource)
    return subscription.source.topics[0]


def state_of(snapshot: Snapshot, subscription: Subscription) -> State:
    """The state of a subscription."""
    if subscription.blocked:
        return State(BLOCKED, subscription.blocked)
    approval = snapshot.approvals.get((subscription.name, topic_of(subscription)))
    if approval is None:
        return State(BLOCKED, "the event type is not exposed")
    if approval.state is ApprovalState.GRANTED:
        found = entitlement(snapshot, subscription)
        return State(found.state.upper(), found.reason or approval.reason)
    waiting = f"approved by {', '.join(approval.by)}; one more is needed" if approval.by else ""
    pending = approval.state is ApprovalState.PENDING
    return State(_OF_APPROVAL[approval.state], approval.reason or (waiting if pending else ""))


def require_active(snapshot: Snapshot, subscription: Subscription) -> None:
    """Raise Conflict, with the state and its reason, unless the subscription is ACTIVE."""
    state = state_of(snapshot, subscription)
    if state.word != ACTIVE:
        because = f" ({state.reason})" if state.reason else ""
        told = f"the subscription {subscription.name.name} is {state.word}{because}: it is given nothing until it is {ACTIVE}"
        raise Conflict(told, found=state.word, expected=ACTIVE)


def exposure_state(snapshot: Snapshot, exposure: Exposure) -> State:
    """The state of an exposure."""
    topic = snapshot.topics.get(exposure.topic)
    if topic is None or SPECIFIED not in topic.labels:
        return State(INCOMPLETE, "there is no EventSpecification of this type")
    return State(ACTIVE)
