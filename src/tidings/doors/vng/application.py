"""The VNG door as one application: publishing on the hot path, everything else loaded when it is asked for."""

from __future__ import annotations

import asyncio

from tidings.doors.api_parts import ApiParts
from tidings.doors.vng.publish.resource import VngPublish
from tidings.server.asgi import App, Receive, Scope, Send

EVENTS = ("/events", "/events/")


def open_door(parts: ApiParts) -> App:
    """The application over these parts."""
    return VngApplication(parts)


class VngApplication:
    """Sees paths as VNG's documents write them."""

    def __init__(self, parts: ApiParts) -> None:
        self._parts = parts
        self._publish = VngPublish(parts)
        self._loading: asyncio.Future[App] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] in EVENTS:
            await self._publish(scope, receive, send)
            return
        resources = await self._resources()
        await resources(scope, receive, send)

    async def _resources(self) -> App:
        if self._loading is None:
            self._loading = asyncio.ensure_future(asyncio.to_thread(_made, self._parts))
        return await asyncio.shield(self._loading)


def _made(parts: ApiParts) -> App:
    # The handshakes and filters behind it are loaded when somebody manages something, not when somebody publishes.
    from tidings.doors.vng.resources.routes import Resources

    return Resources(parts)
