"""The feed of a topic as it is written and shown."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tidings.doors.native.bodies.wire import Wire
from tidings.registry.feeds import FeedVersions, LineLimit, TopicFeed, V1Data


class FeedBody(Wire):
    """How a topic is read as a feed, below `/feeds/{topic}`."""

    versions: Literal["both", "v1", "v2"] = Field(
        default="both", description="Which protocols it speaks: v1 is ZeroEventHub, v2 is FeedAPI."
    )
    partitions: int | None = Field(default=None, description="Partitions at the start (1); only when the topic is made.")
    first_partition_id: int | None = Field(
        default=None, description="The id of its first partition (1); only when the topic is made."
    )
    relations_as_int: bool = Field(
        default=False,
        description="Parents of partitions as JSON integers, as feedapi-go reads them; needs firstPartitionId ≥ 1.",
    )
    v1_data: Literal["event", "payload"] = Field(
        default="event", description="`data` on v1 lines: the whole event, or its payload alone."
    )
    feed_line_limit: Literal["serve", "reject"] = Field(
        default="serve", description="Events whose line is longer than 65,535 bytes: served and counted, or refused with 413."
    )
    aliases: list[str] = Field(default_factory=list, description="Further addresses, such as /orders/feed/v1.")
    may_repeat: bool = Field(
        default=False,
        description="Events may be there twice, as after a replay: `exactlyOnce` is not promised. Once true it stays so.",
    )


def feed_from(body: FeedBody) -> TopicFeed:
    """The feed that a body describes."""
    return TopicFeed(
        versions=FeedVersions(body.versions),
        partitions=body.partitions,
        first_partition_id=body.first_partition_id,
        relations_as_int=body.relations_as_int,
        v1_data=V1Data(body.v1_data),
        line_limit=LineLimit(body.feed_line_limit),
        aliases=tuple(body.aliases),
        may_repeat=body.may_repeat,
    )


def feed_view(feed: TopicFeed) -> FeedBody:
    """The feed as it is shown."""
    return FeedBody(
        versions=feed.versions.value,
        partitions=feed.partitions or 1,
        first_partition_id=feed.first_partition_id or 0,
        relations_as_int=feed.relations_as_int,
        v1_data=feed.v1_data.value,
        feed_line_limit=feed.line_limit.value,
        aliases=list(feed.aliases),
        may_repeat=feed.may_repeat,
    )
