"""The routes of a registry revision: read by the driver, carried to the workers. Workers open no registry.

A route travels in its encoded form, which is also its name: two revisions share the routes whose bytes are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

import msgspec

from tidings.log.position import LaneNumber, Marks
from tidings.registry.model import Route
from tidings.registry.port import RegistryReader
from tidings.registry.rules import RouteHistory
from tidings.registry.rules.fills import WantedFill

EncodedRoute: TypeAlias = bytes

SAME_FLOOR = 200
"""Revisions after which superseded routes are left behind: until then they are compiled along, so that little changes."""

encode_route = msgspec.json.Encoder().encode
decode_route = msgspec.json.Decoder(Route).decode


@dataclass(frozen=True, slots=True)
class RouteTable:
    """All routes that govern positions not yet routed, as of one revision. Only the keys of `routes` count.

    `schemas`: the Avro schemas that payloads of these positions may have been written by.
    """

    revision: int
    routes: Mapping[EncodedRoute, None]
    schemas: tuple[str, ...] = ()

    def since(self, before: RouteTable | None) -> RouteChange:
        """What has changed since an earlier table."""
        known = {} if before is None else before.routes
        added = [route for route in self.routes if route not in known]
        told = frozenset(() if before is None else before.schemas)
        schemas = [schema for schema in self.schemas if schema not in told]
        return RouteChange(self.revision, added, [route for route in known if route not in self.routes], schemas)


class RouteChange(msgspec.Struct, frozen=True, array_like=True):
    """From one table to the next."""

    revision: int
    added: list[EncodedRoute]
    removed: list[EncodedRoute]
    schemas: list[str] = []


class Routes:
    """Reads route tables; `floor` says where what is yet to be routed begins.

    Ask `current` after the end of what is to be routed was fixed: every change that governs it is there.
    """

    def __init__(self, registry: RegistryReader, floor: Callable[[], Marks]) -> None:
        self._registry = registry
        self._new_floor = floor
        self._floor = floor()
        self._floored = registry.revision()
        self.fills: Mapping[LaneNumber, WantedFill] = {}
        """The fillings that subscriptions ask for, as of the newest table. Another thread may read it: it is never changed."""
        self._history: RouteHistory | None = None
        self._lanes: dict[LaneNumber, list[EncodedRoute]] = {}
        self._table: RouteTable | None = None

    def current(self) -> RouteTable:
        """The table of the newest revision. What came after the end that was fixed holds above it, and does no harm."""
        revision = self._registry.revision()
        if self._table is None or revision != self._table.revision:
            if revision - self._floored > SAME_FLOOR:
                self._floor, self._floored, self._history = self._new_floor(), revision, None
            self._table = self._renewed()
        return self._table

    def _renewed(self) -> RouteTable:
        """The next table. Only the routes of lanes that changes have touched are made anew."""
        if self._history is None:
            self._history, self._lanes = self._registry.route_history(self._floor), {}
            self.fills = {}
            touched = set(self._history.lanes)
        else:
            touched = self._registry.renew(self._history)
        for lane in touched:
            self._lanes[lane] = [encode_route(route) for route in self._history.routes_of(lane)]
        fills = {lane: self._history.fill_of(lane) for lane in touched}
        if any(fills.values()) or not fills.keys().isdisjoint(self.fills):
            known = {lane: fill for lane, fill in {**self.fills, **fills}.items() if fill is not None}
            self.fills = known
        routes = dict.fromkeys(chain.from_iterable(self._lanes.values()))
        return RouteTable(self._history.revision, routes, tuple(self._history.avro_schemas))
