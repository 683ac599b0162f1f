"""What a topic says about its feed: what its owner chose, and the partitions that the hub keeps for it."""

from __future__ import annotations

from enum import StrEnum

import msgspec

LONGEST_LINE = 65_535
"""Bytes of a line, its end not counted, that every known reader takes."""

V1_FRAME, V2_FRAME = 23, 9
"""What a line has around its event; of v1 without headers and with a partition of one digit."""


class FeedVersions(StrEnum):
    """Which protocols the feed speaks: ZeroEventHub is v1, FeedAPI is v2."""

    BOTH = "both"
    V1 = "v1"
    V2 = "v2"


class V1Data(StrEnum):
    """What `data` is on v1 lines: the whole event, or its payload alone."""

    EVENT = "event"
    PAYLOAD = "payload"


class LineLimit(StrEnum):
    """What becomes of events whose line would be longer than some readers take: served and counted, or refused."""

    SERVE = "serve"
    REJECT = "reject"


class FeedPartition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Takes the events whose key hash modulo `count` is `index`, after offset `after` and, once closed, up to `upto`."""

    id: int
    index: int
    count: int
    after: int = 0
    upto: int | None = None
    starts_after: int | None = None
    cursor_from: tuple[int, ...] = ()

    @property
    def closed(self) -> bool:
        return self.upto is not None


class PartitionLayout(msgspec.Struct, frozen=True, kw_only=True):
    """The partitions on offer now. `switches`: the offsets where earlier layouts ended; `counts`: how many were open in each.

    `crossed`: closed partitions were redistributed. A reader that had begun their children before their end cannot say by one
    cursor what it has read of both, and goes on from the older one.
    """

    partitions: tuple[FeedPartition, ...]
    next_id: int
    counts: tuple[int, ...]
    switches: tuple[int, ...] = ()
    crossed: bool = False

    @property
    def generation(self) -> int:
        return len(self.switches) + 1


class TopicFeed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The feed of one topic. `partitions` and `first_partition_id` count when the topic is made; None: 1 and 1, or as they are.

    `layout` is the hub's own: None until the number of partitions was changed. `may_repeat`: an event may be there twice,
    because there was a time without a check for duplicates, or because something was replayed into the topic.
    """

    versions: FeedVersions = FeedVersions.BOTH
    partitions: int | None = None
    first_partition_id: int | None = None
    relations_as_int: bool = False
    v1_data: V1Data = V1Data.EVENT
    line_limit: LineLimit = LineLimit.SERVE
    aliases: tuple[str, ...] = ()
    layout: PartitionLayout | None = None
    may_repeat: bool = False
