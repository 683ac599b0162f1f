"""The Spark source without Spark: what a batch consists of, and that it can be read again exactly."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.client.feeds.foreign import Foreign, answering, sending
from tests.client.feeds.readers import published
from tidings.client.feeds import FeedEvent
from tidings.client.spark.look_ahead import REDISCOVERIES, Ahead
from tidings.client.spark.offsets import Offset, offset_of, portions_in
from tidings.client.spark.options import Options
from tidings.client.spark.partition_walk import replay
from tidings.client.spark.rows import COLUMNS, record_batch, row_of
from tidings.errors import CursorExpired, FeedUnreadable, HubUnreachable, Misconfigured

BEGINNING = offset_of({}, [])


def options(feed: Foreign, **more: Any) -> Options:
    return Options(feed.url, **{"page_size": 7, "patience": 1.0, **more})


def planned(feed: Foreign, start: Offset = BEGINNING, limit: int | None = 20, **more: Any) -> Offset:
    async def go() -> Offset:
        async with options(feed, **more).client() as client:
            return await Ahead(client, options(feed, **more)).next_offset(start, limit)

    # Through JSON and back, as Spark keeps it.
    return json.loads(json.dumps(asyncio.run(go())))


def read(feed: Foreign, offset: Offset, **more: Any) -> list[Any]:
    """The batch that ends at this offset, as executors read it: partition by partition."""

    async def go() -> list[Any]:
        async with options(feed, **more).client() as client:
            made = options(feed, **more)
            return [e.data for portion in portions_in(offset) async for some in replay(client, made, portion) for e in some]

    return asyncio.run(go())


def numbers(events: list[Any]) -> list[int]:
    return [event["data"]["n"] for event in events]


@pytest.mark.slow
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.integers(0, 10_000),
    st.booleans(),
    st.sampled_from([1, 4, 100]),
    st.integers(1, 30),
    st.lists(st.sampled_from(["publish", "close", "redistribute", "cut", "fail", "batch", "again"]), max_size=14),
)
def test_batches_cover_the_feed_once_however_often_each_is_read(
    seed: int, restless: bool, every: int, limit: int, steps: list[str]
) -> None:
    """Each batch is read right after planning and again after partitions changed: always the same events (FT-18, FT-19, ZEH-13)."""
    chance = random.Random(seed)
    with Foreign(partitions=2, every=every, restless=restless, seed=seed).served() as feed:
        total, ends, contents = len(published(feed, 30)), [BEGINNING], []
        for at, step in enumerate([*steps, *["batch"] * 100]):
            match step:
                case "publish":
                    total += len(published(feed, 11, keys=9, since=total))
                case "close" | "redistribute" if len(feed.parts) < 12:
                    feed.close() if step == "close" else feed.redistribute()
                case "cut":
                    feed.cuts.append(chance.randint(0, 500))
                case "fail" if len(feed.faults) < REDISCOVERIES - 1:
                    feed.faults.append(answering(409))
                case "again" if contents:
                    which = chance.randrange(len(contents))
                    assert sorted(numbers(read(feed, ends[which + 1]))) == sorted(contents[which])
                case "batch":
                    feed.cuts.clear()
                    end = planned(feed, ends[-1], limit)
                    if end == ends[-1] and at >= len(steps):
                        break
                    if end != ends[-1]:
                        ends.append(end)
                        contents.append(numbers(read(feed, end)))
        everything = [n for some in contents for n in some]
        assert sorted(everything) == list(range(total))
        keys = [n % 9 if n >= 30 else None for n in everything]
        for key in range(9):
            of_key = [n for n, k in zip(everything, keys, strict=True) if k == key]
            assert of_key == sorted(of_key)


def test_a_batch_ends_near_its_limit_and_nothing_new_is_the_same_offset() -> None:
    with Foreign(partitions=2, every=1).served() as feed:
        published(feed, 100)
        end = planned(feed, limit=20)
        assert sum(map(len, portions_in(end))) == 20
        everything = planned(feed, end, limit=None)
        assert sum(map(len, portions_in(everything))) == 80
        assert planned(feed, everything) == everything


def test_a_child_begins_in_a_later_batch_than_its_parent_ends() -> None:
    with Foreign().served() as feed:
        published(feed, 5)
        feed.close()
        published(feed, 5, since=5)
        first = planned(feed)
        assert [portion.partition for portion in portions_in(first)] == ["0"]
        assert {portion.partition for portion in portions_in(planned(feed, first))} <= {"1", "2"}
        assert len(portions_in(planned(feed, ordered=False))) >= 2


def test_a_partition_that_was_finished_and_is_open_again_is_read_on() -> None:
    with Foreign().served() as feed:
        published(feed, 5)
        feed.close()
        end = planned(feed, planned(feed))
        assert end["partitions"]["0"]["finished"]
        feed.begin_again()
        published(feed, 3, since=5)
        assert numbers(read(feed, planned(feed, end))) == [5, 6, 7]


def test_an_empty_answer_of_a_closed_partition_is_its_end() -> None:
    with Foreign().served() as feed:
        published(feed, 5)
        first = planned(feed)
        feed.close()
        published(feed, 5, since=5)
        feed.faults = [sending(b"")]
        second = planned(feed, first)
        assert second["partitions"]["0"]["finished"]
        assert sorted(numbers(read(feed, planned(feed, second)))) == [5, 6, 7, 8, 9]


def test_events_without_any_cursor_are_an_error_and_not_asked_for_without_end() -> None:
    with Foreign().served() as feed:
        published(feed, 5)
        end = planned(feed)
        for act in (lambda: planned(feed, end), lambda: read(feed, end)):
            feed.faults = [sending(b'{"data":{"n":1}}\n')] * 1000
            with pytest.raises(FeedUnreadable, match="cursor"):
                act()


def test_who_starts_at_the_end_gets_only_what_comes_then() -> None:
    with Foreign().served() as feed:
        published(feed, 5)
        first = _from_the_end(feed)
        assert portions_in(first) == []
        published(feed, 3, since=5)
        assert numbers(read(feed, planned(feed, first))) == [5, 6, 7]


def _from_the_end(feed: Foreign) -> Offset:
    async def go() -> Offset:
        made = Options(feed.url, start="_last")
        async with made.client() as client:
            return await Ahead(client, made).next_offset(BEGINNING, 10)

    return asyncio.run(go())


def test_events_that_are_gone_are_an_error_and_never_a_smaller_batch() -> None:
    with Foreign().served() as feed:
        published(feed, 10)
        end = planned(feed)
        del feed.events[3]
        with pytest.raises(FeedUnreadable, match="1 events"):
            read(feed, end)
        feed.faults = [answering(410, b"{}")]
        with pytest.raises(CursorExpired):
            read(feed, end)


def test_a_server_that_stays_away_is_an_error_in_the_end() -> None:
    with Foreign().served() as feed:
        published(feed, 5)
        end = planned(feed)
        feed.faults = [answering(503)] * 1000
        with pytest.raises(HubUnreachable):
            read(feed, end, patience=0.3)


def test_partitions_that_change_without_end_are_trouble_and_not_the_end_of_the_feed() -> None:
    """A query that reads what is there and ends would otherwise end without having read anything."""
    with Foreign().served() as feed:
        published(feed, 5)
        feed.faults = [answering(409)] * 1000
        with pytest.raises(HubUnreachable, match="change"):
            planned(feed)


def test_types_are_chosen_by_the_client_too() -> None:
    with Foreign().served() as feed:
        for n in range(6):
            feed.cloudevent("k", n, "a" if n % 2 else "b")
        end = planned(feed, event_types=("A",))
        assert numbers(read(feed, end, event_types=("A",))) == [1, 3, 5]


def a_row(data: Any) -> dict[str, Any]:
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    return dict(zip(COLUMNS, row_of(FeedEvent("0", raw)), strict=True))


def test_a_cloudevent_is_a_row() -> None:
    raw = (
        b'{"specversion":"1.0","id":"1","source":"/s","type":"t","subject":"k","time":"2026-01-02T03:04:05.678901234+01:00",'
        b'"datacontenttype":"application/json","sequence":5,"traceparent":"00","gone":null,"data":{"n": 1.50}}'
    )
    row = a_row(raw)
    assert row["time"].isoformat() == "2026-01-02T02:04:05.678901+00:00"
    assert (row["id"], row["source"], row["type"], row["subject"]) == ("1", "/s", "t", "k")
    assert row["data"] == '{"n": 1.50}'
    assert row["attributes"] == [("specversion", "1.0"), ("sequence", "5"), ("traceparent", "00")]


@pytest.mark.parametrize(
    ("more", "data"),
    [
        ({"data": "text"}, '"text"'),
        ({"data": "text", "datacontenttype": "text/plain"}, "text"),
        ({"data": [1], "datacontenttype": "application/vnd.x+json; charset=utf-8"}, "[1]"),
        ({"data_base64": "AAE="}, "AAE="),
        ({}, None),
        ({"data": None}, "null"),
    ],
)
def test_data_is_json_text_or_the_text_itself(more: dict[str, Any], data: str | None) -> None:
    row = a_row({"specversion": "1.0", "id": "1", "source": "/s", "type": "t", **more})
    assert row["data"] == data
    assert dict(row["attributes"]).get("data_base64") == ("true" if "data_base64" in more else None)


@pytest.mark.parametrize("time", ["yesterday", "2026-01-02T03:04:05", "2026-13-01T00:00:00Z", ""])
def test_a_time_that_is_none_is_kept_beside(time: str) -> None:
    row = a_row({"id": "1", "source": "/s", "type": "t", "time": time})
    assert (row["time"], dict(row["attributes"])["time"]) == (None, time)


@pytest.mark.parametrize(
    ("event", "data"),
    [
        ("just text", "just text"),
        ({"n": 1}, '{"n": 1}'),
        ({"id": 5, "source": "/s", "type": "t"}, '{"id": 5, "source": "/s", "type": "t"}'),
        (b'"a\\u2028b"', "a\u2028b"),
        (b"[1, 2.50]", "[1, 2.50]"),
        (b"7", "7"),
        (b"true", "true"),
    ],
)
def test_what_is_no_cloudevent_has_only_data(event: Any, data: str) -> None:
    assert {name: value for name, value in a_row(event).items() if value is not None} == {"data": data}


def test_rows_become_an_arrow_batch() -> None:
    batch = record_batch(
        [FeedEvent("0", b'"x"'), FeedEvent("0", b'{"id":"1","source":"/s","type":"t","time":"2026-01-01T00:00:00Z"}')]
    )
    assert batch.column_names == list(COLUMNS)
    assert batch.to_pylist()[0]["data"] == "x"
    assert record_batch([]).num_rows == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"url": "ftp://x"},
        {"url": "http://x/f", "colour": "red"},
        {"url": "http://x/f", "pageSize": "0"},
        {"url": "http://x/f", "maxEventsPerBatch": "many"},
        {"url": "http://x/f", "ordered": "maybe"},
        {"url": "http://x/f", "pollInterval": "nan"},
    ],
)
def test_wrong_options_are_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(Misconfigured):
        Options.of(wrong)


def test_options_are_read_in_any_case_and_show_no_token() -> None:
    made = Options.of(
        {"URL": "http://x/f", "eventtypes": "a; b;", "ORDERED": "False", "token": "s3cret", "partitionCount": "4"}
    )
    assert (made.event_types, made.ordered, made.partition_count) == (("a", "b"), False, 4)
    assert "s3cret" not in repr(made)
