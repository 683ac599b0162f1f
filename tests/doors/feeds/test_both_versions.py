"""What v1 and v2 share: addresses, refusals, cursors, page sizes, lines."""

from __future__ import annotations

import json

import pytest

from tests.api_process import ApiProcess, an_api
from tests.doors.feeds.reading import Feed, by_key, code_of, metric, taken_apart


def test_ft_01_a_bare_get_is_discovery(api: ApiProcess) -> None:
    feed = Feed(api)
    for query in ({}, {"x": 1}):
        answer = feed.get(**query)
        assert answer.status == 200 and answer.headers["content-type"] == "application/json"
        assert [one["id"] for one in answer.json["partitions"]] == ["0", "1", "2", "3"]
        assert answer.json["exactlyOnce"] is False and answer.json["consistent"] is True
        assert answer.json["token"] and answer.json["token"] != "_v1"


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("?cursor0=_first", "n-missing"),
        ("?resume=0", "n-missing"),
        ("?n=abc&cursor0=_first", "n-unsupported"),
        ("?n=0&cursor0=_first", "n-unsupported"),
        ("?n=-1&cursor0=_first", "n-unsupported"),
        ("?n=3&cursor0=_first", "n-unsupported"),
        ("?n=2048&cursor0=_first", "n-unsupported"),
        ("?n=4&n=4&cursor0=_first", "parameter-repeated"),
    ],
)
def test_ft_02_a_wrong_number_of_partitions_is_refused(api: ApiProcess, query: str, code: str) -> None:
    assert code_of(Feed(api).raw(query)) == (400, code)


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("?n=4", "cursor-missing"),
        ("?n=4&cursor4=_first", "cursor-missing"),
        ("?n=4&cursor0=", "cursor-missing"),
        ("?n=4&cursor0=_first&cursor0=_first", "parameter-repeated"),
    ],
)
def test_ft_03_a_usable_cursor_is_needed(api: ApiProcess, query: str, code: str) -> None:
    assert code_of(Feed(api).raw(query)) == (400, code)


def test_ft_04_a_cursor_beyond_n_is_ignored(api: ApiProcess) -> None:
    page = Feed(api).v1(4, {0: "_first", 9: "x"})
    assert page.cursors.keys() == {0}


@pytest.mark.parametrize("n", [1, 2, 4, 8, 1024])
def test_ft_05_every_division_shows_the_same_events(thousand: Feed, n: int) -> None:
    page = thousand.v1(n, dict.fromkeys(range(n), "_first"), pagesizehint=10_000)
    assert sorted(page.ids, key=int) == [str(one) for one in range(1, 1001)]
    assert page.cursors.keys() == set(range(n))
    for ids in by_key(event for _, event in page.events).values():
        assert ids == sorted(ids, key=int)
    partitions: dict[str, set[object]] = {}
    for partition, event in page.events:
        partitions.setdefault(event["subject"], set()).add(partition)
    assert all(len(found) == 1 for found in partitions.values())


@pytest.fixture(scope="module")
def thousand(api: ApiProcess) -> Feed:
    feed = Feed(api)
    feed.publish_keyed(1000)
    return feed


@pytest.mark.parametrize("n", [1, 8])
def test_single_cursors_read_the_same_as_all_together(thousand: Feed, n: int) -> None:
    apart = [event["id"] for p in range(n) for event in thousand.all_v1(n, p, pagesizehint=70)]
    assert sorted(apart, key=int) == [str(one) for one in range(1, 1001)]


@pytest.mark.parametrize(("hint", "events"), [(10, 10), (7, 7), (101, 101), (4, 4), (1, 4)])
def test_a_page_over_several_cursors_holds_no_more_than_was_asked_for(thousand: Feed, hint: int, events: int) -> None:
    """But one for each cursor: whose cursor stays where it was, seems to have read everything."""
    page = thousand.v1(4, dict.fromkeys(range(4), "_first"), pagesizehint=hint)
    assert len(page.events) == events and {partition for partition, _ in page.events} == {0, 1, 2, 3}


def test_a_page_over_cursors_with_little_ahead_is_filled_by_the_others(thousand: Feed) -> None:
    page = thousand.v1(4, {0: "_last", 1: "_first", 2: "_last", 3: "_first"}, pagesizehint=9)
    assert len(page.events) == 9 and {partition for partition, _ in page.events} == {1, 3}


def test_ft_06_several_cursors_share_a_page(thousand: Feed) -> None:
    page = thousand.v1(4, {0: "_first", 1: "_first"}, pagesizehint=10)
    shares = [sum(partition == p for partition, _ in page.events) for p in (0, 1)]
    assert shares == [5, 5]


def test_an_unused_share_goes_to_the_others(api: ApiProcess) -> None:
    feed = Feed(api, 2)
    feed.publish(*({"subject": "only one key"} for _ in range(30)))
    full = next(p for p in (0, 1) if feed.all_v1(2, p))
    page = feed.v1(2, {0: "_first", 1: "_first"}, pagesizehint=20)
    assert [partition for partition, _ in page.events] == [full] * 20


def test_cursors_at_different_places_are_read_each_from_its_own(thousand: Feed) -> None:
    whole = {p: [event["id"] for event in thousand.all_v1(4, p)] for p in range(4)}
    low, high = thousand.after(300), thousand.after(900)
    page = thousand.v1(4, {0: low, 1: "_first", 2: high, 3: low}, pagesizehint=10_000)
    for p, start in ((0, 300), (1, 0), (2, 900), (3, 300)):
        assert [event["id"] for q, event in page.events if q == p] == [one for one in whole[p] if int(one) > start]


def test_ft_07_an_empty_topic_still_gives_a_checkpoint(api: ApiProcess) -> None:
    feed = Feed(api)
    page = feed.v1(4, {0: "_first", 3: "_last"})
    assert page.events == [] and page.cursors.keys() == {0, 3}
    assert feed.v2(2, "_first").lines == [{"cursor": "0"}]


def test_ft_08_last_is_after_the_last_event(api: ApiProcess) -> None:
    feed = Feed(api, 1)
    feed.publish_keyed(3)
    v1, v2 = feed.v1(1, {0: "_last"}), feed.v2(0, "_last")
    assert v1.events == v2.events == []
    (new,) = feed.publish({})
    assert feed.v1(1, v1.cursors).ids == feed.v2(0, v2.cursor).ids == [new]


@pytest.mark.parametrize("cursor", ["abc", "007", "-1", "_middle", "9" * 200, "ä", "1 ", str(1 << 63)])
def test_ft_09_what_is_no_cursor_is_refused(api: ApiProcess, cursor: str) -> None:
    feed = Feed(api)
    assert code_of(feed.get(n=4, cursor0=cursor)) == (400, "cursor-malformed")
    token = feed.discover()["token"]
    assert code_of(feed.get("/events", token=token, partition=0, cursor=cursor)) == (400, "cursor-malformed")


def test_ft_09_a_cursor_past_the_end_comes_back(api: ApiProcess) -> None:
    feed = Feed(api)
    feed.publish_keyed(10)
    assert feed.v1(4, {0: 10**12}).lines == [{"partition": 0, "cursor": str(10**12)}]
    assert feed.v2(0, 10**12).lines == [{"cursor": str(10**12)}]


@pytest.mark.parametrize(("hint", "events"), [("0", 100), ("1", 1), ("150", 150), (str(10**9), 1000)])
def test_ft_11_a_page_has_the_wanted_size(thousand: Feed, hint: str, events: int) -> None:
    assert len(thousand.v1(1, {0: "_first"}, pagesizehint=hint).events) == events
    assert len(thousand.v2(0, "_first", pagesizehint=hint).events) <= events


@pytest.mark.parametrize("hint", ["-5", "x", "1.5", ""])
def test_ft_11_a_wrong_page_size_is_refused(thousand: Feed, hint: str) -> None:
    assert code_of(thousand.get(n=4, cursor0="_first", pagesizehint=hint)) == (400, "pagesize-invalid")
    token = thousand.discover()["token"]
    answer = thousand.get("/events", token=token, partition=0, cursor="_first", pagesizehint=hint)
    assert code_of(answer) == (400, "pagesize-invalid")


def test_a_checkpoint_comes_at_least_every_hundred_events(thousand: Feed) -> None:
    since = 0
    for line in thousand.v1(1, {0: "_first"}, pagesizehint=10_000).lines:
        since = 0 if "cursor" in line else since + 1
        assert since <= 100


def test_a_checkpoint_in_the_middle_goes_on_without_gap_or_repeat(thousand: Feed) -> None:
    lines = thousand.v1(2, {0: "_first", 1: "_first"}, pagesizehint=10_000).lines
    seen: dict[int, list[str]] = {0: [], 1: []}
    for line in lines[:-2]:
        if "data" in line:
            seen[line["partition"]].append(line["data"]["id"])
        else:
            p = line["partition"]
            rest = [event["id"] for event in thousand.all_v1(2, p, line["cursor"], pagesizehint=10_000)]
            whole = [event["id"] for event in thousand.all_v1(2, p, pagesizehint=10_000)]
            assert seen[p] + rest == whole


ODD = "line\u2028sep\u2029par\u0085next \U0001f600 cr\rlf\n end"


def test_ft_13_an_event_is_one_line_for_every_splitter(api: ApiProcess) -> None:
    feed = Feed(api, 1)
    feed.publish({"subject": "odd\u2028key", "data": {"text": ODD}})
    for answer in (
        feed.get(n=1, cursor0="_first", headers="_all"),
        feed.get("/events", token=feed.discover()["token"], partition=0, cursor="_first"),
    ):
        assert len(answer.body.decode().splitlines()) == 2
        ((_, event),) = taken_apart(answer).events
        assert event["data"] == {"text": ODD} and event["subject"] == "odd\u2028key"


def padded(size: int) -> dict[str, object]:
    """An event that has so many bytes as compact JSON."""
    event = {"specversion": "1.0", "id": "long", "source": "/s", "type": "t", "data": ""}
    return {**event, "data": "x" * (size - len(json.dumps(event, separators=(",", ":"))))}


def test_ft_14_a_long_line_is_served_and_counted(api: ApiProcess) -> None:
    feed = Feed(api, 1)
    for size, counted in ((65_526, 0), (65_527, 1)):
        start = feed.v2(0, "_last").cursor
        feed.publish(padded(size))
        answer = feed.get("/events", token=feed.discover()["token"], partition=0, cursor=start)
        assert max(map(len, answer.body.split(b"\n"))) == size + 9
        assert metric(api, "tidings_feed_long_lines_total", feed.name) == counted


def test_ft_14_a_long_line_may_be_refused_at_publishing(api: ApiProcess) -> None:
    feed = Feed(api, 1, feed={"feedLineLimit": "reject", "versions": "v2"})
    form = "application/cloudevents+json"
    assert api.publish(feed.name, padded(65_526), form).status == 202
    refused = api.publish(feed.name, padded(65_527), form)
    assert refused.status == 413 and "feedLineLimit" in refused.json["detail"]
    assert len(feed.all_v2(0)) == 1


def test_ft_14_where_v1_is_spoken_its_longer_line_decides(api: ApiProcess) -> None:
    feed = Feed(api, 1, feed={"feedLineLimit": "reject"})
    form = "application/cloudevents+json"
    assert api.publish(feed.name, padded(65_513), form).status == 413
    assert api.publish(feed.name, padded(65_512), form).status == 202
    line, _ = feed.get(n=1, cursor0="_first").body.split(b"\n", 1)
    assert len(line) == 65_535
    bare = Feed(api, 1, feed={"feedLineLimit": "reject", "v1Data": "payload"})
    assert api.publish(bare.name, padded(65_526), form).status == 202


def test_ft_32_a_feed_is_only_read(api: ApiProcess) -> None:
    feed = Feed(api)
    for method in ("POST", "DELETE", "PUT"):
        answer = api.call(method, feed.path)
        assert code_of(answer) == (405, "method-not-allowed") and answer.headers["allow"] == "GET, HEAD"
    answer = api.call("HEAD", feed.path)
    assert answer.status == 200 and answer.body == b"" and int(answer.headers["content-length"]) > 10
    token = feed.discover()["token"]
    events = api.call("HEAD", f"{feed.path}/events?token={token}&partition=0&cursor=_first")
    assert events.status == 405 and events.headers["allow"] == "GET"
    assert code_of(api.call("GET", "/feeds/nobody-made-this")) == (404, "not-found")
    assert code_of(api.call("GET", f"{feed.path}/other")) == (404, "not-found")


def test_a_whole_event_is_shown_whatever_its_payload(api: ApiProcess) -> None:
    feed = Feed(api, 1)
    base = {"ce-specversion": "1.0", "ce-source": "/s", "ce-type": "t"}
    path = f"/api/topics/{feed.name}/events"
    api.call("POST", path, b"plain text", {**base, "ce-id": "text", "content-type": "text/plain"})
    api.call("POST", path, b"\x00\xff", {**base, "ce-id": "bytes", "content-type": "application/octet-stream"})
    api.call("POST", path, b"{broken", {**base, "ce-id": "broken", "content-type": "application/json"})
    api.call("POST", path, b"", {**base, "ce-id": "none"})
    api.call(
        "POST", path, b'"t"', {**base, "ce-id": "traced", "content-type": "application/json", "traceparent": "00-ab-cd-01"}
    )
    events = {event["id"]: event for event in feed.all_v2(0)}
    assert events["text"]["data"] == "plain text" and events["bytes"]["data_base64"] == "AP8="
    assert events["broken"]["data_base64"] and "data" not in events["none"]
    assert events["traced"]["data"] == "t" and not any(name.startswith("$") for name in events["traced"])


def test_ft_37_insignificant_space_goes_and_nothing_else(api: ApiProcess) -> None:
    feed = Feed(api, 1)
    payload = b'{\n  "z" : 1.0E+5,\r\n\t"a" : [ 1 , 2.50 ],\n  "text" : "a  b" }'
    head = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/s", "ce-type": "t", "content-type": "application/json"}
    assert api.call("POST", f"/api/topics/{feed.name}/events", payload, head).status == 202
    token = feed.discover()["token"]
    for answer in (feed.get(n=1, cursor0="_first"), feed.get("/events", token=token, partition=0, cursor="_first")):
        assert b'"data":{"z":1.0E+5,"a":[1,2.50],"text":"a  b"}}' in answer.body
        assert answer.body.count(b"\n") == 2


def test_ft_37_the_list_of_feeds_tells_what_each_promises(api: ApiProcess) -> None:
    feed = Feed(api, 2, retention="3d", duplicates="forever", feed={"aliases": ["/listed/feed/v1"]})
    (listed,) = [one for one in api.call("GET", "/feeds").json["feeds"] if one.get("topic") == feed.name]
    assert listed["url"] == feed.path and listed["partitions"] == 2 and listed["retention"] == 3 * 86400
    assert listed["exactlyOnce"] is True and listed["consistent"] is True
    assert listed["pageSize"] == {"default": 100, "max": 10_000} and listed["lineLimit"] == {"bytes": 65_535, "over": "serve"}
    assert listed["aliases"] == ["/listed/feed/v1"] and listed["maxEventBytes"] == 65_536


def test_a_name_of_another_namespace_is_one_encoded_segment(api: ApiProcess) -> None:
    feed = Feed(api, 1, name="some/where:orders")
    ids = feed.publish({}, {})
    assert feed.path == "/feeds/some%2Fwhere%3Aorders"
    assert [event["id"] for event in feed.all_v2(0)] == ids
    assert api.call("GET", "/feeds/some/where:orders").status == 404


def test_an_alias_is_the_feed_itself(api: ApiProcess) -> None:
    feed = Feed(api, 1, feed={"aliases": ["/my-kind-of-entity/feed/v1"]})
    ids = feed.publish({}, {})
    token = api.call("GET", "/my-kind-of-entity/feed/v1").json["token"]
    assert taken_apart(api.call("GET", "/my-kind-of-entity/feed/v1?n=1&cursor0=_first")).ids == ids
    below = f"/my-kind-of-entity/feed/v1/events?token={token}&partition=0&cursor=_first"
    assert taken_apart(api.call("GET", below)).ids == ids
    assert api.call("POST", "/my-kind-of-entity/feed/v1").status == 405
    taken = api.call("PUT", "/api/topics/alias-thief", {"feed": {"aliases": ["/my-kind-of-entity/feed/v1"]}})
    assert taken.status == 400 and feed.name in taken.json["detail"]
    for bad in ("/api/x", "/feeds/x", "no-slash", "/a b"):
        assert api.call("PUT", "/api/topics/alias-bad", {"feed": {"aliases": [bad]}}).status == 400


def test_versions_can_be_chosen(api: ApiProcess) -> None:
    old = Feed(api, 1, feed={"versions": "v1"})
    assert code_of(old.get()) == (400, "n-missing")
    assert old.get("/events", token="x", partition=0, cursor="_first").status == 404
    assert old.get(n=1, cursor0="_first").status == 200
    new = Feed(api, 1, feed={"versions": "v2"})
    assert code_of(new.get(n=1, cursor0="_first")) == (400, "n-unsupported")
    assert new.get().status == 200


def test_a_filter_of_other_topics_events_does_not_move_a_cursor(api: ApiProcess) -> None:
    quiet, busy = Feed(api, 1), Feed(api, 1)
    quiet.publish({})
    cursor = quiet.v2(0, "_last").cursor
    busy.publish_keyed(20)
    assert quiet.v2(0, cursor).lines == [{"cursor": cursor}]


def test_settings_survive_a_restart_and_partitions_stay(tmp_path) -> None:  # type: ignore[no-untyped-def]
    with an_api(tmp_path) as api:
        feed = Feed(api, 2, name="orders")
        token = feed.discover()["token"]
        assert api.call("PUT", "/api/topics/orders", {"description": "changed"}).status == 200
        fixed = api.call("PUT", "/api/topics/orders", {"feed": {"partitions": 8}})
        assert fixed.status == 400 and "partitions" in fixed.json["detail"]
    with an_api(tmp_path) as api:
        found = api.call("GET", "/feeds/orders").json
        assert found["token"] == token and len(found["partitions"]) == 2


def test_a_rare_key_is_found_among_many_events(api: ApiProcess) -> None:
    feed = Feed(api, 1)
    feed.publish_keyed(5000, keys=20)
    (rare,) = feed.publish({"subject": "rare"})
    page = feed.v1(1024, dict.fromkeys(range(1024), feed.after(5000)))
    ((home, _),) = page.events
    assert home is not None
    found = [event["id"] for event in feed.all_v1(1024, home) if event["subject"] == "rare"]
    assert found == [rare]


def test_feeds_can_be_applied_again_and_again(api: ApiProcess) -> None:
    document = {"topics": {"applied": {"feed": {"partitions": 4, "versions": "v2"}}}}
    first, again = (api.call("POST", "/api/apply", document).json for _ in range(2))
    assert len(first["steps"]) == 1 and (again["steps"], again["unchanged"]) == ([], 1)
    assert api.call("POST", "/api/feeds/applied/partitions", {"method": "close", "count": 8}).status == 200
    assert api.call("POST", "/api/apply", document).json["unchanged"] == 1
    bare = api.call("POST", "/api/apply", {"topics": {"applied": {"feed": {"versions": "v1"}}}}).json
    assert [step["action"] for step in bare["steps"]] == ["update"]
    assert len(api.call("GET", "/api/topics/applied").json["feed"]) >= 7


def test_an_unknown_setting_of_a_feed_is_refused(api: ApiProcess) -> None:
    answer = api.call("PUT", "/api/topics/odd", {"feed": {"partition": 4}})
    assert answer.status == 400 and "partitions" in answer.json["detail"]
