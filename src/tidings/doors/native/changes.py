"""The audit log: `GET /api/changes`."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Query

from tidings.access.principals import Right
from tidings.access.secrets import without_secrets
from tidings.delivery.push.records.causes import without_query
from tidings.doors.native.bodies.wire import Number, Wire, time_of
from tidings.doors.native.callers import Caller, PartsOf
from tidings.log.cursor import cursor_of
from tidings.registry.model import Change

router = APIRouter(tags=["operating"])

_ADDRESSES = ("http://", "https://")


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
        document=_without_queries(without_secrets(change.document)),
    )


def _without_queries(document: Any) -> Any:
    """Addresses without what stands behind their `?`: it often holds a secret, which is the subscriber's own.

    Doors keep callbacks in documents of their own, under names of their own.
    """
    match document:
        case dict():
            return {name: _without_queries(value) for name, value in document.items()}
        case list() | tuple():
            return [_without_queries(value) for value in document]
        case str() if document.startswith(_ADDRESSES) and "?" in document:
            return without_query(document)
        case _:
            return document
