"""The partitions of a feed: which there are, what each takes, and how their number grows. Pure.

method         old partitions                     new partitions
close          end at the switch, stay listed     take what comes after it, each after the parent it replaces
redistribute   leave the list                     have the whole history, and take over the cursors of their ancestors
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from tidings.errors import Conflict, Malformed
from tidings.log.position import Offset
from tidings.registry.feeds import FeedPartition, PartitionLayout, TopicFeed

MOST = 1024
"""Open partitions of one feed at the most."""

LARGEST_ID = 32767


class Method(StrEnum):
    """How the number of partitions grows."""

    CLOSE = "close"
    REDISTRIBUTE = "redistribute"


def layout_of(feed: TopicFeed) -> PartitionLayout:
    """The layout in force; one that was never changed follows from the feed's settings."""
    if feed.layout is not None:
        return feed.layout
    return _original(feed.partitions or 1, feed.first_partition_id or 0)


@lru_cache(maxsize=100)
def _original(count: int, first: int) -> PartitionLayout:
    partitions = tuple(FeedPartition(id=first + index, index=index, count=count) for index in range(count))
    return PartitionLayout(partitions=partitions, next_id=first + count, counts=(count,))


def opened(layout: PartitionLayout) -> list[FeedPartition]:
    """The partitions that still get events, by index."""
    return sorted((one for one in layout.partitions if not one.closed), key=lambda one: one.index)


class Identity(NamedTuple):
    """What a token stands for beside the layout: one feed of one life of the log, and what it promises.

    `key` is the feed's own: not even a former feed of the same name has it.
    """

    life: str
    key: str
    exactly_once: bool


def token_of(feed: Identity, layout: PartitionLayout) -> str:
    """Changes with every layout, when the promise changes, and when the log behind it is another one."""
    known = f"{feed.life}/{feed.key}/{layout.generation}/{feed.exactly_once:d}"
    return f"g{layout.generation}-{blake2b(known.encode(), digest_size=6).hexdigest()}"


def serves(layout: PartitionLayout, count: int) -> bool:
    """Whether a reader may divide the feed by this number: any power of two, or a number of partitions it has had."""
    return count in layout.counts or (1 <= count <= MOST and count & (count - 1) == 0)


def end_of(seen: PartitionLayout, now: TopicFeed) -> Offset | None:
    """Where the layout a reader saw has ended; None while it is in force. Very cheap: asked for every slice."""
    if now.layout is None or now.layout.generation == seen.generation:
        return None
    return Offset(now.layout.switches[seen.generation - 1])


def grown(layout: PartitionLayout, method: Method, count: int, at: Offset) -> PartitionLayout:
    """The layout with `count` open partitions for events after `at`. Raises Malformed and Conflict (FAPI-30, FAPI-31)."""
    parents = opened(layout)
    _check_count(len(parents), count)
    if layout.next_id + count - 1 > LARGEST_ID:
        raise Conflict("the feed has no partition ids left", found=layout.next_id + count - 1, expected=f"at most {LARGEST_ID}")
    ids = range(layout.next_id, layout.next_id + count)
    match method:
        case Method.CLOSE:
            partitions = _closed(layout, parents, ids, at)
        case Method.REDISTRIBUTE:
            partitions = _redistributed(layout, parents, ids)
    return PartitionLayout(
        partitions=partitions,
        next_id=layout.next_id + count,
        counts=tuple(dict.fromkeys((*layout.counts, count))),
        switches=(*layout.switches, at),
        crossed=layout.crossed or (method is Method.REDISTRIBUTE and any(one.closed for one in layout.partitions)),
    )


def _check_count(live: int, count: int) -> None:
    factor, rest = divmod(count, live)
    if rest or factor < 2 or factor & (factor - 1) or count > MOST:
        fitting = [str(live << power) for power in range(1, 11) if live << power <= MOST]
        raise Malformed("partitions can only be doubled", at="count", found=count, expected=", ".join(fitting) or "no more")


def _closed(layout: PartitionLayout, parents: Sequence[FeedPartition], ids: range, at: Offset) -> tuple[FeedPartition, ...]:
    old = [_ended(one, at) for one in layout.partitions]
    new = [
        FeedPartition(id=id, index=index, count=len(ids), after=at, starts_after=parents[index % len(parents)].id)
        for index, id in enumerate(ids)
    ]
    return (*old, *new)


def _ended(partition: FeedPartition, at: Offset) -> FeedPartition:
    return partition if partition.closed else msgspec.structs.replace(partition, upto=at)


def _redistributed(layout: PartitionLayout, parents: Sequence[FeedPartition], ids: range) -> tuple[FeedPartition, ...]:
    known = {one.id: one for one in layout.partitions}
    return tuple(
        FeedPartition(id=id, index=index, count=len(ids), cursor_from=_lineage(parents[index % len(parents)], known))
        for index, id in enumerate(ids)
    )


def _lineage(partition: FeedPartition, known: Mapping[int, FeedPartition]) -> tuple[int, ...]:
    """A partition and its ancestors, the nearest first."""
    if partition.starts_after is None:
        return (partition.id, *partition.cursor_from)
    return (partition.id, *_lineage(known[partition.starts_after], known))


def discovery(identity: Identity, feed: TopicFeed, *, consistent: bool) -> dict[str, Any]:
    """What a reader of v2 learns first (FAPI-01 to FAPI-07)."""
    layout = layout_of(feed)
    name = int if feed.relations_as_int else str
    return {
        "token": token_of(identity, layout),
        "partitions": [_listed(one, name) for one in layout.partitions],
        "exactlyOnce": identity.exactly_once,
        "consistent": consistent,
    }


def _listed(partition: FeedPartition, name: type[int] | type[str]) -> dict[str, Any]:
    listed: dict[str, Any] = {"id": str(partition.id)}
    if partition.closed:
        listed["closed"] = True
    if partition.starts_after is not None:
        listed["startsAfterPartition"] = name(partition.starts_after)
    if partition.cursor_from:
        listed["cursorFromPartitions"] = [name(id) for id in partition.cursor_from]
    return listed
