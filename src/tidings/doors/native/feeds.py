"""Administering feeds: `POST /api/feeds/{topic}/partitions`, and the cursor sets that consumers keep with the hub."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import Field

from tidings.access.principals import Principal, Right
from tidings.delivery.feeds.partitions import Method, discovery
from tidings.doors.api_parts import ApiParts
from tidings.doors.feed_state.cursor_set_lag import Followed, followed
from tidings.doors.feed_state.feed_keys import OF_SUBSCRIPTION, identity_of, key_of, lane_key
from tidings.doors.feed_state.partition_changes import Repartitioning
from tidings.doors.native.bodies.wire import Wire, name_in_path, time_of
from tidings.doors.native.callers import Caller, PartsOf
from tidings.errors import NotFound

router = APIRouter(tags=["feeds"])


class PartitionsBody(Wire):
    """How many partitions the feed is to have, and how it comes there."""

    method: Literal["close", "redistribute"] = Field(
        description="`close`: the old ones end and stay readable; `redistribute`: new ones with the whole history replace them."
    )
    count: int = Field(description="Open partitions afterwards: twice as many as now, or four times, and so on, up to 1024.")


class CursorView(Wire):
    """One cursor that is kept for a consumer."""

    consumer: str = Field(description="Who it is kept for; empty where the hub is open to everyone.")
    name: str = Field(description="The name of the cursor set.")
    version: str
    n: int | None = Field(description="The number of partitions that a reader of v1 divides by.")
    partition: int
    cursor: str
    last_used: str
    lag: int = Field(description="Events after it, as far as they were counted: see lagWhole.")
    lag_whole: bool = Field(
        description="False where there are more: 100,000 events of a feed are looked at, the newest ones, for all its cursors."
    )


class CursorList(Wire):
    """The cursor sets of one feed."""

    cursors: list[CursorView]


@router.post("/api/feeds/{topic:path}/partitions")
async def change_partitions(
    topic: str, body: PartitionsBody, parts: PartsOf, caller: Caller, request: Request
) -> dict[str, Any]:
    """Let the partitions of a feed grow; the new list, as readers of v2 discover it. Readers of v1 notice nothing."""
    name = name_in_path(topic, "topic")
    caller.require(Right.ADMIN, name)
    growing: Repartitioning = request.app.state.repartitioning
    found = await growing.grow(name, Method(body.method), body.count, caller.name)
    return discovery(identity_of(parts, found), found.feed, consistent=True)


@router.get("/api/feeds/{feed:path}/cursorsets")
async def list_cursor_sets(feed: str, parts: PartsOf, caller: Caller) -> CursorList:
    """The cursors that consumers keep with the hub, when each was last used, and how far it is behind."""
    key = _key(parts, caller, feed)
    found = await followed(parts, await asyncio.to_thread(parts.cursor_list.listed, key))
    return CursorList(cursors=list(map(_view, found)))


@router.delete("/api/feeds/{feed:path}/cursorsets/{name}", status_code=HTTPStatus.NO_CONTENT)
async def delete_cursor_set(
    feed: str,
    name: str,
    parts: PartsOf,
    caller: Caller,
    consumer: str = Query("", description="Who it is kept for; empty where the hub is open to everyone."),
) -> None:
    """Forget a cursor set. Its consumer can no longer resume from it."""
    if not await asyncio.to_thread(parts.cursor_sets.delete, _key(parts, caller, feed), consumer, name):
        raise NotFound(f"{consumer or 'nobody'} keeps no cursor set {name} of {feed}")


def _key(parts: ApiParts, caller: Principal, feed: str) -> str:
    """What a feed's cursors are kept under, for administrators. Raises Forbidden, NotFound."""
    lane = feed.startswith(OF_SUBSCRIPTION)
    name = name_in_path(feed.removeprefix(OF_SUBSCRIPTION), "subscription" if lane else "topic")
    caller.require(Right.ADMIN, name)
    if lane:
        subscription = parts.snapshot.subscriptions.get(name)
        if subscription is not None:
            return lane_key(subscription)
    else:
        topic = parts.snapshot.topics.get(name)
        if topic is not None:
            return key_of(topic)
    raise NotFound(f"there is no feed {feed}")


def _view(one: Followed) -> CursorView:
    kept = one.kept
    return CursorView(
        consumer=kept.key.consumer,
        name=kept.key.name,
        version=kept.key.version,
        n=kept.key.n or None,
        partition=kept.partition,
        cursor=str(kept.offset),
        last_used=time_of(kept.used) or "",
        lag=one.lag,
        lag_whole=one.whole,
    )
