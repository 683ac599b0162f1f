"""Reading the registry: safe in any thread and process. No call leaves a transaction open."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import msgspec
from sqlalchemy import Engine, select
from sqlalchemy.pool import PoolProxiedConnection

from tidings.clock import Instant
from tidings.log.position import LaneNumber, Marks
from tidings.registry.model import Change, Route, Snapshot
from tidings.registry.rules import RouteHistory
from tidings.registry.store import rows
from tidings.registry.store.database import asking_connection, newest_revision, running
from tidings.registry.store.schema import CHANGES, REVISIONS


class SqlRegistryReader:
    """A RegistryReader over a database. Made by `open_reader`; not to be carried over a fork."""

    def __init__(self, where: Path | str, engine: Engine) -> None:
        self._where = where
        self._engine = engine
        self._asking = threading.Lock()
        self._kept: PoolProxiedConnection | None = None

    def revision(self) -> int:
        """The number of the newest change."""
        with running(self._where), self._asking:
            if self._kept is None:
                self._kept = asking_connection(self._engine)
            try:
                return newest_revision(self._kept)
            except Exception:
                # Asked in the usual way, it fails with an error in our own words, or works again.
                self._drop_kept()
                with self._engine.connect() as connection:
                    return rows.newest(connection)

    def snapshot(self) -> Snapshot:
        """Everything in force now."""
        with running(self._where), self._engine.connect() as connection:
            return rows.snapshot_of(connection)

    def routes(self, after: Marks) -> Sequence[Route]:
        """Every route version in force at some position above `after`.

        One that began long before is given with a later `since`, still at or below `after`.
        """
        history = self.route_history(after)
        return [route for lane in history.lanes for route in history.routes_of(lane)]

    def route_history(self, after: Marks) -> RouteHistory:
        """See `RegistryReader.route_history`."""
        with running(self._where), self._engine.connect() as connection:
            floor = rows.settled_by(connection, after)
            return RouteHistory(rows.versions_after(connection, floor), rows.marks_from(connection, floor), floor)

    def renew(self, history: RouteHistory) -> set[LaneNumber]:
        """See `RegistryReader.renew`."""
        with running(self._where), self._engine.connect() as connection:
            known = history.revision
            return history.update(rows.versions_changed(connection, known), rows.marks_from(connection, known + 1))

    def changes(self, after: int, limit: int) -> Sequence[Change]:
        """The audit log, oldest first, in whole revisions: as many as `limit` lines hold, and at least one."""
        with running(self._where), self._engine.connect() as connection:
            c = CHANGES.c
            lines = (
                select(c.revision, REVISIONS.c.at, REVISIONS.c.by, c.action, c.kind, c.name, REVISIONS.c.marks, c.document)
                .join_from(CHANGES, REVISIONS, c.revision == REVISIONS.c.revision)
                .order_by(c.revision, c.line)
            )
            found = connection.execute(lines.where(c.revision > after).limit(limit + 1)).all()
            if len(found) > limit:
                cut = found[-1].revision
                found = [line for line in found if line.revision < cut] or connection.execute(
                    lines.where(c.revision == cut)
                ).all()
        return [_change(line) for line in found]

    def close(self) -> None:
        """Release the files. Safe to call twice."""
        with self._asking:
            self._drop_kept()
        self._engine.dispose()

    def _drop_kept(self) -> None:
        if self._kept is not None:
            self._kept.invalidate()
            self._kept = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _change(line: Any) -> Change:
    return Change(
        revision=line.revision,
        at=Instant(line.at),
        by=line.by,
        action=line.action,
        kind=line.kind,
        name=line.name,
        marks=rows.marks_in(line.marks),
        document=None if line.document is None else msgspec.json.decode(line.document),
    )
