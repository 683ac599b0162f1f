"""All documents of one environment, read: what stands now, and what would stand with others put over it."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

from tidings.doors.horizon.documents.findings import DocumentPart, Findings
from tidings.doors.horizon.documents.rovers import RequestedExposure, Rover, rover
from tidings.doors.horizon.documents.settings import DocumentSettings
from tidings.doors.horizon.documents.specifications import Specification, specification
from tidings.doors.horizon.documents.subscriptions import RequestedSubscription
from tidings.doors.horizon.names import ROVER, SPECIFICATION, paper_name
from tidings.registry.model import Name, Paper, Snapshot

Wish: TypeAlias = Rover | Specification


Exposing: TypeAlias = tuple[str, Rover, RequestedExposure]
Subscribing: TypeAlias = tuple[str, Rover, RequestedSubscription]
"""An application by its client id, its whole wish, and the part that is meant."""


@dataclass(frozen=True)
class Environment:
    """The documents of one environment: Rovers by client id, specifications by name."""

    environment: str
    rovers: Mapping[str, Rover] = field(default_factory=dict)
    specifications: Mapping[str, Specification] = field(default_factory=dict)

    @cached_property
    def _exposing(self) -> Mapping[str, list[Exposing]]:
        found: dict[str, list[Exposing]] = defaultdict(list)
        for client, one in self.rovers.items():
            for wish in one.exposures:
                found[wish.event_type].append((client, one, wish))
        return found

    @cached_property
    def _subscribing(self) -> Mapping[str, list[Subscribing]]:
        found: dict[str, list[Subscribing]] = defaultdict(list)
        for client, one in self.rovers.items():
            for wish in one.subscriptions:
                found[wish.event_type].append((client, one, wish))
        return found

    @cached_property
    def _specifying(self) -> Mapping[str, Specification]:
        return {one.type: one for one in self.specifications.values()}

    @property
    def event_types(self) -> list[str]:
        """Every type that a document speaks of."""
        return sorted({*self._specifying, *self._exposing, *self._subscribing})

    def exposing(self, event_type: str) -> Exposing | None:
        """The application that exposes the type."""
        return next(iter(self._exposing.get(event_type, ())), None)

    def also_exposing(self, client: str, event_type: str) -> str | None:
        """Another application that exposes the type."""
        return next((other for other, _, _ in self._exposing.get(event_type, ()) if other != client), None)

    def subscribing(self, event_type: str) -> list[Subscribing]:
        """The applications that subscribe to the type."""
        return self._subscribing.get(event_type, [])

    def specifying(self, event_type: str) -> Specification | None:
        """The specification of the type."""
        return self._specifying.get(event_type)

    def names(self, event_type: str) -> bool:
        """Whether any document speaks of the type."""
        return any(event_type in index for index in (self._specifying, self._exposing, self._subscribing))

    def subscription(self, client: str, event_type: str) -> RequestedSubscription | None:
        """What this application wants of the type."""
        one = self.rovers.get(client)
        return next((wish for wish in one.subscriptions if wish.event_type == event_type), None) if one else None

    def exposure(self, client: str, event_type: str) -> RequestedExposure | None:
        """What this application offers of the type."""
        one = self.rovers.get(client)
        return next((wish for wish in one.exposures if wish.event_type == event_type), None) if one else None

    def over(self, kind: str, key: str, wish: Wish | None) -> Environment:
        """With this document instead of its former self; None: without it."""
        rovers, specifications = dict(self.rovers), dict(self.specifications)
        table: dict[str, Any] = rovers if kind == ROVER else specifications
        table.pop(key, None)
        if wish is not None:
            table[key] = wish
        return Environment(self.environment, rovers, specifications)

    def types_of(self, kind: str, key: str) -> set[str]:
        """The types that a document has to do with; an application's also where it is an additional publisher."""
        if kind != ROVER:
            found = self.specifications.get(key)
            return {found.type} if found else set()
        one = self.rovers.get(key)
        own = {wish.event_type for wish in one.exposures} | {wish.event_type for wish in one.subscriptions} if one else set()
        offers = (wish for listed in self._exposing.values() for _, _, wish in listed)
        return own | {wish.event_type for wish in offers if key in wish.additional}


class Shelf:
    """Reads papers, each only once: a paper that stands stays the same value. `changing` is held by who changes papers."""

    def __init__(self, ground: DocumentSettings) -> None:
        # Addresses of the hub may change; what was taken stays.
        self._ground = replace(ground, own_urls=())
        self._read: dict[Name, tuple[Paper, Wish | None]] = {}
        self.changing = asyncio.Lock()

    def standing(self, snapshot: Snapshot, environment: str) -> Environment:
        """What stands in this environment."""
        rovers = self._of(snapshot, paper_name(environment, ROVER, "").namespace)
        specifications = self._of(snapshot, paper_name(environment, SPECIFICATION, "").namespace)
        return Environment(
            environment,
            {name: wish for name, wish in rovers.items() if isinstance(wish, Rover)},
            {name: wish for name, wish in specifications.items() if isinstance(wish, Specification)},
        )

    def _of(self, snapshot: Snapshot, namespace: str) -> dict[str, Wish | None]:
        return {name.name: self._wish(paper) for name, paper in snapshot.papers.items() if name.namespace == namespace}

    def _wish(self, paper: Paper) -> Wish | None:
        known = self._read.get(paper.name)
        if known is None or known[0] is not paper:
            known = self._read[paper.name] = (paper, read(DocumentPart(paper.text, "", Findings(stands=True)), self._ground))
        return known[1]


def read(place: DocumentPart, ground: DocumentSettings) -> Wish | None:
    """The wish of a document of either kind; None when it has faults, which `place` then holds."""
    return rover(place, ground) if place.raw.get("kind") == ROVER else specification(place)
