"""The native door as one FastAPI application: routes, refusals, the OpenAPI document and its page."""

from __future__ import annotations

from fastapi import Depends, FastAPI
from starlette.responses import HTMLResponse, Response

from tidings import __version__
from tidings.access.settings_checks import OPEN
from tidings.doors.api_parts import ApiParts
from tidings.doors.feed_state.partition_changes import Repartitioning
from tidings.doors.native import (
    asides,
    changes,
    explain,
    exposures,
    feeds,
    filters,
    refusals,
    status,
    subscriptions,
    topic_events,
    topics,
)
from tidings.doors.native.api_page import page
from tidings.doors.native.apply import resource as apply
from tidings.doors.native.delivery import (
    dead_letters,
    deliveries,
    lanes,
    policies,
    providers,
    secrets,
    streams,
    trace,
    webhooks,
)
from tidings.doors.native.request_checks import Doorstep
from tidings.doors.requests.error_answers import install
from tidings.doors.requests.route_parameters import only_declared

ABOUT = (
    "Publish an event once over HTTP; everyone who asked for it gets it. "
    "Refusals are problem+json (RFC 9457): `code` is for programs, `detail` for people. "
    "Names are written `name`, or `namespace:name` outside of the default namespace."
)


def open_door(parts: ApiParts) -> FastAPI:
    """The application over these parts."""
    app = FastAPI(
        title="Tidings",
        version=__version__,
        description=ABOUT,
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        responses=refusals.REFUSALS,
        redirect_slashes=False,
        dependencies=[Depends(only_declared)],
    )
    app.state.parts = parts
    app.state.repartitioning = Repartitioning(parts)
    install(app, refusals.FORM)
    # What stands below a name comes first: a name may itself hold slashes.
    below = (feeds, topic_events, explain, trace, lanes, deliveries, dead_letters, policies, secrets, streams, webhooks)
    for resource in (*below, topics, subscriptions, exposures, providers, filters, apply, asides, changes, status):
        app.include_router(resource.router)
    app.add_api_route("/api/docs", _page(app), include_in_schema=False)
    app.add_middleware(Doorstep, trusting=parts.settings.access.mode == OPEN)
    return app


def _page(app: FastAPI):  # type: ignore[no-untyped-def]
    async def docs() -> Response:
        return HTMLResponse(page(app.openapi()))

    return docs
