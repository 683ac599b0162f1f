"""The audit log: `GET /api/changes`."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Query

from tidings.access.principals import Right
from tidings.access.secrets import without_secrets
from tidings.doors.native.bodies.wire import Number, Wire, time_of
from tidings.doors.native.callers import Caller, PartsOf
from tidings.log.cursor import cursor_of
from tidings.registry.model import Change

router = APIRouter(tags=["operating"])


class ChangeView(Wire):
    """One change: it holds for every event after `cursor`."""

    revision: int
    at: str
    by: str
    action: str
    kind: str
    name: str
    cursor: str
    document: Any = None


class ChangeList(Wire):
    """Oldest first, in whole revisions; `after` goes on."""

    changes: list[ChangeView]
    after: int


@router.get("/api/changes")
async def list_changes(parts: PartsOf, caller: Caller, after: Number = 0, limit: int = Query(100, ge=1, le=1000)) -> ChangeList:
    """Who changed what, when, and from which position it holds."""
    caller.require(Right.ADMIN)
    found = await asyncio.to_thread(parts.registry.changes, after, limit)
    return ChangeList(changes=list(map(_view, found)), after=found[-1].revision if found else after)


def _view(change: Change) -> ChangeView:
    return ChangeView(
        revision=change.revision,
        at=time_of(change.at) or "",
        by=change.by,
        action=change.action,
        kind=change.kind,
        name=change.name,
        cursor=cursor_of(change.marks),
        document=without_secrets(change.document),
    )
