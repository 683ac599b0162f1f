"""Small registries in memory: changes are planned and applied without a store."""

from __future__ import annotations

from collections.abc import Sequence

from tests.builders import a_name
from tidings.clock import Instant
from tidings.registry.model import ApprovalState, Snapshot
from tidings.registry.port import Document, DocumentEnd
from tidings.registry.rules import ChangePlan, World, applied, plan_change


def a_world(*documents: Document) -> World:
    """What is in force after these were put one after the other."""
    world = World(Snapshot(revision=0))
    for document in documents:
        world = put(world, document)
    return world


def put(world: World, *documents: Document, at: int = 1) -> World:
    return changed(world, documents, at=at)


def without(world: World, kind: type[Document], name: str, *, force: bool = False) -> World:
    return changed(world, ends=[ending(kind, name, force=force)])


def changed(world: World, puts: Sequence[Document] = (), ends: Sequence[DocumentEnd] = (), at: int = 1) -> World:
    return after(world, plan_change(world, puts, ends, Instant(at)))


def ending(kind: type[Document], name: str, *, force: bool = False) -> DocumentEnd:
    return DocumentEnd(kind, a_name(name), force)


def after(world: World, plan: ChangePlan) -> World:
    return World(applied(world.snapshot, plan, world.snapshot.revision + 1), plan.numbers)


def states(world: World) -> dict[tuple[str, str], ApprovalState]:
    """The approvals in force, by subscription and topic."""
    return {(str(pair[0]), str(pair[1])): approval.state for pair, approval in world.snapshot.approvals.items()}
