"""How a subscription is delivered: `GET|PUT|PATCH /api/subscriptions/{name}/policy`. A change holds for the next attempt."""

from __future__ import annotations

from typing import Any

import msgspec
from fastapi import APIRouter
from pydantic.alias_generators import to_camel

from tidings.access.principals import Principal
from tidings.delivery.push.policy.policy import Policy, policy_of
from tidings.delivery.push.policy.presets import UNBOUNDED
from tidings.doors import registry_changes
from tidings.doors.api_parts import ApiParts
from tidings.doors.native.bodies.policy import PolicyBody, shown_wishes, wishes_from
from tidings.doors.native.bodies.wire import Wire
from tidings.doors.native.callers import Caller, PartsOf, refuse_foreign, subscription_of
from tidings.doors.native.door_documents import refuse_derived
from tidings.doors.native.patch.merge_patch import Patch, patched, shown
from tidings.doors.requests.merge_patch import unless_changed
from tidings.errors import Conflict
from tidings.registry.model import Push, Snapshot, Subscription
from tidings.registry.rules.retention import Retentions

router = APIRouter(tags=["subscriptions"])


class PolicyView(Wire):
    """What was wished for, and what it comes to together with the preset and the hub's settings. Times are seconds."""

    wished: PolicyBody
    in_force: dict[str, Any]


def _pushed(subscription: Subscription) -> Push:
    if not isinstance(subscription.delivery, Push):
        raise Conflict("nothing is pushed for this subscription, so it has no delivery policy")
    return subscription.delivery


def _view(parts: ApiParts, subscription: Subscription) -> PolicyView:
    push = _pushed(subscription)
    kept = Retentions(parts.snapshot, parts.settings.topics.retention).of(subscription)
    policy = policy_of(push, parts.settings.push, kept)
    return PolicyView(wished=PolicyBody(**shown_wishes(push)), in_force=_in_force(policy, push))


def _in_force(policy: Policy, push: Push) -> dict[str, Any]:
    """The policy as plain JSON. What is unbounded is left out; the address and headers are shown elsewhere."""
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(policy))
    if policy.retry.tries >= UNBOUNDED:
        del plain["retry"]["tries"]
    plain["mode"] = policy.format.key if push.layout is None else push.layout.format
    hidden = ("url", "headers", "kept", "format")
    return {to_camel(name): _in_camel_case(value) for name, value in plain.items() if name not in hidden and value is not None}


def _in_camel_case(value: Any) -> Any:
    """Members as every other of this API is spelled; statuses and classes of answers stay what they are."""
    if isinstance(value, dict):
        return {to_camel(name) if "_" in name else name: _in_camel_case(inner) for name, inner in value.items()}
    return value


@router.get("/api/subscriptions/{name:path}/policy")
async def get_policy(name: str, parts: PartsOf, caller: Caller) -> PolicyView:
    """How a subscription is delivered."""
    return _view(parts, subscription_of(parts, caller, name))


@router.put("/api/subscriptions/{name:path}/policy")
async def put_policy(name: str, body: PolicyBody, parts: PartsOf, caller: Caller) -> PolicyView:
    """Deliver otherwise from the next attempt on. What the body leaves out is as its preset has it."""
    standing = subscription_of(parts, caller, name)
    await _store(parts, caller, standing, body)
    return _view(parts, subscription_of(parts, caller, name))


@router.patch("/api/subscriptions/{name:path}/policy")
async def patch_policy(name: str, patch: Patch, parts: PartsOf, caller: Caller) -> PolicyView:
    """Change what the body names from the next attempt on, and nothing else. Another preset keeps what was wished for over it."""
    standing = subscription_of(parts, caller, name)
    body = patched(PolicyBody, shown(PolicyBody(**shown_wishes(_pushed(standing))), PolicyBody), patch, frozenset())
    await _store(parts, caller, standing, body, unless_changed(lambda now: now.subscriptions.get(standing.name), standing))
    return _view(parts, subscription_of(parts, caller, name))


async def _store(
    parts: ApiParts,
    caller: Principal,
    standing: Subscription,
    body: PolicyBody,
    guard: registry_changes.Guard = registry_changes.nothing_against,
) -> None:
    push = msgspec.structs.replace(_pushed(standing), **wishes_from(body))
    wanted = msgspec.structs.replace(standing, delivery=push)
    refuse_derived(parts.doors, [wanted])

    def allowed(now: Snapshot) -> None:
        refuse_foreign(caller, wanted.name, now)
        guard(now)

    await registry_changes.put(parts, [wanted], caller.name, allowed)
