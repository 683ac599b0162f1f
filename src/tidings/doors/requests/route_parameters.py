"""The query parameters of FastAPI routes: what a route does not declare is refused."""

from __future__ import annotations

from collections.abc import Iterator

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from tidings.doors.requests.query_parameters import refuse_unknown


async def only_declared(request: Request) -> None:
    """For every route of an application or router. Raises Malformed."""
    route = request.scope.get("route")
    if request.query_params and isinstance(route, APIRoute):
        refuse_unknown(request.query_params, frozenset(_declared(route.dependant)))


def _declared(dependant: Dependant) -> Iterator[str]:
    yield from (one.alias for one in dependant.query_params)
    for below in dependant.dependencies:
        yield from _declared(below)
