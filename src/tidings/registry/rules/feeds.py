"""What a topic may say about its feed, and what the hub keeps of it when the topic is described again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from tidings.registry.feeds import TopicFeed
from tidings.registry.model import Snapshot, Topic
from tidings.registry.rules.faults import Fault, between, refuse

PARTITIONS = (1, 1024)
FIRST_IDS = (0, 32767 - 1023)
FIRST_ID = 1
"""Of new topics: readers of feedapi-go cannot tell a parent 0 from none. Topics from before may begin with 0."""

ALIASES = 10

_ALIAS = re.compile(r"(?:/[A-Za-z0-9._~-]+)+", re.ASCII)


def feed_faults(feed: TopicFeed) -> Iterator[Fault]:
    """Everything wrong with a feed in itself."""
    yield from between("feed.partitions", feed.partitions, PARTITIONS, "partitions")
    yield from between("feed.firstPartitionId", feed.first_partition_id, FIRST_IDS, "as an id")
    if len(feed.aliases) > ALIASES:
        yield "feed.aliases", f"at most {ALIASES} aliases"
    for n, alias in enumerate(feed.aliases):
        if len(alias) > 200 or not _ALIAS.fullmatch(alias):
            yield f"feed.aliases[{n}]", "an alias is a path such as /orders/feed/v1, of letters, digits, '.', '_', '~' and '-'"


def reserved_aliases(feed: TopicFeed, reserved: Sequence[str]) -> Iterator[Fault]:
    """The aliases that begin with one of the hub's own addresses."""
    for n, alias in enumerate(feed.aliases):
        if f"{alias}/".startswith(tuple(f"{one}/" for one in reserved)):
            yield f"feed.aliases[{n}]", "addresses below this one are the hub's own"


def taken_aliases(topic: Topic, after: Snapshot) -> Iterator[Fault]:
    """The aliases that mean another topic's feed already, or its events."""
    if not topic.feed.aliases:
        return
    taken = {alias: one.name for one in after.topics.values() if one.name != topic.name for alias in one.feed.aliases}
    for n, alias in enumerate(topic.feed.aliases):
        for clash in (alias, alias.removesuffix("/events"), f"{alias}/events"):
            if clash in taken:
                yield f"feed.aliases[{n}]", f"{clash} is an alias of {taken[clash]}"
                break


def settled_feed(wanted: Topic, standing: Topic | None) -> TopicFeed:
    """The feed as it will be. What readers rely on stays: partitions change by their own request only. Raises InvalidDocument."""
    before, after = standing.feed if standing is not None else TopicFeed(), wanted.feed
    if standing is not None:
        refuse([wanted], lambda _: _changed_faults(before, after))
    # A check for duplicates that comes later does not look at what is there already.
    late = standing is not None and wanted.duplicates != standing.duplicates and wanted.duplicates == "forever"
    first = FIRST_ID if standing is None else before.first_partition_id or 0
    settled = msgspec.structs.replace(
        after,
        partitions=_first_given(after.partitions, before.partitions, 1),
        first_partition_id=_first_given(after.first_partition_id, first),
        layout=after.layout or before.layout,
        may_repeat=after.may_repeat or before.may_repeat or late,
    )
    refuse([wanted], lambda _: _relation_faults(settled))
    return settled


def _relation_faults(feed: TopicFeed) -> Iterator[Fault]:
    ids = {feed.first_partition_id} if feed.layout is None else {one.id for one in feed.layout.partitions}
    if feed.relations_as_int and 0 in ids:
        fault = "readers of integers take the partition 0 for 'no parent'; it needs a firstPartitionId of 1 or more"
        yield "feed.relationsAsInt", f"{fault}, or that the partitions are redistributed first"


def _first_given(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


def _changed_faults(before: TopicFeed, after: TopicFeed) -> Iterator[Fault]:
    if after.partitions not in (None, before.partitions or 1):
        yield "feed.partitions", "it counts when the topic is made; POST /api/feeds/{topic}/partitions changes the number"
    if after.first_partition_id not in (None, before.first_partition_id or 0):
        yield "feed.firstPartitionId", "it counts when the topic is made"
