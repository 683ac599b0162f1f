"""Doors with a port of their own: their paths stand at its root, exactly as their documents write them."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from tidings.config import ServerSettings, Settings
from tidings.errors import Misconfigured
from tidings.facades.all_doors import DOORS
from tidings.facades.door import Door, Doors
from tidings.server.asgi import App, Receive, Scope, Send


def own_ports(settings: Settings) -> dict[str, ServerSettings]:
    """The doors that have a port of their own, and where they listen. Raises Misconfigured."""
    ports = {door.name: port for door in DOORS if (port := door.port(settings))}
    for door, port in ports.items():
        if port == settings.server.port:
            raise Misconfigured(f"{door}.port is the common port: its paths would clash with the API's", found=port)
    return {door: replace(settings.server, port=port) for door, port in ports.items()}


def at_root(doors: Doors, door: Door) -> App:
    """A door whose paths are those of the request."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        app = await doors.opened(door)
        await app(scope, receive, send)

    return answer


Listening = Callable[[ServerSettings], socket.socket]


def listeners(settings: Settings, doors: Doors, listening: Listening) -> Iterator[tuple[Any, socket.socket]]:
    """The applications beside the common one, each with its socket."""
    ports = own_ports(settings)
    for door in DOORS:
        if door.name in ports:
            yield at_root(doors, door), listening(ports[door.name])
