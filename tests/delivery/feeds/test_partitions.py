"""How partitions grow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.delivery.feeds.partitions import (
    LARGEST_ID,
    MOST,
    Identity,
    Method,
    discovery,
    end_of,
    grown,
    layout_of,
    opened,
    serves,
    token_of,
)
from tidings.errors import Conflict, Malformed
from tidings.log.position import Offset
from tidings.registry.feeds import TopicFeed


def feed(**fields: object) -> TopicFeed:
    return TopicFeed(**fields)  # type: ignore[arg-type]


def test_a_feed_begins_with_the_partitions_it_was_made_with() -> None:
    layout = layout_of(feed(partitions=3, first_partition_id=5))
    assert [(one.id, one.index, one.count) for one in layout.partitions] == [(5, 0, 3), (6, 1, 3), (7, 2, 3)]
    assert layout.generation == 1 and layout.next_id == 8


def test_closing_keeps_parents_and_divides_what_comes() -> None:
    layout = grown(layout_of(feed(partitions=2)), Method.CLOSE, 4, Offset(10))
    assert [(one.id, one.upto) for one in layout.partitions if one.closed] == [(0, 10), (1, 10)]
    assert [(one.id, one.after, one.starts_after) for one in opened(layout)] == [(2, 10, 0), (3, 10, 1), (4, 10, 0), (5, 10, 1)]


def test_redistributing_names_every_ancestor_nearest_first() -> None:
    layout = layout_of(feed())
    layout = grown(layout, Method.CLOSE, 2, Offset(1))
    layout = grown(layout, Method.CLOSE, 4, Offset(2))
    layout = grown(layout, Method.REDISTRIBUTE, 8, Offset(3))
    assert [one.cursor_from for one in layout.partitions[:4]] == [(3, 1, 0), (4, 2, 0), (5, 1, 0), (6, 2, 0)]
    again = grown(layout, Method.REDISTRIBUTE, 16, Offset(4))
    assert again.partitions[0].cursor_from == (7, 3, 1, 0)


@pytest.mark.parametrize("count", [-4, 0, 1, 2, 3, 6, 12, 2048])
def test_only_doubling_is_possible(count: int) -> None:
    with pytest.raises(Malformed):
        grown(layout_of(feed(partitions=2)), Method.CLOSE, count, Offset(0))


def test_ids_are_never_used_twice_and_run_out() -> None:
    layout = layout_of(feed(partitions=512, first_partition_id=LARGEST_ID - 1024))
    with pytest.raises(Conflict):
        grown(layout, Method.REDISTRIBUTE, 1024, Offset(0))


def test_a_reader_learns_where_its_layout_ended() -> None:
    first = layout_of(feed())
    second = grown(first, Method.CLOSE, 2, Offset(7))
    third = grown(second, Method.CLOSE, 4, Offset(9))
    now = feed(layout=third)
    assert [end_of(seen, now) for seen in (first, second, third)] == [7, 9, None]
    assert end_of(first, feed()) is None


def test_tokens_belong_to_one_layout_of_one_feed_of_one_log_and_to_its_promise() -> None:
    first = layout_of(feed())
    second = grown(first, Method.CLOSE, 2, Offset(7))
    mine = Identity("life", "1", exactly_once=True)
    others = [mine._replace(key="2"), mine._replace(key="~1"), mine._replace(life="next"), mine._replace(exactly_once=False)]
    assert len({token_of(mine, first), token_of(mine, second), *(token_of(other, first) for other in others)}) == 6
    assert token_of(mine, first) == token_of(Identity("life", "1", exactly_once=True), layout_of(feed()))


def test_redistributing_closed_partitions_is_remembered() -> None:
    """Who read children before their closed parent has ended cannot say by one cursor what it has of both."""
    closed = grown(layout_of(feed()), Method.CLOSE, 2, Offset(7))
    assert not closed.crossed and not grown(layout_of(feed()), Method.REDISTRIBUTE, 2, Offset(7)).crossed
    crossed = grown(closed, Method.REDISTRIBUTE, 4, Offset(9))
    assert crossed.crossed and grown(crossed, Method.CLOSE, 8, Offset(11)).crossed


@given(st.integers(-10, 5000))
def test_a_feed_can_be_divided_by_powers_of_two_and_former_counts(count: int) -> None:
    layout = grown(layout_of(feed(partitions=3)), Method.CLOSE, 6, Offset(0))
    assert serves(layout, count) is (count in (3, 6) or (1 <= count <= MOST and bin(count).count("1") == 1))


@given(
    start=st.sampled_from([1, 2, 3]),
    steps=st.lists(st.tuples(st.sampled_from(list(Method)), st.sampled_from([2, 4]), st.integers(1, 50)), max_size=4),
    hashes=st.lists(st.integers(0, (1 << 63) - 1), min_size=1, max_size=30),
)
def test_every_event_is_in_exactly_one_partition_of_every_layout(
    start: int, steps: list[tuple[Method, int, int]], hashes: list[int]
) -> None:
    """As many events come between two changes as each step says; at most one listed partition serves each, always one."""
    layout, at = layout_of(feed(partitions=start)), 0
    for method, factor, events in steps:
        at += events
        layout = grown(layout, method, len(opened(layout)) * factor, Offset(at))
        for offset in range(1, at + 20):
            key_hash = hashes[offset % len(hashes)]
            homes = [
                one.id
                for one in layout.partitions
                if key_hash % one.count == one.index and one.after < offset and (one.upto is None or offset <= one.upto)
            ]
            assert len(homes) == 1
    listed = {one["id"] for one in discovery(Identity("life", "1", False), feed(layout=layout), consistent=True)["partitions"]}
    assert len(listed) == len(layout.partitions)
