"""Providers of tokens for endpoints: `GET /api/providers`, `PUT|GET|DELETE /api/providers/{name}`. For administrators."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import APIRouter, Response
from pydantic import Field

from tidings.access.principals import Principal, Right
from tidings.access.secrets import COVER
from tidings.doors import registry_changes
from tidings.doors.api_parts import ApiParts
from tidings.doors.native.bodies.wire import Duration, Wire, name_in_path, same_name
from tidings.doors.native.callers import Caller, PartsOf
from tidings.doors.native.patch.merge_patch import Patch, patched, shown
from tidings.doors.requests.merge_patch import unless_changed
from tidings.errors import Malformed, NotFound
from tidings.registry.model import Name, Provider
from tidings.registry.port import DocumentEnd
from tidings.registry.rules import parse_name

router = APIRouter(tags=["providers"])


class ProviderBody(Wire):
    """Where tokens are asked for, and as whom. Its secret is shown as ***, and kept when it is put back so."""

    name: str | None = None
    token_endpoint: str
    client_id: str
    client_secret: str
    first_delay: Duration = Field(default=0.1, description="Between two token requests; it doubles while they do not help.")
    longest_delay: Duration = 30.0
    request_timeout: Duration = 1.0
    socket_timeout: Duration = 0.0
    parameters_in_query: bool = Field(default=False, description="Send the parameters in the address instead of the body.")


class ProviderList(Wire):
    """Providers by name."""

    providers: list[ProviderBody]


def provider_from(name: Name, body: ProviderBody, standing: Provider | None) -> Provider:
    """The provider that a body describes. Raises Malformed when a covered secret stands for none, or for another address."""
    secret = body.client_secret
    if secret == COVER:
        if standing is None or standing.token_endpoint != body.token_endpoint:
            raise Malformed("a new provider or address needs the secret", at="clientSecret", expected="the secret")
        secret = standing.client_secret
    members = body.model_dump(exclude={"name", "client_secret"}, by_alias=False)
    return Provider(name=name, client_secret=secret, **members)


def view_of(provider: Provider) -> ProviderBody:
    """The provider as it is shown."""
    return ProviderBody(
        name=str(provider.name),
        token_endpoint=provider.token_endpoint,
        client_id=provider.client_id,
        client_secret=COVER,
        first_delay=provider.first_delay,
        longest_delay=provider.longest_delay,
        request_timeout=provider.request_timeout,
        socket_timeout=provider.socket_timeout,
        parameters_in_query=provider.parameters_in_query,
    )


def _provider_of(parts: ApiParts, caller: Principal, text: str) -> Provider:
    caller.require(Right.ADMIN)
    provider = parts.snapshot.providers.get(name_in_path(text, "provider"))
    if provider is None:
        raise NotFound(f"there is no provider {text[:80]}")
    return provider


@router.get("/api/providers")
async def list_providers(parts: PartsOf, caller: Caller) -> ProviderList:
    """All providers."""
    caller.require(Right.ADMIN)
    return ProviderList(providers=[view_of(provider) for _, provider in sorted(parts.snapshot.providers.items())])


@router.put("/api/providers/{name:path}", responses={201: {"model": ProviderBody, "description": "Created."}})
async def put_provider(name: str, body: ProviderBody, parts: PartsOf, caller: Caller, response: Response) -> ProviderBody:
    """Create or replace a provider: what is left out is the default. It holds for the next token that is asked for."""
    caller.require(Right.ADMIN)
    full = same_name(name, body.name)
    standing = parts.snapshot.providers.get(full)
    response.status_code = HTTPStatus.CREATED if standing is None else HTTPStatus.OK
    return await _stored(parts, caller, provider_from(full, body, standing))


@router.patch("/api/providers/{name:path}", responses={201: {"model": ProviderBody, "description": "Created."}})
async def patch_provider(name: str, patch: Patch, parts: PartsOf, caller: Caller, response: Response) -> ProviderBody:
    """Change what the body names, and nothing else, or create a provider with it. A new address needs the secret again."""
    caller.require(Right.ADMIN)
    full = parse_name(name)
    standing = parts.snapshot.providers.get(full)
    known = {} if standing is None else shown(view_of(standing), ProviderBody)
    body = patched(ProviderBody, known, patch, frozenset())
    response.status_code = HTTPStatus.CREATED if standing is None else HTTPStatus.OK
    wanted = provider_from(same_name(name, body.name), body, standing)
    return await _stored(parts, caller, wanted, unless_changed(lambda now: now.providers.get(full), standing))


async def _stored(
    parts: ApiParts, caller: Principal, wanted: Provider, guard: registry_changes.Guard = registry_changes.nothing_against
) -> ProviderBody:
    (stored,) = await registry_changes.put(parts, [wanted], caller.name, guard)
    assert isinstance(stored, Provider)
    return view_of(stored)


@router.get("/api/providers/{name:path}")
async def get_provider(name: str, parts: PartsOf, caller: Caller) -> ProviderBody:
    """One provider."""
    return view_of(_provider_of(parts, caller, name))


@router.delete("/api/providers/{name:path}", status_code=HTTPStatus.NO_CONTENT)
async def delete_provider(name: str, parts: PartsOf, caller: Caller) -> None:
    """End a provider. One that subscriptions ask for tokens is kept: 409 says which they are."""
    await registry_changes.end(parts, DocumentEnd(Provider, _provider_of(parts, caller, name).name), caller.name)
