"""Everything of the door but publishing, as one FastAPI application with its own OpenAPI document."""

from __future__ import annotations

import asyncio

from fastapi import FastAPI

from tidings import __version__
from tidings.doors.api_parts import ApiParts
from tidings.doors.hermes.resources import dead_letters, groups, operations, providers, queries, settings, subscriptions, topics
from tidings.doors.hermes.resources.openapi import describe
from tidings.doors.hermes.resources.request import FORM, REFUSALS
from tidings.doors.hermes.views.metrics import DeliveryRates
from tidings.doors.requests.error_answers import install

ABOUT = "The Hermes door: groups, topics, subscriptions and OAuth providers as Hermes' management has them."


def management_app(parts: ApiParts) -> FastAPI:
    """The application over these parts."""
    app = FastAPI(
        title="Tidings: the Hermes door",
        version=__version__,
        description=ABOUT,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        responses=REFUSALS,
        redirect_slashes=False,
    )
    app.state.parts = parts
    app.state.changing = asyncio.Lock()
    app.state.rates = DeliveryRates(parts.delivery, parts.clock)
    install(app, FORM)
    # Paths with words of their own come before those with names in the same place.
    for resource in (settings, queries, groups, topics, subscriptions, operations, dead_letters, providers):
        app.include_router(resource.router)
    describe(app)
    return app
