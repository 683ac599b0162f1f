"""Doors with a port of their own: their paths stand at its root, exactly as their documents write them."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from tidings.config import ServerSettings, Settings
from tidings.errors import Misconfigured
from tidings.facades.doors import Doors
from tidings.server.asgi import App, Receive, Scope, Send


def own_ports(settings: Settings) -> dict[str, ServerSettings]:
    """The doors that have a port of their own, and where they listen. Raises Misconfigured."""
    wanted = {"horizon": settings.horizon.port}
    ports = {door: port for door, port in wanted.items() if port}
    for door, port in ports.items():
        if port == settings.server.port:
            raise Misconfigured(f"{door}.port is the common port: its paths would clash with the API's", found=port)
    return {door: replace(settings.server, port=port) for door, port in ports.items()}


def at_root(doors: Doors, name: str) -> App:
    """A door whose paths are those of the request."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        door = await doors.of(name)
        await door(scope, receive, send)

    return answer


Listening = Callable[[ServerSettings], socket.socket]


def listeners(settings: Settings, doors: Doors, listening: Listening) -> Iterator[tuple[Any, socket.socket]]:
    """The applications beside the common one, each with its socket."""
    for name, server in own_ports(settings).items():
        yield at_root(doors, name), listening(server)
