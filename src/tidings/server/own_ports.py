"""Doors with a port of their own: their paths are those of their documents, and those of the common port hold there too."""

from __future__ import annotations

from dataclasses import replace

from tidings.config import ServerSettings, Settings
from tidings.doors.all_doors import DOORS
from tidings.doors.door import Door, Doors
from tidings.errors import Misconfigured
from tidings.server.asgi import App, Receive, Scope, Send


def own_ports(settings: Settings) -> dict[str, ServerSettings]:
    """The doors that have a port of their own, and where they listen. Raises Misconfigured."""
    ports = {door.name: port for door in DOORS if (port := door.port(settings))}
    for door, port in ports.items():
        if not 0 < port <= 65535:
            raise Misconfigured(f"{door}.port is {port}: ports are 1 to 65535, and 0 is none")
        if port == settings.server.port:
            raise Misconfigured(f"{door}.port is the common port: its paths would clash with the API's", found=port)
    return {door: replace(settings.server, port=port) for door, port in ports.items()}


def at_root(doors: Doors, door: Door) -> App:
    """A door whose paths are those of the request. Whoever has an address of the common port may use it here as it is."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        app, inside = await doors.opened(door), door.claims(scope["path"])
        await app(scope if inside is None else {**scope, "path": inside}, receive, send)

    return answer


def apps_beside(settings: Settings, doors: Doors) -> list[App]:
    """The applications beside the common one, in the order of `own_ports`."""
    ports = own_ports(settings)
    return [at_root(doors, door) for door in DOORS if door.name in ports]
