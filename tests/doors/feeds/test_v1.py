"""What only ZeroEventHub v1 has: headers, `v1_data`, types, and views that survive every change of partitions."""

from __future__ import annotations

import pytest

from tests.api_process import ApiProcess
from tests.doors.feeds.reading import Feed, by_key, code_of


@pytest.fixture
def traced(api: ApiProcess) -> Feed:
    feed = Feed(api, 4)
    event = {"subject": "k", "datacontenttype": "application/json", "count": 7, "data": {"a": 1}}
    feed.publish(event, headers={"tracestate": "vendor=1"})
    return feed


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (None, None),
        ("", None),
        ("ce_id,", {"ce_id": "1"}),
        ("CE_ID,Content-Type", {"ce_id": "1", "content-type": "application/json"}),
        ("ce_count", {"ce_count": "7"}),
        ("tracestate,nothing", {"tracestate": "vendor=1"}),
        ("nothing", None),
    ],
)
def test_ft_12_only_asked_headers_are_shown(traced: Feed, asked: str | None, expected: object) -> None:
    query = {} if asked is None else {"headers": asked}
    lines = traced.v1(4, dict.fromkeys(range(4), "_first"), **query).lines
    (event,) = [line for line in lines if "data" in line]
    assert event.get("headers") == expected


def test_ft_12_all_headers_are_shown(traced: Feed) -> None:
    lines = traced.v1(4, dict.fromkeys(range(4), "_first"), headers="_all").lines
    (headers,) = [line["headers"] for line in lines if "data" in line]
    assert headers == {
        "ce_specversion": "1.0",
        "ce_source": "/s",
        "ce_type": "t",
        "ce_id": "1",
        "ce_subject": "k",
        "ce_datacontenttype": "application/json",
        "ce_count": "7",
        "content-type": "application/json",
        "tracestate": "vendor=1",
    }


def test_ft_34_the_example_request_of_the_text(api: ApiProcess) -> None:
    feed = Feed(api, 4)
    feed.publish(*({"subject": f"k{n}", "tracestate": f"t{n}"} for n in range(100)))
    page = feed.v1(4, {0: "_first", 1: "_first"}, pagesizehint=1000, headers="ce_tracestate,ce_id")
    assert page.cursors.keys() == {0, 1} and page.events
    assert all(line["headers"].keys() == {"ce_tracestate", "ce_id"} for line in page.lines if "data" in line)


def test_the_payload_alone_can_be_asked_for(api: ApiProcess) -> None:
    feed = Feed(api, 1, feed={"v1Data": "payload"})
    feed.publish(
        {"data": {"a": [1, 2]}},
        {"data": "just text", "datacontenttype": "text/plain"},
        {"data_base64": "AP8=", "datacontenttype": "application/octet-stream"},
        {},
    )
    page = feed.v1(1, {0: "_first"}, headers="ce_id")
    assert [data for _, data in page.events] == [{"a": [1, 2]}, "just text", "AP8=", {}]
    assert [line["headers"] for line in page.lines if "data" in line] == [{"ce_id": str(n)} for n in range(1, 5)]
    assert all(event["specversion"] == "1.0" for event in feed.all_v2(0))


def test_types_can_be_chosen_in_v1_too(api: ApiProcess) -> None:
    feed = Feed(api, 1)
    feed.publish({"type": "a"}, {"type": "b"}, {"type": "c"})
    assert feed.v1(1, {0: "_first"}, **{"event-types": "A;c"}).ids == ["1", "3"]
    assert feed.v1(1, {0: "_first"}, **{"skip-event-types": "a;C"}).ids == ["2"]
    both = {"event-types": "a", "skip-event-types": "b"}
    assert code_of(feed.get(n=1, cursor0="_first", **both)) == (400, "types-conflict")


@pytest.mark.parametrize("method", ["close", "redistribute"])
def test_ft_22_a_reader_of_v1_never_notices_new_partitions(api: ApiProcess, method: str) -> None:
    feed = Feed(api, 2)
    feed.publish_keyed(100)
    seen = feed.v1(2, {0: "_first", 1: "_first"}, pagesizehint=60)
    cursors, events = dict(seen.cursors), list(seen.events)
    assert feed.repartition(method, 4).status == 200
    feed.publish_keyed(100)
    while True:
        page = feed.v1(2, cursors, pagesizehint=60)
        events += page.events
        if not page.events:
            break
        cursors = page.cursors
    assert sorted((event["id"] for _, event in events), key=int) == [str(n) for n in range(1, 201)]
    for ids in by_key(event for _, event in events).values():
        assert ids == sorted(ids, key=int)
    assert feed.get(n=4, cursor0="_first").status == feed.get(n=2, cursor0="_first").status == 200


def test_a_cursor_is_good_for_both_halves_of_a_split(api: ApiProcess) -> None:
    feed = Feed(api, 2)
    feed.publish_keyed(200)
    half = feed.v1(2, {1: "_first"}, pagesizehint=30)
    rest = [event["id"] for event in feed.all_v1(2, 1, half.cursors[1])]
    halves = [event["id"] for p in (1, 3) for event in feed.all_v1(4, p, half.cursors[1])]
    assert sorted(halves) == sorted(rest) and half.ids + rest == [event["id"] for event in feed.all_v1(2, 1)]


def test_a_former_number_of_partitions_may_still_be_asked_for(api: ApiProcess) -> None:
    feed = Feed(api, 3)
    feed.publish_keyed(60)
    assert feed.repartition("close", 6).status == 200
    for n in (3, 6):
        page = feed.v1(n, dict.fromkeys(range(n), "_first"))
        assert sorted(page.ids, key=int) == [str(one) for one in range(1, 61)]
    assert code_of(feed.get(n=5, cursor0="_first")) == (400, "n-unsupported")
