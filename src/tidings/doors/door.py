"""What a door is, and the doors of one api process: which of them a path belongs to, each loaded when it is first asked for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from tidings.server.asgi import App

if TYPE_CHECKING:
    # The supervisor asks doors for their ports, and needs nothing else of the hub for it.
    from tidings.config import Settings
    from tidings.doors.api_parts import ApiParts
    from tidings.registry.model import Name, Snapshot

_making = threading.Lock()
"""One at a time: pydantic's models, of which several doors are made, cannot be made in two threads at once."""


@dataclass(frozen=True, slots=True)
class Door:
    """One way to speak to the hub. Light: nothing of the door is loaded before somebody asks for it.

    `application` names the module whose `open_door(parts)` makes the ASGI application, which sees paths as the door's documents
    write them. `claims` gives that path for a path on the common port, or None for another door's. `aliases` are further paths
    that documents of the registry give to the door.
    `owns` says whether the door's own documents decide about a namespace of topics and subscriptions; `changed_by` tells users
    how to change them. `divided`: namespaces that begin so are of one realm each, and tokens of other realms do not reach them.
    `longest_retention` (seconds) bounds how long their events may be kept. `port` is the door's own one.
    `format` names the module whose `lane_format(layout, settings)` lays out what goes out for the door's subscriptions; empty: they
    get CloudEvents. The deliver processes load it.
    """

    name: str
    title: str
    prefix: str
    application: str
    claims: Callable[[str], str | None]
    aliases: Callable[[], Callable[[Snapshot, str], bool]] | None = None
    owns: Callable[[str], bool] = lambda namespace: False
    changed_by: str = ""
    longest_retention: float | None = None
    divided: str = ""
    port: Callable[[Settings], int] = lambda settings: 0
    format: str = ""


HUBS_OWN = ("/health", "/metrics", "/console")
"""Addresses that belong to no door."""


def reserved_addresses(doors: Sequence[Door]) -> tuple[str, ...]:
    """What stands at and below these addresses is the hub's own, now or in a later version."""
    return tuple(dict.fromkeys((*(door.prefix for door in doors), *HUBS_OWN)))


def reserved_words(doors: Sequence[Door]) -> frozenset[str]:
    """The first words of these addresses: nothing else can stand at the beginning of a path."""
    return frozenset(address.strip("/").partition("/")[0] for address in reserved_addresses(doors))


def format_modules(doors: Sequence[Door]) -> Mapping[str, str]:
    """Where the formats of these doors are, by the names of the doors."""
    return {door.name: door.format for door in doors if door.format}


def owner_of(doors: Sequence[Door], name: Name | str) -> Door | None:
    """The door whose documents decide about a name, or about a namespace."""
    namespace = name if isinstance(name, str) else name.namespace
    return next((door for door in doors if door.owns(namespace)), None)


def door_of(doors: Sequence[Door], path: str) -> tuple[Door, str] | None:
    """The first door that claims a path of the common port, and the path as its documents write it."""
    for door in doors:
        inside = door.claims(path)
        if inside is not None:
            return door, inside
    return None


class Doors:
    """The doors of one api process, in the order in which they are asked. The last one gets what no other claims."""

    def __init__(self, parts: ApiParts, doors: Sequence[Door]) -> None:
        self._parts = parts
        self._doors = doors
        self._aliases = [(door, door.aliases()) for door in doors if door.aliases is not None]
        self._open: dict[str, App] = {}
        self._opening: dict[str, asyncio.Future[App]] = {}

    def meant(self, path: str) -> tuple[Door, str]:
        """The door that a path of the common port belongs to, and the path as that door sees it."""
        found = door_of(self._doors, path)
        if found is not None:
            return found
        for door, is_alias in self._aliases:
            if is_alias(self._parts.snapshot, path):
                return door, path
        return self._doors[-1], path

    async def load(self) -> None:
        """Open the last door, which most requests of people go to, before somebody asks for it."""
        await self.opened(self._doors[-1])

    async def opened(self, door: Door) -> App:
        """The application of a door. FastAPI takes longer to import than all the rest together, so it happens in a thread."""
        app = self._open.get(door.name)
        if app is None:
            if door.name not in self._opening:
                self._opening[door.name] = asyncio.ensure_future(asyncio.to_thread(self._made, door))
            app = self._open[door.name] = await asyncio.shield(self._opening[door.name])
        return app

    def _made(self, door: Door) -> App:
        with _making:
            app: App = import_module(door.application).open_door(self._parts)
        return app
