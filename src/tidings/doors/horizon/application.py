"""The Horizon door as one application: publishing on the hot path, everything else in a framework that is loaded when needed."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from tidings.doors.api_parts import ApiParts
from tidings.doors.horizon.publish.headers import TRACE, trace_of
from tidings.doors.horizon.publish.resource import Publish
from tidings.doors.horizon.stream.resource import Streams
from tidings.server.asgi import App, Message, Receive, Scope, Send

_PUBLISH = re.compile(r"/v1/(?P<named>[^/]+)/events/?|(?:/(?P<virtual>[^/]+))?/horizon/(?:events|publish)/v1/?")


def open_door(parts: ApiParts) -> App:
    """The application over these parts."""
    return HorizonApplication(parts)


class HorizonApplication:
    """Sees paths as Horizon's documents write them."""

    def __init__(self, parts: ApiParts) -> None:
        self._parts = parts
        self._publish = Publish(parts)
        self._streams = Streams(parts)
        self._environments: dict[str, str | None] = {}
        self._loading: asyncio.Future[Any] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        environment = self._publishing(scope["path"])
        if environment is not None:
            await self._publish(scope, receive, send, environment)
            return
        traced, stream = _traced(scope, send), self._streams.place(scope["path"])
        if stream is not None:
            await self._streams(scope, receive, traced, stream)
            return
        management = await self._management()
        await management(scope, receive, traced)

    def _publishing(self, path: str) -> str | None:
        """The environment that a publish path names; None for other paths."""
        if path in self._environments:
            return self._environments[path]
        found = _PUBLISH.fullmatch(path)
        environment = None if found is None else found["named"] or found["virtual"] or self._parts.settings.horizon.environment
        if len(self._environments) < 1000:
            self._environments[path] = environment
        return environment

    async def _management(self) -> App:
        if self._loading is None:
            self._loading = asyncio.ensure_future(asyncio.to_thread(_made, self._parts))
        app: App = await asyncio.shield(self._loading)
        return app


def _traced(scope: Scope, send: Send) -> Send:
    """Sends with the id of the caller's trace, or a new one (HOR-10)."""
    trace = trace_of(scope["headers"])

    async def with_trace(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), (TRACE.encode(), trace)]}
        await send(message)

    return with_trace


def _made(parts: ApiParts) -> Any:
    from tidings.doors.horizon.resources.application import management_app

    return management_app(parts)
