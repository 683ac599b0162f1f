"""Changing the registry: a plan of the rules becomes one revision, durable when the call returns, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection, Engine, bindparam, delete, insert, select, update

from tidings.clock import Instant
from tidings.errors import DataFolderUnusable
from tidings.log.position import START, Marks
from tidings.log.sqlite.identity import OpenedFile
from tidings.log.wake import Bell
from tidings.registry.model import Name, Snapshot, Subscription
from tidings.registry.port import Changed, Document, DocumentEnd
from tidings.registry.rules import ChangePlan, DocumentKey, Numbers, World, applied, check_shape, key_of, plan_change
from tidings.registry.rules.changes import standing
from tidings.registry.rules.keys import WORDS
from tidings.registry.rules.retention import Former, former_after
from tidings.registry.store import rows
from tidings.registry.store.database import FILE, running
from tidings.registry.store.reader import SqlRegistryReader
from tidings.registry.store.schema import CHANGES, NUMBERS, REVISIONS, VERSIONS

REGISTRY_CHANNEL = "registry"
CREATE, UPDATE, DELETE = "create", "update", "delete"

_END = (
    update(VERSIONS)
    .where(*(VERSIONS.c[column] == bindparam(f"at_{column}") for column in ("kind", "namespace", "name", "topic")))
    .where(VERSIONS.c.until_revision.is_(None))
    .values(until_revision=bindparam("ended"))
)


class Stamp(msgspec.Struct, frozen=True):
    """Who changes something, when, and from above which marks it holds."""

    by: str
    at: Instant
    marks: Marks


class SqlRegistryWriter(SqlRegistryReader):
    """The RegistryWriter over a database. Made by `open_writer`; changes come from one thread at a time.

    In a data folder every change rings the channel `registry`.
    """

    def __init__(self, where: Path | str, reading: Engine, writing: Engine) -> None:
        super().__init__(where, reading)
        self._writing = writing
        self._file = OpenedFile(where / FILE) if isinstance(where, Path) else None
        self._world: World | None = None
        self._bell = Bell(where, REGISTRY_CHANNEL) if isinstance(where, Path) else None

    def snapshot(self) -> Snapshot:
        """Everything in force now; read again only when somebody else has changed something."""
        with running(self._where), self._engine.connect() as connection:
            return self._current(connection).snapshot

    def change(
        self, puts: Sequence[Document], endings: Sequence[DocumentEnd], *, by: str, at: Instant, marks: Marks
    ) -> Changed:
        """Put documents and end others in one revision. Filters and schemas are taken as they are: call `rules.check` before."""
        check_shape(puts)
        before, after = self._change(lambda world: plan_change(world, puts, endings, at), Stamp(by, at, marks))
        return Changed(
            [self._standing(after, key_of(document)) for document in puts],
            [self._standing(before, DocumentKey(WORDS[ending.kind], ending.name)) for ending in endings],
        )

    def put(self, documents: Sequence[Document], *, by: str, at: Instant, marks: Marks) -> Sequence[Document]:
        """Create or replace these documents in one revision; the documents as they are in force now."""
        return self.change(documents, (), by=by, at=at, marks=marks).stored

    def delete(self, kind: type[Document], name: Name, *, by: str, at: Instant, marks: Marks, force: bool = False) -> Document:
        """End a document and what cannot stand without it; the document as it was."""
        return self.change((), (DocumentEnd(kind, name, force),), by=by, at=at, marks=marks).ended[0]

    def forget(self, below: Marks) -> int:
        """Drop superseded versions that govern no position above `below`; how many went. The audit log stays."""
        self._check_file()
        with running(self._where), self._writing.begin() as connection:
            settled = rows.settled_by(connection, below)
            return connection.execute(delete(VERSIONS).where(VERSIONS.c.until_revision <= settled)).rowcount

    def close(self) -> None:
        """Release the files. Safe to call twice."""
        super().close()
        self._writing.dispose()
        if self._bell is not None:
            self._bell.close()

    def _change(self, planning: Callable[[World], ChangePlan], stamp: Stamp) -> tuple[Snapshot, Snapshot]:
        """Make one revision of the plan, unless it changes nothing; what was in force before and what is now."""
        self._check_file()
        with running(self._where), self._writing.begin() as connection:
            world = self._current(connection)
            plan = planning(world)
            if not (plan.puts or plan.ends):
                return world.snapshot, world.snapshot
            revision = world.snapshot.revision + 1
            marks = _raised(world.marks, stamp.marks)
            now = msgspec.structs.replace(applied(world.snapshot, plan, revision), former=_former(world.snapshot, plan, marks))
            after = World(now, plan.numbers, marks)
            _write(connection, world, plan, msgspec.structs.replace(stamp, marks=marks))
        # Only now is it durable. Had the commit failed, the next change would read everything again.
        self._world = after
        if self._bell is not None:
            self._bell.ring()
        return world.snapshot, after.snapshot

    def _check_file(self) -> None:
        """A change of a file that was deleted or replaced would be gone with this process."""
        if self._file is not None:
            self._file.check()

    def _current(self, connection: Connection) -> World:
        """What this connection sees in force. Two threads may hold worlds of two revisions for a moment; the next call heals it."""
        revision, world = rows.newest(connection), self._world
        if world is None or world.snapshot.revision != revision:
            last = {row.kind: row.last for row in connection.execute(select(NUMBERS))}
            world = self._world = World(rows.snapshot_of(connection), Numbers(**last), rows.marks_of(connection, revision))
        return world

    @staticmethod
    def _standing(snapshot: Snapshot, key: DocumentKey) -> Document:
        document = standing(snapshot, key.kind, key.place)
        assert document is not None
        return document


def _former(before: Snapshot, plan: ChangePlan, marks: Marks) -> Former:
    puts = [document for document in plan.puts if isinstance(document, Subscription)]
    return former_after(before, puts, [key.name for key in plan.ends if key.kind == WORDS[Subscription]], marks)


def _raised(last: Marks, given: Marks) -> Marks:
    """The marks of a new revision: those given, and the last ones for partitions that are not concerned."""
    for partition, offset in given.items():
        if offset < last.get(partition, START):
            raise DataFolderUnusable(
                "the log ends before a change that the registry holds: they are not of the same time",
                at=f"partition {partition}",
                found=offset,
                expected=f"at least {last[partition]}",
            )
    return {**last, **given}


def _write(connection: Connection, world: World, plan: ChangePlan, stamp: Stamp) -> None:
    revision = world.snapshot.revision + 1
    connection.execute(
        insert(REVISIONS), {"revision": revision, "at": stamp.at, "by": stamp.by, "marks": rows.text_of(stamp.marks)}
    )
    replaced = [key for key in map(key_of, plan.puts) if standing(world.snapshot, key.kind, key.place) is not None]
    ended = [_ended(key, revision) for key in (*plan.ends, *replaced)]
    if ended:
        connection.execute(_END, ended)
    if plan.puts:
        connection.execute(insert(VERSIONS), [rows.version_row(document, revision) for document in plan.puts])
    connection.execute(insert(CHANGES), [{"revision": revision, **line} for line in _lines(world.snapshot, plan)])
    if plan.numbers != world.numbers:
        connection.execute(delete(NUMBERS))
        connection.execute(insert(NUMBERS), [{"kind": k, "last": n} for k, n in msgspec.structs.asdict(plan.numbers).items()])


def _ended(key: DocumentKey, revision: int) -> dict[str, Any]:
    return {"ended": revision, **{f"at_{column}": value for column, value in rows.key_columns(key).items()}}


def _lines(before: Snapshot, plan: ChangePlan) -> Iterator[dict[str, Any]]:
    """The audit log's lines of one change."""
    number = 0
    for document in plan.puts:
        key = key_of(document)
        action = CREATE if standing(before, key.kind, key.place) is None else UPDATE
        yield {"line": number, "action": action, "kind": key.kind, "name": str(key), "document": rows.text_of(document)}
        number += 1
    for key in plan.ends:
        yield {"line": number, "action": DELETE, "kind": key.kind, "name": str(key), "document": None}
        number += 1
