"""What a patch makes of a subscription: members that stand for each other take each other's place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidings.doors.native.bodies.subscription import SubscriptionBody, SubscriptionView
from tidings.doors.native.patch.merge_patch import patched, shown
from tidings.registry.rules.callback_addresses import taken_out

WHOLE = frozenset({"filter", "project", "delivery.credential"})
"""Members that a patch replaces."""

_INSTEAD = (("topic", "topics", "namespace"), ("where", "filter"))
"""Of each of these there is only one: who gives one takes the others away."""

_HIDDEN = ("owner", "signing", "consent", "warnings")


def patched_subscription(standing: SubscriptionView | None, patch: Mapping[str, Any]) -> SubscriptionBody:
    """The body that comes of a patch. Raises RequestValidationError."""
    known = {} if standing is None else shown(standing, SubscriptionBody, *_HIDDEN)
    patch = _long(patch)
    for group in _INSTEAD:
        if any(patch.get(member) is not None for member in group):
            known = {member: value for member, value in known.items() if member not in group}
    delivery = patch.get("delivery")
    if isinstance(delivery, dict) and "delivery" in known:
        known["delivery"] = _delivery(known["delivery"], delivery)
    return patched(SubscriptionBody, known, patch, WHOLE)


def _long(patch: Mapping[str, Any]) -> Mapping[str, Any]:
    """`to` is short for the address of a push."""
    if patch.get("to") is None or "delivery" in patch:
        return patch
    return {**{member: value for member, value in patch.items() if member != "to"}, "delivery": _push_to(patch["to"])}


def _push_to(url: Any) -> dict[str, Any]:
    return {"kind": "push", "url": url}


def _delivery(known: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """What of the delivery a patch goes over: nothing where it is of another kind."""
    if patch.get("kind", known["kind"]) != known["kind"]:
        return {}
    url = patch.get("url")
    says_who = isinstance(url, str) and taken_out(url)[1] is not None
    return {**known, "credential": None} if says_who else known
