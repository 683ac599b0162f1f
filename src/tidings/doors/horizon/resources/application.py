"""Everything of the door but publishing and streaming, as one FastAPI application with its own OpenAPI document."""

from __future__ import annotations

from urllib.parse import urlsplit

from fastapi import Depends, FastAPI

from tidings import __version__
from tidings.config import Settings
from tidings.doors.api_parts import ApiParts
from tidings.doors.horizon.documents.environment import Shelf
from tidings.doors.horizon.documents.settings import DocumentSettings
from tidings.doors.horizon.resources import breakers, events, keys, listings, payloads, rovers, subscriptions
from tidings.doors.horizon.resources.openapi import describe
from tidings.doors.horizon.resources.request import FORM, REFUSALS
from tidings.doors.requests.error_answers import install
from tidings.doors.requests.route_parameters import only_declared

ABOUT = (
    "The Horizon door: documents are applied, subscriptions approved, deliveries looked at and sent again. "
    "Refusals are problem+json with `violations` where faults can be listed."
)


def management_app(parts: ApiParts) -> FastAPI:
    """The application over these parts."""
    app = FastAPI(
        title="Tidings: the Horizon door",
        version=__version__,
        description=ABOUT,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        responses=REFUSALS,
        redirect_slashes=False,
    )
    app.state.parts = parts
    app.state.ground = ground_of(parts)
    app.state.shelf = Shelf(app.state.ground)
    install(app, FORM)
    for resource in (rovers, listings, subscriptions, events, breakers, payloads):
        app.include_router(resource.router, dependencies=[Depends(only_declared)])
    app.include_router(keys.router)
    describe(app)
    return app


def ground_of(parts: ApiParts) -> DocumentSettings:
    """What of the settings documents rest on."""
    settings = parts.settings
    return DocumentSettings(
        regex=parts.regex,
        own_urls=own_urls(settings),
        internet_zones=tuple(zone.lower() for zone in settings.horizon.internet_zones),
        data_bytes=settings.horizon.data_bytes,
        jsonpath_types=settings.horizon.jsonpath_types,
    )


def own_urls(settings: Settings) -> tuple[str, ...]:
    """Hosts and ports where the hub itself answers."""
    ports = [port for port in (settings.server.port, settings.horizon.port) if port]
    local = (f"{host}:{port}" for host in ("localhost", "127.0.0.1", "[::1]") for port in ports)
    return (urlsplit(settings.hub_url).netloc.lower(), *local)
