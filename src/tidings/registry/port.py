"""The port of the registry store. One writer (the api process), any number of readers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

import msgspec

from tidings.clock import Instant
from tidings.log.position import LaneNumber, Marks
from tidings.registry.model import Approval, Change, Exposure, Name, Paper, Provider, Route, Snapshot, Subscription, Topic

if TYPE_CHECKING:
    from tidings.registry.rules.routes import RouteHistory

Document: TypeAlias = Topic | Exposure | Subscription | Approval | Provider | Paper


class DocumentEnd(msgspec.Struct, frozen=True):
    """A document that is to end. `force`: also a topic that subscriptions ask for by name."""

    kind: type[Document]
    name: Name
    force: bool = False


class Changed(msgspec.Struct, frozen=True):
    """What a change came to: what was put as it is in force now, and what was ended as it was, each in the order given."""

    stored: Sequence[Document]
    ended: Sequence[Document]


class RegistryReader(Protocol):
    """Reads any version; safe in any process and thread."""

    def revision(self) -> int:
        """The number of the newest settled change. Very cheap: asked for every step of routing and, cached, for every publish."""

    def snapshot(self) -> Snapshot:
        """Everything in force now."""

    def routes(self, after: Marks) -> Sequence[Route]:
        """Every route version in force at some position above `after`, for all lanes."""

    def route_history(self, after: Marks) -> RouteHistory:
        """The same, as a value that can be kept up to date."""

    def renew(self, history: RouteHistory) -> set[LaneNumber]:
        """Bring it up to date; the lanes whose routes may differ now. Costs what has changed, not what there is."""

    def changes(self, after: int, limit: int) -> Sequence[Change]:
        """The audit log, oldest first, from the revision after `after`."""


class WantedChange(NamedTuple):
    """What is to be put and what is to end, by whom and when."""

    puts: Sequence[Document]
    endings: Sequence[DocumentEnd]
    by: str
    at: Instant


class Changes(Protocol):
    """Changes what is in force, at one point of the log."""

    async def change(self, plan: Callable[[Snapshot, Marks], WantedChange]) -> Sequence[Document]:
        """Change the registry in one revision; what was put as it is in force now.

        `plan` looks at what is in force at the moment of the change, and at the point of the log from which it holds; what it
        raises is raised here, and nothing changes. It may be called again, so it does nothing else. Every event that was
        acknowledged before the call is judged by what was in force then, every later one by the change. Raises as
        `RegistryWriter.change`, and LogUnavailable.
        """

    async def forget(self, below: Marks) -> int:
        """Drop superseded versions that govern no position above `below`; how many went."""


class RegistryWriter(RegistryReader, Protocol):
    """Changes the registry. Calls come from one thread at a time, inside `LogWriter.fence`."""

    def change(
        self, puts: Sequence[Document], endings: Sequence[DocumentEnd], *, by: str, at: Instant, marks: Marks
    ) -> Changed:
        """Create or replace documents and end others in one revision that holds from above `marks`; durable when it returns.

        All or nothing, and judged by what it leads to: a topic may end together with the subscriptions that ask for it. With
        `force` it takes them along; those with other topics keep these. Assigns topic and lane numbers. A document equal to
        what is in force makes no new version. Raises InvalidDocument, Forbidden, NotFound or Conflict.
        """

    def put(self, documents: Sequence[Document], *, by: str, at: Instant, marks: Marks) -> Sequence[Document]:
        """`change` that only puts; the documents as they are in force."""

    def delete(self, kind: type[Document], name: Name, *, by: str, at: Instant, marks: Marks, force: bool = False) -> Document:
        """`change` that only ends one document; the document as it was."""

    def forget(self, below: Marks) -> int:
        """Drop superseded versions that govern no position above `below`; how many went."""
