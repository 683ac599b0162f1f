"""A request as it is understood: which places of which feed, how much, how long to wait, what to keep."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from tidings.delivery.feeds.lines import Checkpoint, EventLine, v1_checkpoint, v1_event, v2_checkpoint, v2_event
from tidings.delivery.feeds.pages import PageRequest, PartitionCursor
from tidings.delivery.feeds.partitions import opened, serves
from tidings.doors.feeds.feed_lookup import OpenFeed, no_feed
from tidings.doors.feeds.query import (
    Keeping,
    Query,
    headers_of,
    integer,
    keeping_of,
    offset_in,
    resumed,
    seconds_to_wait,
    wish_of,
)
from tidings.doors.feeds.refusals import expired, refused, stale
from tidings.events.avro.payloads import SchemaBook, json_stored
from tidings.log.port import Extent, Row
from tidings.log.position import Offset
from tidings.registry.feeds import FeedPartition, FeedVersions

FIRST, LAST = "_first", "_last"

Stored: TypeAlias = Callable[[str, str, int, Sequence[int]], Mapping[int, int]]
"""The stored cursors of (cursor set, version, count, partitions), as far as there are any."""


@dataclass(frozen=True, slots=True)
class FeedRequest:
    """What to answer with. `count`: how the feed is divided; `places`: where to begin; `last`: where the feed ended then."""

    feed: OpenFeed
    version: str
    count: int
    places: Sequence[PartitionCursor]
    wish: PageRequest
    wait: int
    keeping: Keeping | None
    event: EventLine
    checkpoint: Checkpoint
    line_key: object
    last: Offset


def showing(asked: FeedRequest, schemas: SchemaBook) -> FeedRequest:
    """The request, with Avro payloads as JSON."""
    if not schemas:
        return asked
    line = asked.event

    def shown(partition: int, row: Row) -> bytes:
        head, data = json_stored(row[2], row[3], schemas)
        return line(partition, row if head is row[2] else (row[0], row[1], head, data, row[4]))

    return replace(asked, event=shown, line_key=("json", asked.line_key))


async def asked_v1(feed: OpenFeed, query: Query, stored: Stored) -> FeedRequest:
    """A request with `n`. Raises Refused, in the order of section 4."""
    if feed.settings.versions is FeedVersions.V2:
        raise refused("n-unsupported", "this feed speaks FeedAPI v2 only: ask without n first")
    count = _count(feed, query)
    cursors = query.cursors()
    resume = resumed(query, cursors)
    extent = await feed.source.extent()
    if resume is None:
        texts = {number: cursor for number, cursor in cursors.items() if number < count}
        if not texts:
            raise refused("cursor-missing", f"expected a cursor such as cursor0=_first, numbered below {count}")
        positions = {number: _position(cursor, extent, _whole(number, count)) for number, cursor in sorted(texts.items())}
    else:
        positions = _resumed_v1(count, resume, keeping_of(query), stored)
        _refuse_expired(positions, extent)
    headers = headers_of(query)
    wish, keeping, wait = wish_of(query), keeping_of(query), seconds_to_wait(query)
    return FeedRequest(
        feed=feed,
        version="v1",
        count=count,
        places=[PartitionCursor(number, number, position) for number, position in positions.items()],
        wish=wish,
        wait=wait,
        keeping=keeping,
        event=v1_event(feed.settings.v1_data, headers),
        checkpoint=v1_checkpoint,
        line_key=(feed.settings.v1_data, headers),
        last=extent.last,
    )


def _count(feed: OpenFeed, query: Query) -> int:
    text = query.one("n") or ""
    count = integer(text)
    if count is None or not serves(feed.layout, count):
        live = len(opened(feed.layout))
        raise refused("n-unsupported", f"n is {text[:40]!r}; expected {live}, or a power of two from 1 to 1024")
    return count


def _whole(index: int, count: int) -> FeedPartition:
    """A virtual partition: it was always there and never ends."""
    return FeedPartition(id=index, index=index, count=count)


def _position(cursor: str, extent: Extent, partition: FeedPartition) -> Offset:
    """Where a cursor stands. Raises Refused when it is none, or when events after it are gone."""
    end = extent.last if partition.upto is None else partition.upto
    if cursor == FIRST:
        return Offset(min(max(extent.removed, partition.after), end))
    if cursor == LAST:
        return Offset(max(min(extent.last, end), partition.after))
    offset = offset_in(cursor)
    if max(offset, partition.after) < min(extent.removed, end):
        raise expired(cursor, str(min(extent.removed, end)))
    return Offset(offset)


def _refuse_expired(positions: Mapping[int, int], extent: Extent) -> None:
    for position in positions.values():
        if position < extent.removed:
            raise expired(str(position), str(extent.removed))


def _resumed_v1(count: int, listed: Sequence[str], keeping: Keeping | None, stored: Stored) -> dict[int, Offset]:
    numbers = [integer(text) for text in listed]
    wanted = [number for number in numbers if number is not None and 0 <= number < count]
    if len(wanted) != len(listed) or len(set(wanted)) < len(wanted):
        raise refused("resume-invalid", f"resume lists partitions such as 0,1, each once and below {count}")
    assert keeping is not None
    found = stored(keeping.name, "v1", count, wanted)
    missing = [str(number) for number in wanted if number not in found]
    if missing:
        raise refused("resume-unknown", f"no cursor of {', '.join(missing)} is stored under {keeping.name!r}")
    return {number: Offset(found[number]) for number in wanted}


async def asked_v2(feed: OpenFeed, query: Query, stored: Stored) -> FeedRequest:
    """A request for events below a feed. Raises Refused, in the order of section 4."""
    if feed.settings.versions is FeedVersions.V1:
        raise no_feed(f"{feed.label}/events")
    if query.one("token") != feed.token:
        raise stale()
    partition = _partition(feed, query)
    cursor = query.one("cursor")
    resume = resumed(query, cursor)
    extent = await feed.source.extent()
    if resume is not None:
        position = _resumed_v2(partition, resume, keeping_of(query), extent, stored)
    elif cursor:
        position = _position(cursor, extent, partition)
    else:
        raise refused("cursor-missing", "expected a cursor: one that the feed gave, _first or _last")
    wish, keeping, wait = wish_of(query), keeping_of(query), seconds_to_wait(query)
    bound = None if partition.upto is None else Offset(partition.upto)
    # What lies before the partition began is another's; a cursor of an ancestor goes on where this one begins.
    start = position if position >= partition.after else Offset(partition.after)
    return FeedRequest(
        feed=feed,
        version="v2",
        count=partition.count,
        places=[PartitionCursor(partition.id, partition.index, start, bound)],
        wish=wish,
        wait=0 if partition.closed else wait,
        keeping=keeping,
        event=v2_event,
        checkpoint=v2_checkpoint,
        line_key="v2",
        last=extent.last,
    )


def _partition(feed: OpenFeed, query: Query) -> FeedPartition:
    text = query.one("partition") or ""
    found = next((one for one in feed.layout.partitions if str(one.id) == text), None)
    if found is None:
        ids = ", ".join(str(one.id) for one in feed.layout.partitions[:10])
        raise refused("partition-unknown", f"partition is {text[:40]!r}; expected one of those listed: {ids}")
    return found


def _resumed_v2(
    partition: FeedPartition, listed: Sequence[str], keeping: Keeping | None, extent: Extent, stored: Stored
) -> Offset:
    if list(listed) != [str(partition.id)]:
        raise refused("resume-invalid", f"resume must be the partition itself, {partition.id}")
    assert keeping is not None
    lineage = [partition.id, *partition.cursor_from]
    found = stored(keeping.name, "v2", 0, lineage)
    nearest = next((found[id] for id in lineage if id in found), None)
    if nearest is not None:
        return _position(str(nearest), extent, partition)
    if partition.starts_after is not None:
        return _position(FIRST, extent, partition)
    raise refused("resume-unknown", f"no cursor of {partition.id} is stored under {keeping.name!r}")
