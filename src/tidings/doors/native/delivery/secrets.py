"""Secrets that the hub makes: `POST /api/subscriptions/{name}/secret/rotate`, and the hub's public keys."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import msgspec
from fastapi import APIRouter
from pydantic import Field

from tidings.access.signing_keys import new_key, rotated, shown_once
from tidings.doors import registry_changes
from tidings.doors.native.bodies.credential import SigningView, grace_end, signing_shown
from tidings.doors.native.bodies.wire import Duration, Wire
from tidings.doors.native.callers import Caller, PartsOf, refuse_foreign, subscription_of
from tidings.errors import Conflict, Malformed
from tidings.registry.model import Push

router = APIRouter(tags=["subscriptions"])

GRACE = 86400.0
LONGEST_GRACE = 7 * 86400.0


class RotateBody(Wire):
    """How to go over to a new key."""

    grace: Duration = Field(default=GRACE, description="How long the old key signs too; up to 7 days.")


@router.post("/api/subscriptions/{name:path}/secret/rotate")
async def rotate(name: str, parts: PartsOf, caller: Caller, body: RotateBody | None = None) -> SigningView:
    """Make a new signing key. For the grace time every delivery carries the signatures of both keys."""
    subscription = subscription_of(parts, caller, name)
    grace = (body or RotateBody()).grace
    if not 0 <= grace <= LONGEST_GRACE:
        raise Malformed("the grace time is out of bounds", at="grace", found=grace, expected="0 to 7d")
    push, now = subscription.delivery, parts.clock.now()
    if not isinstance(push, Push) or not push.signing:
        raise Conflict(f"deliveries of {subscription.name} are not signed", expected='delivery.signing "v1" or "v1a"')
    keys = rotated(push.signing, new_key(push.signing[0].version, os.urandom), now, grace_end(now, grace))
    wanted = msgspec.structs.replace(subscription, delivery=msgspec.structs.replace(push, signing=keys))
    await registry_changes.put(parts, [wanted], caller.name, lambda at: refuse_foreign(caller, subscription.name, at))
    view = signing_shown(keys, now, shown_once(keys))
    assert view is not None
    return view


@router.get("/api/.well-known/jwks.json")
async def jwks(parts: PartsOf) -> dict[str, Any]:
    """The public keys that the hub's own tokens to endpoints are signed with. Needs no token."""
    return await asyncio.to_thread(lambda: parts.gateway_key.jwks)
