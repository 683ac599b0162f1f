"""`/oauth/providers`: where tokens for endpoints are asked for (HER-22, HER-160, HER-161)."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import APIRouter, Request
from starlette.responses import Response

from tidings.doors.hermes.documents import stored
from tidings.doors.hermes.documents.fields import merged
from tidings.doors.hermes.documents.oauth import provider_of_document, provider_shown
from tidings.doors.hermes.names import provider_name
from tidings.doors.hermes.refusals import ErrorCode, invalid, refused
from tidings.doors.hermes.resources.request import HermesCaller, body_schema, document_of, done, told
from tidings.registry.model import Provider
from tidings.registry.port import DocumentEnd

router = APIRouter(tags=["providers"])


@router.get("/oauth/providers")
async def list_providers(asked: HermesCaller) -> Response:
    """The names of all providers."""
    return told([one.name.name for one in stored.providers(asked.snapshot)])


@router.get("/oauth/providers/{name}")
async def get_provider(name: str, asked: HermesCaller) -> Response:
    """One provider, its secret masked."""
    return told(provider_shown(stored.provider(asked.snapshot, name)))


@router.post(
    "/oauth/providers",
    status_code=HTTPStatus.CREATED,
    openapi_extra=body_schema("name", "tokenEndpoint", "clientId", "clientSecret"),
    response_class=Response,
)
async def create_provider(request: Request, asked: HermesCaller) -> Response:
    """Register a provider."""
    asked.require_changing()
    wanted = provider_of_document(await document_of(request), None)
    async with asked.changing:
        if wanted.name in asked.snapshot.providers:
            told_why = f"OAuth provider {wanted.name.name} already exists"
            raise refused(ErrorCode.OAUTH_PROVIDER_ALREADY_EXISTS, told_why)
        await asked.change([wanted])
    return done(HTTPStatus.CREATED)


@router.put("/oauth/providers/{name}", openapi_extra=body_schema(), response_class=Response)
async def update_provider(name: str, request: Request, asked: HermesCaller) -> Response:
    """Change what the body names of a provider."""
    asked.require_changing()
    patch = await document_of(request)
    async with asked.changing:
        standing = stored.provider(asked.snapshot, name)
        wanted = provider_of_document(merged(provider_shown(standing), patch), standing)
        if wanted.name != standing.name:
            raise invalid([("OAuthProvider.name", "a provider keeps its name")])
        await asked.change([wanted])
    return done()


@router.delete("/oauth/providers/{name}", response_class=Response)
async def delete_provider(name: str, asked: HermesCaller) -> Response:
    """Delete a provider that no subscription uses."""
    asked.require_changing()
    async with asked.changing:
        stored.provider(asked.snapshot, name)
        await asked.change([], [DocumentEnd(Provider, provider_name(name))])
    return done()
