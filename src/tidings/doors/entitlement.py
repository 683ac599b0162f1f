"""Doors give nothing of a subscription that may have nothing: no stream, no feed, no payload, nothing once more."""

from __future__ import annotations

from tidings.doors.api_parts import ApiParts
from tidings.errors import Conflict, Rejected
from tidings.registry.model import Subscription
from tidings.registry.rules.entitlements import entitlement


def require_entitled(parts: ApiParts, subscription: Subscription, refusal: type[Rejected] = Conflict) -> None:
    """Raise the refusal, with the state and its reason, unless the subscription is active."""
    found = entitlement(parts.snapshot, subscription)
    if found.bar:
        because = f" ({found.reason})" if found.reason else ""
        raise refusal(
            f"the subscription {subscription.name} is {found.state}{because}: it is given nothing until that changes",
            found=found.state,
            expected="active",
        )


def is_entitled(parts: ApiParts, subscription: Subscription) -> bool:
    """Whether it may be given events now."""
    return not entitlement(parts.snapshot, subscription).bar
