"""The routes of a registry revision: read by the driver, carried to the workers. Workers open no registry.

A route travels in its encoded form, which is also its name: two revisions share the routes whose bytes are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from tidings.log.position import Marks
from tidings.registry.model import Route
from tidings.registry.port import RegistryReader

EncodedRoute: TypeAlias = bytes

SAME_FLOOR = 200
"""Revisions after which superseded routes are left behind: until then they are compiled along, so that little changes."""

encode_route = msgspec.json.Encoder().encode
decode_route = msgspec.json.Decoder(Route).decode


@dataclass(frozen=True, slots=True)
class RouteTable:
    """All routes that govern positions not yet routed, as of one revision. Only the keys of `routes` count."""

    revision: int
    routes: Mapping[EncodedRoute, None]

    def since(self, before: RouteTable | None) -> RouteChange:
        """What has changed since an earlier table."""
        known = {} if before is None else before.routes
        added = [route for route in self.routes if route not in known]
        return RouteChange(self.revision, added, [route for route in known if route not in self.routes])


class RouteChange(msgspec.Struct, frozen=True, array_like=True):
    """From one table to the next."""

    revision: int
    added: list[EncodedRoute]
    removed: list[EncodedRoute]


class Routes:
    """Reads route tables. Ask `current` after the end of what is to be routed was fixed: every change that governs it is there."""

    def __init__(self, registry: RegistryReader, routed: Callable[[], Marks]) -> None:
        self._registry = registry
        self._routed = routed
        self._floor = routed()
        self._floored = registry.revision()
        self._table: RouteTable | None = None

    def current(self) -> RouteTable:
        """The table of the newest revision. What came after the end that was fixed holds above it, and does no harm."""
        revision = self._registry.revision()
        if self._table is None or revision != self._table.revision:
            if revision - self._floored > SAME_FLOOR:
                self._floor, self._floored = self._routed(), revision
            routes = self._registry.routes(self._floor)
            self._table = RouteTable(revision, dict.fromkeys(map(encode_route, routes)))
        return self._table
