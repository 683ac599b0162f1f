"""Changing the registry: every change is checked, stamped between two commits of the log, and in force before it is answered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tidings.doors.api_parts import ApiParts
from tidings.doors.door import reserved_addresses
from tidings.events.schema import Schema
from tidings.log.position import Marks
from tidings.registry.model import Snapshot
from tidings.registry.port import Document, DocumentEnd, WantedChange
from tidings.registry.rules import World, check, plan_change
from tidings.registry.rules.credentials import sealed

Guard = Callable[[Snapshot], None]
"""Looks at what is in force at the moment of the change and raises what speaks against it."""


def nothing_against(snapshot: Snapshot) -> None:
    """The guard that lets every change pass."""


def check_documents(parts: ApiParts, documents: Sequence[Document]) -> None:
    """Raise InvalidDocument unless every document is right in itself, its filter or schema included."""

    def parse(dialect: str, text: Any) -> object:
        # Imported late: the router behind it needs numpy, which nobody who only publishes should wait for.
        from tidings import filters

        return filters.parse(dialect, text, parts.regex)

    check(documents, parse=parse, compile_schema=Schema.compiled, reserved=reserved_addresses(parts.doors))


def check_change(parts: ApiParts, documents: Sequence[Document], endings: Sequence[DocumentEnd]) -> None:
    """Raise whatever `change` would raise, as far as it can be told now. Changes nothing."""
    check_documents(parts, documents)
    plan_change(World(parts.snapshot), safe(parts, documents), endings, parts.clock.now())


def safe(parts: ApiParts, documents: Sequence[Document]) -> list[Document]:
    """The documents with their secrets sealed: what is stored, compared and shown. Doing it twice changes nothing."""
    return [sealed(document, parts.box.seal) for document in documents]


async def put(parts: ApiParts, documents: Sequence[Document], by: str, guard: Guard = nothing_against) -> Sequence[Document]:
    """Create or replace these documents in one revision, all or nothing; the documents as they are in force."""
    return await change(parts, documents, (), by, guard)


async def end(parts: ApiParts, ending: DocumentEnd, by: str, guard: Guard = nothing_against) -> None:
    """End one document, and what cannot stand without it."""
    await change(parts, (), (ending,), by, guard)


async def change(
    parts: ApiParts, documents: Sequence[Document], endings: Sequence[DocumentEnd], by: str, guard: Guard = nothing_against
) -> Sequence[Document]:
    """Put documents and end others in one revision, all or nothing; the documents put as they are in force."""
    check_documents(parts, documents)
    stored, at = safe(parts, documents), parts.clock.now()

    def plan(snapshot: Snapshot, marks: Marks) -> WantedChange:
        guard(snapshot)
        return WantedChange(stored, endings, by, at)

    try:
        return await parts.changes.change(plan)
    finally:
        parts.current.refresh()
        # Whoever waits for events looks whether there is still something to wait for.
        parts.waiting.nudge()
        parts.lane_waiting.nudge()
