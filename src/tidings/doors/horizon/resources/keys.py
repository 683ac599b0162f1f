"""How consumers check the hub's tokens: its public keys, and where they are (HOR-111, HOR-165). No token is needed."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Request

from tidings.access.key_file import ALGORITHM
from tidings.doors.api_parts import ApiParts
from tidings.doors.horizon.names import DEFAULT, is_word
from tidings.errors import NotFound

router = APIRouter(tags=["keys"])

KEYS = "/.well-known/jwks.json"


@router.get(KEYS)
async def keys(request: Request) -> dict[str, Any]:
    """The public keys of the hub's tokens to callbacks."""
    parts: ApiParts = request.app.state.parts
    return await asyncio.to_thread(lambda: parts.gateway_key.jwks)


@router.get("/.well-known/openid-configuration")
async def configuration(request: Request) -> dict[str, Any]:
    """The issuer that tokens name, and where its keys are; where it depends on the environment, that of the hub's own one."""
    parts: ApiParts = request.app.state.parts
    return _configuration(parts, parts.settings.horizon.environment)


@router.get("/v1/{environment}/.well-known/openid-configuration")
async def configuration_of(environment: str, request: Request) -> dict[str, Any]:
    """The issuer that tokens of one environment name, and where its keys are."""
    parts: ApiParts = request.app.state.parts
    if not is_word(environment):
        raise NotFound("there is no such environment", found=environment[:100])
    usual = parts.settings.horizon.environment
    return _configuration(parts, usual if environment == DEFAULT else environment)


def _configuration(parts: ApiParts, environment: str) -> dict[str, Any]:
    gateway = parts.settings.gateway
    issuer = gateway.issuer_in(environment)
    own = "://" in issuer and issuer == gateway.issuer
    here = issuer.rstrip("/") if own else parts.settings.hub_url
    return {"issuer": issuer, "jwks_uri": f"{here}{KEYS}", "id_token_signing_alg_values_supported": [ALGORITHM]}
