"""Which methods a path knows: what `Allow` has to say with every 405."""

from __future__ import annotations

from starlette.requests import Request
from starlette.routing import Match

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def allowed_methods(request: Request) -> str:
    """The methods that some route takes at the path of this request."""
    routes = request.app.router.routes
    return ", ".join(
        method
        for method in METHODS
        if any(route.matches({**request.scope, "method": method})[0] is Match.FULL for route in routes)
    )
