"""What a topic may say about its feed."""

from __future__ import annotations

import pytest

from tests.builders import a_topic
from tidings.errors import InvalidDocument
from tidings.registry.feeds import PartitionLayout, TopicFeed
from tidings.registry.model import Snapshot
from tidings.registry.rules.feeds import feed_faults, reserved_aliases, settled_feed, taken_aliases


@pytest.mark.parametrize(
    ("feed", "field"),
    [
        (TopicFeed(partitions=0), "feed.partitions"),
        (TopicFeed(partitions=1025), "feed.partitions"),
        (TopicFeed(first_partition_id=-1), "feed.firstPartitionId"),
        (TopicFeed(first_partition_id=32_000), "feed.firstPartitionId"),
        (TopicFeed(aliases=("no/slash",)), "feed.aliases[0]"),
        (TopicFeed(aliases=("/a/../b c",)), "feed.aliases[0]"),
        (TopicFeed(aliases=tuple(f"/a{n}" for n in range(11))), "feed.aliases"),
    ],
)
def test_a_wrong_feed_is_refused(feed: TopicFeed, field: str) -> None:
    assert [path for path, _ in feed_faults(feed)] == [field]


def test_an_alias_below_an_address_of_the_hub_is_refused() -> None:
    feed = TopicFeed(aliases=("/fine", "/api/mine", "/apis", "/api"))
    assert [path for path, _ in reserved_aliases(feed, ("/api",))] == ["feed.aliases[1]", "feed.aliases[3]"]


def test_what_is_left_out_stays_as_it_is() -> None:
    layout = PartitionLayout(partitions=(), next_id=9, counts=(4, 8), switches=(3,))
    standing = a_topic(feed=TopicFeed(partitions=4, first_partition_id=1, layout=layout, may_repeat=True))
    settled = settled_feed(a_topic(feed=TopicFeed(relations_as_int=True)), standing)
    assert (settled.partitions, settled.first_partition_id, settled.layout) == (4, 1, layout)
    assert settled.relations_as_int and settled.may_repeat
    assert settled_feed(a_topic(), None) == TopicFeed(partitions=1, first_partition_id=1)
    assert settled_feed(a_topic(), a_topic()).first_partition_id == 0, "a topic from before keeps its partition"


@pytest.mark.parametrize("wanted", [TopicFeed(partitions=8), TopicFeed(first_partition_id=3), TopicFeed(relations_as_int=True)])
def test_what_readers_rely_on_cannot_be_changed(wanted: TopicFeed) -> None:
    with pytest.raises(InvalidDocument):
        settled_feed(a_topic(feed=wanted), a_topic(feed=TopicFeed(partitions=4, first_partition_id=0)))


@pytest.mark.parametrize(
    ("before", "after", "may_repeat"),
    [(None, "forever", True), ("24h", "forever", True), ("forever", "forever", False), ("off", "24h", False)],
)
def test_a_check_that_comes_late_promises_nothing(before: str | None, after: str, may_repeat: bool) -> None:
    assert settled_feed(a_topic(duplicates=after), a_topic(duplicates=before)).may_repeat is may_repeat


@pytest.mark.parametrize("alias", ["/a/feed", "/a", "/a/feed/events"])
def test_an_alias_means_one_feed(alias: str) -> None:
    other = a_topic("other", feed=TopicFeed(aliases=("/a/feed", "/a/events")))
    mine = a_topic(feed=TopicFeed(aliases=(alias,)))
    after = Snapshot(revision=1, topics={one.name: one for one in (other, mine)})
    assert [path for path, _ in taken_aliases(mine, after)] == ["feed.aliases[0]"]
