"""Reading for good from a server that is not ours: batches, transactions, failures, changes of partitions."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.client.feeds.foreign import Foreign, answering, of_partition, sending
from tests.client.feeds.readers import SOON, Table, a_client, in_order_of_keys, published, read_all
from tidings.client.feeds import Backoff, Batch, FeedClient, FeedEvent, MemoryStore, StoredCursor
from tidings.errors import BadLine, CursorExpired, FeedUnreadable, HubProblem, HubUnreachable, LineTooLong, TokenStale


@pytest.fixture
def feed() -> Iterator[Foreign]:
    with Foreign().served() as served:
        yield served


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path / "mine.db")


def following(
    feed: Foreign, table: Table, until: Callable[[], bool], do: Callable[[], None] = lambda: None, **more: Any
) -> None:
    """Follow the feed, `do` something meanwhile, and stop when `until` holds."""

    async def go() -> None:
        async with a_client(feed, table.store, **more) as client:
            reading = asyncio.ensure_future(client.run(table.apply))
            await asyncio.sleep(0.05)
            await asyncio.to_thread(do)
            async with asyncio.timeout(120):
                while not until():
                    if reading.done():
                        reading.result()
                    await asyncio.sleep(0.01)
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    asyncio.run(go())


@pytest.mark.parametrize("restless", [False, True])
@pytest.mark.parametrize("every", [1, 3, 1000])
def test_everything_is_read_once_and_in_order(table: Table, every: int, restless: bool) -> None:
    with Foreign(partitions=2, every=every, restless=restless).served() as feed:
        numbers = published(feed, 150)
        read_all(feed, table)
        assert sorted(table.numbers) == numbers
        more = published(feed, 20, since=150)
        read_all(feed, table)
    assert sorted(table.numbers) == numbers + more
    assert in_order_of_keys(table)


@pytest.mark.parametrize("multi", [False, True])
def test_a_feed_of_version_1_is_read_when_its_number_of_partitions_is_told(table: Table, multi: bool) -> None:
    with Foreign(partitions=3, version=1).served() as feed:
        numbers = published(feed, 100)
        read_all(feed, table, partition_count=3, multi=multi)
        asked = [one.query for one in feed.asked if "n" in one.query]
    assert sorted(table.numbers) == numbers
    assert {len([name for name in query if name.startswith("cursor")]) for query in asked} == ({3} if multi else {1})


def test_a_feed_of_version_1_without_a_number_is_a_sentence(table: Table) -> None:
    with Foreign(version=1).served() as feed, pytest.raises(HubProblem, match="partition_count"):
        read_all(feed, table)


def test_cursors_of_version_1_belong_to_a_number_of_partitions() -> None:
    client = FeedClient("http://x/feed", 4)
    from tidings.client.feeds.discovery import of_version_1

    assert client.feed_name(of_version_1(4)) != client.feed_name(of_version_1(8))


@pytest.mark.parametrize("status", [401, 403, 404, 418])
def test_a_refusal_is_raised_at_once(feed: Foreign, table: Table, status: int) -> None:
    published(feed, 5)
    feed.faults = [answering(status, b'{"detail": "not for you"}')]
    with pytest.raises(HubProblem, match="not for you"):
        read_all(feed, table)
    assert table.numbers == []


def test_an_expired_cursor_says_which_one_is_the_first(feed: Foreign, table: Table) -> None:
    feed.faults = [answering(410, b'{"code": "cursor-expired", "first": "c5x5"}')]
    with pytest.raises(CursorExpired) as caught:
        read_all(feed, table)
    assert caught.value.first == "c5x5"


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_server_in_trouble_is_asked_again(feed: Foreign, table: Table, status: int) -> None:
    numbers = published(feed, 5)
    feed.faults = [answering(status), answering(status, retry_after="0"), sending(b"", cut=True)]
    read_all(feed, table)
    assert table.numbers == numbers


def test_retry_after_is_honored(feed: Foreign, table: Table) -> None:
    published(feed, 5)
    feed.faults = [answering(503, retry_after="1")]
    read_all(feed, table)
    first, second = [one.at for one in feed.asked if one.path.endswith("/events")][:2]
    assert second - first >= 1


def test_ft29_what_came_after_the_last_checkpoint_of_a_cut_answer_is_read_again(feed: Foreign, table: Table) -> None:
    numbers = published(feed, 10)
    feed.cuts = [0, 100, 500, 700, 200, 1000]
    read_all(feed, table)
    assert table.numbers == numbers


def test_a_handler_that_fails_leaves_nothing_behind(feed: Foreign, table: Table) -> None:
    numbers = published(feed, 12)

    def fail_at_seven(tx: Any, batch: Batch) -> None:
        table.apply(tx, batch)
        if any(event.data["data"]["n"] == 7 for event in batch):
            raise ZeroDivisionError

    async def go() -> None:
        async with a_client(feed, table.store, max_batch=1) as client:
            await client.run(fail_at_seven, follow=False)

    with pytest.raises(ZeroDivisionError):
        asyncio.run(go())
    assert table.numbers == [0, 1, 2, 3, 4, 5]
    read_all(feed, table)
    assert table.numbers == numbers


@pytest.mark.parametrize("error", [HubUnreachable("another hub"), TokenStale("another feed", {}), OSError("a disk")])
def test_trouble_of_a_handler_is_not_taken_for_trouble_of_the_feed(feed: Foreign, table: Table, error: Exception) -> None:
    published(feed, 5)

    def fail(tx: Any, batch: Batch) -> None:
        raise error

    async def go() -> None:
        async with a_client(feed, table.store) as client:
            await client.run(fail)

    with pytest.raises(type(error)) as caught:
        asyncio.run(asyncio.wait_for(go(), 120))
    assert caught.value is error


@pytest.mark.parametrize(
    ("body", "error"), [(b'{"data":{}}\n{"cursor":"x"}\n{"data":[1]}\n', BadLine), (b"x" * (17 << 20), LineTooLong)]
)
def test_an_unreadable_line_is_raised_and_the_cursor_stays(
    feed: Foreign, table: Table, body: bytes, error: type[Exception]
) -> None:
    feed.faults = [sending(body)]
    with pytest.raises(error):
        read_all(feed, table)
    assert set(table.store.load(feed.url).values()) == {StoredCursor("_first")}


def test_a_checkpoint_without_events_is_saved(feed: Foreign, table: Table) -> None:
    feed.faults = [sending(b'{"cursor":"c0x0"}\n')]
    read_all(feed, table)
    assert table.store.load(feed.url) == {"0": StoredCursor("c0x0")}


@pytest.mark.parametrize("answer", [answering(204), sending(b"\n\n")])
def test_an_answer_without_any_cursor_keeps_the_place_and_is_told_once(
    feed: Foreign, table: Table, answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    feed.faults = [answer, answer]
    with caplog.at_level(logging.WARNING):
        following(feed, table, lambda: len(table.numbers) == 3, lambda: published(feed, 3))
    assert sum("without any cursor" in record.message for record in caplog.records) == 1


def test_ft36_only_the_types_asked_for_are_delivered_also_when_the_server_ignores_them(
    feed: Foreign, caplog: pytest.LogCaptureFixture
) -> None:
    for n, type in enumerate(("a.b", "A.B", "c", "a.bc")):
        feed.cloudevent("k", n, type)
    feed.publish("k", "just text")
    feed.publish("k", {"no": "type"})
    feed.publish("k", {"type": 5})
    store = MemoryStore()

    async def go() -> None:
        async with a_client(feed, store, event_types=["a.B", "x;y"]) as client:
            await client.run(lambda tx, batch: tx.extend(event.data for event in batch), follow=False)

    with caplog.at_level(logging.WARNING):
        asyncio.run(go())
    got = [one["id"] if isinstance(one, dict) and "id" in one else one for one in store.taken]
    assert got == ["0", "1", "just text", {"no": "type"}, {"type": 5}]
    assert sum("without a type" in record.message for record in caplog.records) == 1
    assert next(one.query["event-types"] for one in feed.asked if "cursor" in one.query) == ["a.B;x;y"]


def test_batches_say_whether_events_may_come_again(feed: Foreign) -> None:
    flags = []
    for promised in (True, False):
        feed.discovery_extra = {"exactlyOnce": promised, "unknown": {"x": 1}}
        feed.cloudevent("k", 1)

        async def go() -> None:
            async with a_client(feed) as client:
                await client.run(lambda tx, batch: flags.append(batch.exactly_once), follow=False)

        asyncio.run(go())
    assert flags == [True, False]


def test_without_order_nothing_is_promised_after_close_and_redistribute() -> None:
    """The heir of an unread closed partition and of its child begins where the closed one was left: some events come again."""
    flags: dict[bool, set[bool]] = {True: set(), False: set()}
    for ordered in flags:
        with Foreign(discovery_extra={"exactlyOnce": True}).served() as feed:

            async def go(feed: Foreign, ordered: bool) -> None:
                async with a_client(feed, ordered=ordered) as client:
                    await client.run(lambda tx, batch: flags[ordered].add(batch.exactly_once), follow=False)

            published(feed, 10)
            feed.redistribute()
            asyncio.run(go(feed, ordered))
            assert flags[ordered] == {True}, "cursors of one ancestor are not ambiguous"
            feed.close()
            published(feed, 10, since=10)
            feed.redistribute()
            flags[ordered].clear()
            asyncio.run(go(feed, ordered))
    assert flags == {True: {True}, False: {False}}


def test_a_batch_tells_where_it_began_and_which_checkpoints_are_in_it(feed: Foreign) -> None:
    published(feed, 8)
    found: list[Batch] = []

    async def go() -> None:
        async with a_client(feed, max_batch=4) as client:
            await client.run(lambda tx, batch: found.append(batch), follow=False)

    asyncio.run(go())
    assert [(one.since, one.checkpoints, one.cursor) for one in found] == [
        ("_first", ((3, "c3x3"), (6, "c6x6")), "c6x6"),
        ("c6x6", ((2, "c8x8"),), "c8x8"),
    ]


def test_more_events_than_the_hint_are_fine_and_it_is_passed_on(feed: Foreign, table: Table) -> None:
    numbers = published(feed, 50)
    lines = [json.dumps(line).encode() + b"\n" for line in feed.lines(feed.parts[0], "_first", 50)]
    feed.faults = [sending(b"".join(lines))]
    read_all(feed, table, page_size=3)
    assert table.numbers == numbers
    assert {one.query["pagesizehint"][0] for one in feed.asked if "cursor" in one.query} == {"3"}


def test_who_starts_at_the_end_gets_only_what_comes_then(feed: Foreign, table: Table) -> None:
    published(feed, 5)
    following(feed, table, lambda: table.numbers == [5, 6], lambda: published(feed, 2, since=5), start="_last", wait=5)
    asked = [one.query for one in feed.asked if "cursor" in one.query]
    assert "wait" not in asked[0], "events would pass before the first cursor is known"
    assert asked[1]["wait"] == ["5"]


def test_a_start_that_the_feed_refuses_is_not_remembered(table: Table) -> None:
    with Foreign(partitions=2).served() as feed:
        numbers = published(feed, 10)
        feed.faults = [answering(400, b'{"detail": "not a cursor"}')]
        with pytest.raises(HubProblem, match="not a cursor"):
            read_all(feed, table, start="wrong")
        assert table.store.load(feed.url) == {}
        read_all(feed, table, start="c5x5")
    assert sorted(table.numbers) == numbers[5:]


def test_a_feed_has_one_name_in_the_store_however_its_address_is_written(feed: Foreign, table: Table) -> None:
    numbers = published(feed, 5)
    read_all(feed, table)
    plain = feed.url
    for written in (f"{plain}/", plain.replace("http://", "HTTP://"), plain.replace("//", "//me:secret@"), f"{plain}#x"):
        feed.url = written
        read_all(feed, table)
    assert table.numbers == numbers
    feed.url = plain
    read_all(feed, table, name="mine")
    assert table.numbers == numbers * 2


def test_a_quiet_feed_is_not_asked_in_a_tight_loop(feed: Foreign, table: Table) -> None:
    """This server does not know `wait`."""
    following(feed, table, lambda: len(feed.asked) >= 5, wait=5, poll_interval=0.1)
    times = [one.at for one in feed.asked if "cursor" in one.query]
    assert min(later - sooner for sooner, later in pairwise(times[1:])) >= 0.09


@pytest.mark.parametrize("status", [429, 504])
def test_where_no_request_may_wait_the_feed_is_polled(feed: Foreign, table: Table, status: int) -> None:
    """A server without a seat left, or a proxy that ends whatever takes long."""
    refused = answering(status)
    feed.faults = [lambda handler: refused(handler) if "wait=" in handler.path else False] * 1000
    numbers = published(feed, 50)
    following(feed, table, lambda: len(table.numbers) == 60, lambda: published(feed, 10, since=50), wait=5)
    assert table.numbers == numbers + list(range(50, 60))


def test_the_address_keeps_its_own_query_and_the_token_goes_along(feed: Foreign, table: Table) -> None:
    feed.url += "?code=s%26cret"
    published(feed, 3)
    read_all(feed, table, token="t0k", headers={"x-more": "1"})
    assert len(table.numbers) == 3
    assert {one.query["code"][0] for one in feed.asked} == {"s&cret"}
    assert {(one.headers["authorization"], one.headers["x-more"]) for one in feed.asked} == {("Bearer t0k", "1")}
    assert {one.path for one in feed.asked} == {"/their/feed", "/their/feed/events"}


def test_ft18_closed_partitions_are_read_before_their_children_while_readers_run(table: Table) -> None:
    with Foreign(partitions=2, page=5).served() as feed:
        published(feed, 60)

        def change() -> None:
            feed.close()
            published(feed, 60, since=60)
            feed.close()
            published(feed, 60, since=120)

        following(feed, table, lambda: len(table.numbers) >= 180, change)
        assert sorted(table.numbers) == list(range(180))
        assert in_order_of_keys(table)
        finished = {id for id, row in table.store.load(feed.url).items() if row.finished}
        assert {"0", "1"} <= finished
        feed.asked.clear()
        read_all(feed, table)
        assert not {one.query["partition"][0] for one in feed.asked if "cursor" in one.query} & {"0", "1"}


@pytest.mark.parametrize("answer", [answering(204), sending(b""), sending(b"\n\n")])
@pytest.mark.parametrize("follow", [True, False])
def test_an_empty_answer_of_a_closed_partition_is_its_end(table: Table, answer: Any, follow: bool) -> None:
    """Some servers say nothing at all where there is nothing, not even the same cursor again."""
    with Foreign().served() as feed:
        published(feed, 10)
        read_all(feed, table)
        feed.close()
        published(feed, 10, since=10)
        feed.faults = [of_partition("0", answer)] * 100
        following(feed, table, lambda: len(table.numbers) == 20) if follow else read_all(feed, table)
        assert table.store.load(feed.url)["0"].finished
    assert table.numbers[:10] == list(range(10)) and sorted(table.numbers) == list(range(20))


def test_reading_that_does_not_follow_ends_also_where_events_have_no_cursor(feed: Foreign, table: Table) -> None:
    feed.faults = [sending(b'{"data":{}}\n')] * 1000
    with pytest.raises(FeedUnreadable, match="cursor"):
        read_all(feed, table, patience=0.2)


@pytest.mark.parametrize(("status", "error"), [(503, HubUnreachable), (409, TokenStale)])
def test_reading_that_does_not_follow_ends_when_the_server_stays_in_trouble(
    feed: Foreign, table: Table, status: int, error: type[Exception]
) -> None:
    feed.faults = [answering(status)] * 1000
    with pytest.raises(error):
        read_all(feed, table, patience=0.2)


def test_a_partition_that_was_finished_and_is_open_again_is_read_on(table: Table) -> None:
    with Foreign().served() as feed:
        published(feed, 10)
        feed.close()
        published(feed, 10, since=10)
        read_all(feed, table)
        assert table.store.load(feed.url)["0"].finished
        feed.begin_again()
        published(feed, 5, since=20)
        read_all(feed, table)
        assert set(table.numbers) == set(range(25))
        feed.close()
        read_all(feed, table)
        assert table.store.load(feed.url)["0"].finished


def test_ft19_redistributed_partitions_go_on_from_the_cursor_of_their_ancestor(table: Table) -> None:
    with Foreign(partitions=2, page=5).served() as feed:
        published(feed, 60)

        def change() -> None:
            feed.redistribute()
            published(feed, 60, since=60)
            feed.redistribute()
            published(feed, 30, since=120)

        following(feed, table, lambda: len(table.numbers) >= 150, change)
    assert sorted(table.numbers) == list(range(150))
    assert in_order_of_keys(table)


@pytest.mark.parametrize("ordered", [True, False])
def test_ft20_a_reader_that_stopped_in_a_closed_parent_loses_nothing(table: Table, ordered: bool) -> None:
    with Foreign(partitions=1, page=5).served() as feed:
        published(feed, 40)
        stop_after(feed, table, 10, ordered=ordered)
        assert 10 <= len(table.numbers) < 40
        feed.close()
        published(feed, 20, since=40)
        stop_after(feed, table, 5, ordered=ordered)
        feed.redistribute()
        read_all(feed, table, ordered=ordered)
    assert set(table.numbers) == set(range(60))
    if ordered:
        assert sorted(table.numbers) == list(range(60))
        assert in_order_of_keys(table)


def stop_after(feed: Foreign, table: Table, events: int, **more: Any) -> None:
    """Read until so many events were applied, then die in the next batch."""
    count = 0

    def handle(tx: Any, batch: Batch) -> None:
        nonlocal count
        if count >= events:
            raise InterruptedError
        table.apply(tx, batch)
        count += len(batch)

    async def go() -> None:
        async with a_client(feed, table.store, **more) as client:
            await client.run(handle, follow=False)

    with pytest.raises(InterruptedError):
        asyncio.run(go())


def test_an_endlessly_stale_token_is_asked_for_ever_more_rarely(feed: Foreign, table: Table) -> None:
    feed.faults = [answering(409)] * 5
    read_all(feed, table)
    times = [one.at for one in feed.asked if not one.path.endswith("/events")]
    waits = [later - sooner for sooner, later in pairwise(times)]
    assert len(waits) == 5 and waits[0] >= SOON.first and waits[-1] >= SOON.most


def test_waits_double_up_to_a_bound_and_are_spread() -> None:
    backoff = Backoff()
    assert [backoff.plain(tries) for tries in (0, 1, 2, 5, 6, 1000)] == [1, 2, 4, 32, 60, 60]
    assert (backoff.jittered(1, 0.0), backoff.jittered(1, 1.0), backoff.jittered(1, 0.5, 30)) == (1, 2, 30)


def test_one_page_can_be_fetched_by_hand(feed: Foreign) -> None:
    published(feed, 4)

    async def go() -> list[Any]:
        async with a_client(feed) as client:
            return [one async for one in client.fetch(0)]

    page = asyncio.run(go())
    assert [one.data["id"] if isinstance(one, FeedEvent) else one.cursor for one in page] == [
        "0",
        "1",
        "2",
        "c3x3",
        "3",
        "c4x4",
    ]


def test_by_hand_errors_come_at_once(feed: Foreign) -> None:
    feed.faults = [answering(503), answering(409)]

    async def go() -> None:
        async with a_client(feed) as client:
            with pytest.raises(HubUnreachable):
                [one async for one in client.fetch(0)]
            with pytest.raises(TokenStale):
                [one async for one in client.fetch(0)]

    asyncio.run(go())


def test_a_coroutine_may_handle_batches(feed: Foreign, table: Table) -> None:
    numbers = published(feed, 10)

    async def handle(tx: Any, batch: Batch) -> None:
        await asyncio.sleep(0)
        table.apply(tx, batch)

    async def go() -> None:
        async with a_client(feed, table.store) as client:
            await client.run(handle, follow=False)

    asyncio.run(go())
    assert table.numbers == numbers
