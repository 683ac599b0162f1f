"""How consumers check the hub's tokens: its public keys, and where they are (HOR-111, HOR-165). No token is needed."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Request

from tidings.access.key_file import ALGORITHM
from tidings.facades.parts import Parts

router = APIRouter(tags=["keys"])

KEYS = "/.well-known/jwks.json"


@router.get(KEYS)
async def keys(request: Request) -> dict[str, Any]:
    """The public keys of the hub's tokens to callbacks."""
    parts: Parts = request.app.state.parts
    return await asyncio.to_thread(lambda: parts.gateway_key.jwks)


@router.get("/.well-known/openid-configuration")
async def configuration(request: Request) -> dict[str, Any]:
    """The issuer that tokens name, and where its keys are."""
    parts: Parts = request.app.state.parts
    issuer = parts.settings.gateway.issuer
    here = issuer.rstrip("/") if "://" in issuer else parts.settings.hub_url
    return {"issuer": issuer, "jwks_uri": f"{here}{KEYS}", "id_token_signing_alg_values_supported": [ALGORITHM]}
