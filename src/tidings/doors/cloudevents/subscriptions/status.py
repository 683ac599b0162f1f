"""Where a subscription stands: `status` and `statusreason`.

| status | means |
|---|---|
| `active` | events are delivered |
| `pending` | the sink has not consented yet, or an approval is missing |
| `unverified` | the sink knows no handshake; deliveries are slow |
| `disabled` | nothing is sent; `statusreason` says why |
"""

from __future__ import annotations

from tidings.delivery.push.reader import LaneView
from tidings.registry.credentials import Consent
from tidings.registry.model import Push, Snapshot, Subscription
from tidings.registry.rules.entitlements import Entitled, entitlement

ACTIVE, PENDING, UNVERIFIED, DISABLED = "active", "pending", "unverified", "disabled"

_STOPPED = {"disabled": "", "suspended": "suspended"}


def status_of(snapshot: Snapshot, subscription: Subscription, lane: LaneView | None) -> dict[str, str]:
    """The two members. `lane`: as delivery last saved it; None while delivery has not touched it."""
    entitled = entitlement(snapshot, subscription)
    if entitled.state is Entitled.PENDING:
        return _told(PENDING, entitled.reason or "an approval is missing")
    if entitled.bar:
        return _told(DISABLED, entitled.bar)
    if lane is not None and lane.state in _STOPPED:
        return _told(DISABLED, _STOPPED[lane.state] or lane.detail.disabled)
    webhook = subscription.delivery.webhook if isinstance(subscription.delivery, Push) else None
    match webhook.consent if webhook is not None else Consent.GIVEN:
        case Consent.PENDING:
            return _told(PENDING, "the sink has not consented yet")
        case Consent.UNVERIFIED:
            return _told(UNVERIFIED, "the sink knows no handshake")
    return {"status": ACTIVE}


def _told(status: str, reason: str) -> dict[str, str]:
    return {"status": status, "statusreason": reason} if reason else {"status": status}
