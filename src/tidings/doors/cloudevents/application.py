"""The CloudEvents door as one application: publishing on the hot path, everything else is loaded when it is first asked for."""

from __future__ import annotations

import asyncio
from typing import Any

from tidings.doors.api_parts import ApiParts
from tidings.doors.cloudevents.publish import BY_TYPE, CloudEventsPublish
from tidings.server.asgi import App, Receive, Scope, Send

_TOPICS = "/topics/"
_EVENTS = "/events"


def open_door(parts: ApiParts) -> App:
    """The application over these parts."""
    return CloudEventsApplication(parts)


class CloudEventsApplication:
    """Sees paths without the door's prefix."""

    def __init__(self, parts: ApiParts) -> None:
        self._parts = parts
        self._publish = CloudEventsPublish(parts)
        self._loading: asyncio.Future[Any] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        if path.startswith(_TOPICS):
            await self._publish(scope, receive, send, path[len(_TOPICS) :])
        elif path == _EVENTS:
            await self._publish(scope, receive, send, BY_TYPE)
        else:
            management = await self._management()
            await management(scope, receive, send)

    async def _management(self) -> App:
        """Imported in a thread, once: filters and egress take longer than thousands of events."""
        if self._loading is None:
            self._loading = asyncio.ensure_future(asyncio.to_thread(_made, self._parts))
        app: App = await asyncio.shield(self._loading)
        return app


def _made(parts: ApiParts) -> App:
    from tidings.doors.cloudevents.subscriptions.application import subscriptions_app

    return subscriptions_app(parts)
