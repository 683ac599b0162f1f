"""The Hermes door as one application: publishing on the hot path, everything else in a framework that is loaded when needed."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any

from tidings.doors.api_parts import ApiParts
from tidings.doors.hermes.publish.resource import HermesPublish
from tidings.server.asgi import App, Receive, Scope, Send, answer

PUBLISH = "/topics/"
_TEXT = (b"content-type", b"text/plain")


def open_door(parts: ApiParts) -> App:
    """The application over these parts."""
    return HermesApplication(parts)


class HermesApplication:
    """Sees paths as Hermes' documents write them: those of its frontend and of its management (HER-62)."""

    def __init__(self, parts: ApiParts) -> None:
        self._parts = parts
        self._publish = HermesPublish(parts)
        self._loading: asyncio.Future[Any] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, method = scope["path"], scope["method"]
        if method == "POST" and path.startswith(PUBLISH):
            topic = path[len(PUBLISH) :]
            # The names of topics have dots, those of other resources there have none.
            if "/" not in topic and "." in topic:
                await self._publish(scope, receive, send, topic)
                return
        if method == "GET" and (path == "/" or path.startswith("/status/")) and await self._told_status(path, send):
            return
        management = await self._management()
        await management(scope, receive, send)

    async def _told_status(self, path: str, send: Send) -> bool:
        """Whether this was a question about health (HER-71), and is answered."""
        if path in ("/", "/status/ping", "/status/health"):
            up, words = not self._stopping, ("UP", "SHUTDOWN")
        elif path == "/status/ready":
            up, words = not self._stopping, ("READY", "NOT_READY")
        else:
            return False
        status = HTTPStatus.OK if up else HTTPStatus.SERVICE_UNAVAILABLE
        await answer(send, status, [_TEXT], words[0 if up else 1].encode())
        return True

    @property
    def _stopping(self) -> bool:
        return not self._parts.board.face().ready

    async def _management(self) -> App:
        if self._loading is None:
            self._loading = asyncio.ensure_future(asyncio.to_thread(_made, self._parts))
        app: App = await asyncio.shield(self._loading)
        return app


def _made(parts: ApiParts) -> Any:
    from tidings.doors.hermes.resources.application import management_app

    return management_app(parts)
