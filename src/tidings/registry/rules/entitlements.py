"""Whether a subscription may be given events now. What it got while it might stays in its lane and waits.

One topic is enough: a subscription of several topics may be given what it has as long as it may have one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

from tidings.registry.model import ApprovalState, Exposure, Name, NamespaceSource, Snapshot, Subscription, TopicsSource
from tidings.registry.rules.approvals import listed, sourced
from tidings.registry.rules.scopes import offered


class Entitled(StrEnum):
    """The states of a subscription; only an active one is given events."""

    ACTIVE = "active"
    PENDING = "pending"
    REJECTED = "rejected"
    BLOCKED = "blocked"


class Entitlement(NamedTuple):
    """A state, and why where it is not plain."""

    state: Entitled
    reason: str = ""

    @property
    def bar(self) -> str:
        """Why nothing may be given; "" when it may."""
        return "" if self.state is Entitled.ACTIVE else f"{self.state}: {self.reason}" if self.reason else self.state


ACTIVE = Entitlement(Entitled.ACTIVE)
_OF_APPROVAL = {
    ApprovalState.GRANTED: Entitled.ACTIVE,
    ApprovalState.PENDING: Entitled.PENDING,
    ApprovalState.REJECTED: Entitled.REJECTED,
}


def entitlement(snapshot: Snapshot, subscription: Subscription) -> Entitlement:
    """Where a subscription stands."""
    if subscription.blocked:
        return Entitlement(Entitled.BLOCKED, subscription.blocked)
    # Most topics have no exposure, and then nobody need be asked.
    exposed = sourced(subscription, snapshot.exposures)
    if not exposed or _has_open(snapshot, subscription, exposed):
        return ACTIVE
    found = list(_of_topics(snapshot, subscription, exposed))
    return next((one for one in found if one.state is Entitled.ACTIVE), found[0])


def _has_open(snapshot: Snapshot, subscription: Subscription, exposed: Iterable[Name]) -> bool:
    """Whether one of its topics is open to everybody."""
    match subscription.source:
        case TopicsSource(wanted):
            return bool(set(wanted) - set(exposed))
        case NamespaceSource(namespace):
            return any(name.namespace == namespace and name not in snapshot.exposures for name in snapshot.topics)


def _of_topics(snapshot: Snapshot, subscription: Subscription, exposed: Iterable[Name]) -> Iterator[Entitlement]:
    for topic in exposed:
        yield _of_topic(snapshot, subscription, snapshot.exposures[topic])


def _of_topic(snapshot: Snapshot, subscription: Subscription, exposure: Exposure) -> Entitlement:
    approval = snapshot.approvals.get((subscription.name, exposure.topic))
    if approval is None or not listed(subscription.owner, exposure.subscribers):
        return Entitlement(Entitled.BLOCKED, f"{subscription.owner or 'nobody'} may not subscribe to {exposure.topic}")
    if approval.state is ApprovalState.GRANTED and offered(exposure.scopes, subscription.scopes) is None:
        return Entitlement(Entitled.BLOCKED, f"{exposure.topic} has not all of the scopes {', '.join(subscription.scopes)}")
    waiting = f"granted by {', '.join(approval.by)}; one more is needed" if approval.by else ""
    pending = approval.state is ApprovalState.PENDING
    return Entitlement(_OF_APPROVAL[approval.state], approval.reason or (waiting if pending else ""))
