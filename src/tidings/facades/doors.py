"""The doors: which of them a path belongs to, and the door itself, loaded when it is first asked for."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Mapping
from importlib import import_module

from tidings.facades.feeds.aliases import Aliases
from tidings.facades.parts import Parts
from tidings.server.asgi import App

NATIVE = "native"

DOORS: Mapping[str, str] = {
    NATIVE: "tidings.facades.native.door",
    "feeds": "tidings.facades.feeds.door",
    "horizon": "tidings.facades.horizon.door",
}
"""The module of each door; its `open_door(parts)` makes the application, which sees paths as the door's documents write them."""

_HORIZON = re.compile(r"(?:/[^/]+)?/horizon/(?:sse|events|publish|rover|schemas)(?:/|$)")
"""Paths of the Horizon documents that begin with the door's prefix anyway, or with an environment before it."""

_KEYS = ("/.well-known/jwks.json", "/.well-known/openid-configuration")
"""Where those who get the hub's tokens look for its keys."""

_making = threading.Lock()
"""One at a time: pydantic's models, of which several doors are made, do not stand being made in two threads at once."""


def door_of(path: str) -> tuple[str, str] | None:
    """The door that a path on the common port belongs to, and the path as its documents write it. None: the native one."""
    if path.startswith("/feeds") and path[6:7] in ("", "/"):
        return "feeds", path
    if path.startswith("/api/"):
        return None
    if "/horizon/" in path and _HORIZON.match(path):
        return "horizon", path
    if path.startswith("/horizon/"):
        return "horizon", path[8:]
    if path in _KEYS:
        return "horizon", path
    return None


class Doors:
    """The doors of one api process."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._open: dict[str, App] = {}
        self._opening: dict[str, asyncio.Future[App]] = {}
        self._aliases = Aliases()

    def meant(self, path: str) -> tuple[str, str] | None:
        """As `door_of`, with the aliases of feeds."""
        found = door_of(path)
        if found is None and self._aliases.meaning(self._parts.snapshot, path) is not None:
            return "feeds", path
        return found

    async def of(self, name: str) -> App:
        """The door of this name. FastAPI takes longer to import than all the rest together, so it happens in a thread."""
        door = self._open.get(name)
        if door is None:
            if name not in self._opening:
                self._opening[name] = asyncio.ensure_future(asyncio.to_thread(self._made, name))
            door = self._open[name] = await asyncio.shield(self._opening[name])
        return door

    def _made(self, name: str) -> App:
        with _making:
            door: App = import_module(DOORS[name]).open_door(self._parts)
        return door
