"""The port of the registry store. One writer (the api process), any number of readers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

from tidings.clock import Instant
from tidings.log.position import Marks
from tidings.registry.model import Approval, Change, Exposure, Name, Route, Snapshot, Subscription, Topic

Document: TypeAlias = Topic | Exposure | Subscription | Approval


class RegistryReader(Protocol):
    """Reads any version; safe in any process and thread."""

    def revision(self) -> int:
        """The number of the newest settled change. Very cheap: asked for every micro-batch and, cached, for every publish."""

    def snapshot(self) -> Snapshot:
        """Everything in force now."""

    def routes(self, after: Marks) -> Sequence[Route]:
        """Every route version in force at some position above `after`, for all lanes."""

    def changes(self, after: int, limit: int) -> Sequence[Change]:
        """The audit log, oldest first, from the revision after `after`."""


class RegistryWriter(RegistryReader, Protocol):
    """Changes the registry. Calls come from one thread at a time, inside `LogWriter.fence`."""

    def put(self, documents: Sequence[Document], *, by: str, at: Instant, marks: Marks) -> Sequence[Document]:
        """Create or replace these documents in one revision that holds from above `marks`; durable when it returns.

        Assigns topic and lane numbers. All or nothing; a document equal to what is in force makes no new version.
        """

    def delete(self, kind: type[Document], name: Name, *, by: str, at: Instant, marks: Marks, force: bool = False) -> Document:
        """End the document in force from above `marks`, and what cannot stand without it. Raises NotFound or Conflict.

        A topic that subscriptions ask for by name ends only with `force`; they keep their other topics, or end with it.
        """

    def forget(self, below: Marks) -> int:
        """Drop superseded versions that govern no position above `below`; how many went."""
