"""Consent between hubs and callbacks: `GET|POST /api/webhooks/confirm/{secret}`, `OPTIONS /api/topics/{name}/events`."""

from __future__ import annotations

from typing import Literal, TypeAlias

from fastapi import APIRouter, Request, Response

from tidings.delivery.push.request.handshake import ORIGIN, NoSupport, consent_to
from tidings.doors.handshakes import CONFIRM, confirmed
from tidings.doors.native.bodies.wire import Wire
from tidings.doors.native.callers import PartsOf

router = APIRouter(tags=["webhooks"])

Handshake: TypeAlias = Literal["none", "require", "warn", "legacy-post"]


class Confirmed(Wire):
    """Deliveries begin."""

    subscription: str


def policy_in(handshake: Handshake) -> NoSupport | None:
    """What to do with a callback that knows no handshake; None: do not ask it."""
    return None if handshake == "none" else NoSupport(handshake)


@router.get(CONFIRM + "{secret}", operation_id="confirm_by_get")
@router.post(CONFIRM + "{secret}", operation_id="confirm_by_post")
async def confirm(secret: str, request: Request, parts: PartsOf) -> Confirmed:
    """The owner of a callback consents to deliveries. The secret in the address is good once."""
    stored = await confirmed(parts, secret, {name.lower(): value for name, value in request.headers.items()})
    return Confirmed(subscription=str(stored.name))


@router.options("/api/topics/{name:path}/events", response_class=Response)
async def options(name: str, request: Request, parts: PartsOf) -> Response:
    """We as a callback of another hub: an origin that the operator lists may publish here."""
    consent = consent_to(request.headers.get(ORIGIN, ""), parts.settings.ingest.webhook_origins)
    return Response(headers={"allow": "GET, POST, OPTIONS", **consent})
