"""Cursors that the hub keeps for its readers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.api_process import ApiProcess, an_api
from tests.doors.feeds.reading import Feed, code_of, taken_apart
from tests.doors.feeds.test_both_versions import metric
from tests.polling import until
from tidings.access.authentication import token_digest
from tidings.clock import Instant
from tidings.delivery.feeds.cursor_sets import KeptCursor, SetKey
from tidings.delivery.feeds.sqlite_cursor_sets import SqliteCursorSets
from tidings.doors.feed_state import cursor_set_lag
from tidings.doors.native import status
from tidings.log.position import Offset, TopicNumber
from tidings.log.sqlite.topic_slices import SqliteSlices


def test_ft_23_a_stored_cursor_survives_a_restart(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        feed = Feed(api, 1, name="orders")
        feed.publish_keyed(10)
        feed.v1(1, {0: "5"}, cursorset="a")
    with an_api(tmp_path) as api:
        page = taken_apart(api.call("GET", "/feeds/orders?n=1&cursorset=a&resume=0"))
        assert page.ids == ["6", "7", "8", "9", "10"]


def test_ft_24_last_is_stored_as_the_place_it_meant(api: ApiProcess) -> None:
    feed = Feed(api, 1)
    feed.publish_keyed(4)
    assert feed.v1(1, {0: "_last"}, cursorset="a").events == []
    new = feed.publish_keyed(3)
    assert taken_apart(feed.get(n=1, cursorset="a", resume=0)).ids == new
    token = feed.discover()["token"]
    feed.v2(0, "_last", cursorset="a")
    more = feed.publish_keyed(2)
    assert taken_apart(feed.get("/events", token=token, partition=0, cursorset="a", resume=0)).ids == more


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"resume": "0"}, "resume-invalid"),
        ({"resume": "0", "cursorset": "a", "cursor0": "1"}, "resume-invalid"),
        ({"resume": "4", "cursorset": "a"}, "resume-invalid"),
        ({"resume": "0,0", "cursorset": "a"}, "resume-invalid"),
        ({"resume": "x", "cursorset": "a"}, "resume-invalid"),
        ({"resume": "", "cursorset": "a"}, "resume-invalid"),
        ({"resume": "0,1", "cursorset": "a"}, "resume-unknown"),
        ({"cursor0": "1", "cursorset": "x" * 51}, "cursorset-invalid"),
        ({"cursor0": "1", "cursorset": ""}, "cursorset-invalid"),
        ({"cursor0": "1", "cursorset": "ä"}, "cursorset-invalid"),
        ({"cursor0": "1", "store_cursor": "1"}, "cursorset-invalid"),
        ({"cursor0": "1", "cursorset": "a", "store_cursor": "2"}, "cursorset-invalid"),
    ],
)
def test_ft_25_what_cannot_be_resumed_is_refused(api: ApiProcess, query: dict[str, str], code: str) -> None:
    feed = Feed(api, 4)
    feed.v1(4, {0: "1"}, cursorset="a")
    answer = feed.get(n=4, **query)
    assert code_of(answer) == (400, code)
    if code == "resume-unknown":
        assert "1" in answer.json["detail"] and "0" not in answer.json["detail"]


def test_ft_25_two_consumers_may_use_one_name(tmp_path: Path) -> None:
    rights = ["publish", "read", "admin"]
    tokens = [{"name": name, "sha256": token_digest(name), "rights": rights} for name in ("ann", "bob")]
    with an_api(tmp_path, access={"mode": "tokens", "tokens": tokens}) as api:
        as_ann, as_bob = ({"authorization": f"Bearer {name}"} for name in ("ann", "bob"))
        api.call("PUT", "/api/topics/orders", {}, as_ann)
        path = "/feeds/orders?n=1&cursorset=a"
        assert api.call("GET", f"{path}&cursor0=3", headers=as_ann).status == 200
        assert code_of(api.call("GET", f"{path}&resume=0", headers=as_bob)) == (400, "resume-unknown")
        assert api.call("GET", f"{path}&cursor0=9", headers=as_bob).status == 200
        for who, cursor in ((as_ann, "3"), (as_bob, "9")):
            assert taken_apart(api.call("GET", f"{path}&resume=0", headers=who)).cursors == {0: cursor}
        listed = api.call("GET", "/api/feeds/orders/cursorsets", headers=as_ann).json["cursors"]
        assert [(one["consumer"], one["name"], one["cursor"]) for one in listed] == [("ann", "a", "3"), ("bob", "a", "9")]
        deleted = "/api/feeds/orders/cursorsets/a?consumer=bob"
        assert [api.call("DELETE", deleted, headers=as_ann).status for _ in range(2)] == [204, 404]
        assert code_of(api.call("GET", f"{path}&resume=0", headers=as_bob)) == (400, "resume-unknown")


def test_ft_26_a_cursor_can_be_stored_without_reading(api: ApiProcess) -> None:
    feed = Feed(api, 1)
    feed.publish_keyed(10)
    answer = feed.get(n=1, store_cursor=1, pagesizehint=0, cursorset="a", cursor0=feed.after(7))
    assert answer.body == b'{"partition":0,"cursor":"%d"}\n' % feed.after(7)
    assert taken_apart(feed.get(n=1, cursorset="a", resume=0)).ids == ["8", "9", "10"]
    feed.get(n=1, store_cursor=1, pagesizehint=0, cursorset="a", cursor0=feed.after(2))
    assert taken_apart(feed.get(n=1, cursorset="a", resume=0)).ids[0] == "3"


def test_ft_34_thirty_two_partitions_are_resumed_together(api: ApiProcess) -> None:
    feed = Feed(api, 4)
    feed.publish_keyed(100)
    first = feed.v1(32, dict.fromkeys(range(32), "_first"), cursorset="all")
    page = taken_apart(feed.get(n=32, cursorset="all", resume=",".join(map(str, range(32)))))
    assert page.cursors.keys() == set(range(32)) and sorted(page.ids) == sorted(first.ids)


def test_v2_resumes_from_its_ancestors(api: ApiProcess) -> None:
    feed = Feed(api, 1)
    feed.publish_keyed(20)
    feed.v2(0, feed.after(5), cursorset="a")
    found = feed.repartition("redistribute", 2).json
    token = found["token"]
    rest = [taken_apart(feed.get("/events", token=token, partition=p, cursorset="a", resume=p)).ids for p in (1, 2)]
    assert sorted(rest[0] + rest[1], key=int) == [str(n) for n in range(6, 21)]
    token = feed.repartition("close", 4).json["token"]
    (new,) = feed.publish({"subject": "x"})
    got = [taken_apart(feed.get("/events", token=token, partition=p, cursorset="a", resume=p)).ids for p in range(3, 7)]
    assert [new] in got
    wrong = feed.get("/events", token=token, partition=3, cursorset="a", resume=4)
    assert code_of(wrong) == (400, "resume-invalid")
    nothing = Feed(api, 1)
    answer = nothing.get("/events", token=nothing.discover()["token"], partition=0, cursorset="a", resume=0)
    assert code_of(answer) == (400, "resume-unknown")


def test_cursor_sets_are_consumers_with_a_lag(api: ApiProcess) -> None:
    feed = Feed(api, 1)
    feed.publish_keyed(10)
    feed.v1(1, {0: "0"}, cursorset="slow")
    feed.v2(0, "_last", cursorset="fast")
    listed = api.call("GET", f"/api/feeds/{feed.name}/cursorsets").json["cursors"]
    assert [(one["name"], one["version"], one["lag"]) for one in listed] == [("fast", "v2", 0), ("slow", "v1", 10)]
    assert all(one["lastUsed"].endswith("Z") for one in listed)
    assert metric(api, "tidings_feed_cursor_lag_events", feed.name, 'cursorset="slow"') == 10


def test_a_closed_partition_that_was_read_is_not_behind(api: ApiProcess) -> None:
    feed = Feed(api, 1)
    feed.publish_keyed(10)
    start = feed.v2(0, "_first", pagesizehint=4).cursor
    assert feed.repartition("close", 2).status == 200
    feed.publish_keyed(10)
    feed.v2(0, start, cursorset="halfway")
    feed.v2(0, "_last", cursorset="done")
    listed = api.call("GET", f"/api/feeds/{feed.name}/cursorsets").json["cursors"]
    assert {one["name"]: one["lag"] for one in listed} == {"halfway": 6, "done": 0}


def test_access_is_counted_by_consumer_feed_and_partition(api: ApiProcess) -> None:
    feed = Feed(api, 1)
    feed.publish_keyed(7)
    feed.v1(1, {0: "_first"})
    feed.v2(0, "_first")
    assert metric(api, "tidings_feed_events_total", feed.name, 'partition="0"', 'consumer=""') == 14
    assert metric(api, "tidings_feed_requests_total", feed.name, 'version="v1"') == 1


def test_the_lags_of_many_cursors_cost_one_look_at_each_topic(api: ApiProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    feeds = [Feed(api, 1), Feed(api, 4)]
    for feed in feeds:
        feed.publish_keyed(50)
        for n in range(5):
            feed.v1(8, dict.fromkeys(range(8), feed.after(n * 10)), cursorset=f"set-{n}")
    looks: list[int] = []
    newest = SqliteSlices.newest

    def counted(self: SqliteSlices, topic: TopicNumber, *bounds: Any) -> Any:
        looks.append(topic)
        return newest(self, topic, *bounds)

    monkeypatch.setattr(SqliteSlices, "newest", counted)
    listed = api.call("GET", f"/api/feeds/{feeds[0].name}/cursorsets").json["cursors"]
    assert len(listed) == 40 and len(looks) == 1
    lags = [sum(one["lag"] for one in listed if one["name"] == f"set-{n}") for n in range(5)]
    assert lags == [50, 40, 30, 20, 10] and all(one["lagWhole"] for one in listed)
    looks.clear()
    assert api.call("GET", "/metrics").status == 200
    assert len(looks) == len(set(looks))


def test_a_cursor_that_is_far_behind_is_counted_only_so_far(api: ApiProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cursor_set_lag, "LOOKED_AT", 20)
    feed = Feed(api, 1)
    feed.publish_keyed(50)
    for n in (0, 29, 30, 45):
        feed.v1(1, {0: feed.after(n)}, cursorset=f"after-{n}")
    listed = api.call("GET", f"/api/feeds/{feed.name}/cursorsets").json["cursors"]
    assert {one["name"]: (one["lag"], one["lagWhole"]) for one in listed} == {
        "after-0": (20, False),
        "after-29": (20, False),
        "after-30": (20, True),
        "after-45": (5, True),
    }


def test_only_the_cursors_that_were_used_last_have_figures(api: ApiProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "CURSOR_SERIES", 2)
    feed = Feed(api, 1)
    for name in ("first", "second", "third", "second"):
        feed.v1(1, {0: "_first"}, cursorset=name)
    figures = [
        line for line in api.call("GET", "/metrics").body.decode().splitlines() if line.startswith("tidings_feed_cursor_lag")
    ]
    assert len(figures) == 2 and all(any(name in line for line in figures) for name in ("second", "third"))


def test_a_consumer_keeps_only_so_many_cursor_sets(tmp_path: Path) -> None:
    with an_api(tmp_path, feeds={"cursor_sets": 3}) as api:
        feed, other = Feed(api, 1), Feed(api, 1)
        for name in ("a", "b"):
            feed.v1(1, {0: "_first"}, cursorset=name)
        other.v1(1, {0: "_first"}, cursorset="a")
        refused = feed.get(n=1, cursor0="_first", cursorset="c")
        assert code_of(refused) == (400, "cursorset-limit") and "feeds.cursor_sets = 3" in refused.json["detail"]
        assert feed.v1(1, {0: "_first"}, cursorset="b").cursors, "what is kept already goes on"
        assert api.call("DELETE", f"/api/feeds/{feed.name}/cursorsets/a").status == 204
        assert feed.v1(1, {0: "_first"}, cursorset="c").cursors
    with an_api(tmp_path, feeds={"cursor_sets": 3}) as api:
        answer = api.call("GET", f"/feeds/{feed.name}?n=1&cursor0=_first&cursorset=d")
        assert code_of(answer) == (400, "cursorset-limit"), "a restart forgets nothing"


def test_sets_that_come_at_the_same_time_are_counted_too(tmp_path: Path) -> None:
    with an_api(tmp_path, feeds={"cursor_sets": 5}) as api, ThreadPoolExecutor(20) as pool:
        feed = Feed(api, 1)
        answers = list(pool.map(lambda n: feed.get(n=1, cursor0="_first", cursorset=f"set-{n}"), range(20)))
        assert sorted(answer.status for answer in answers) == [200] * 5 + [400] * 15


def sets_in(data: Path) -> set[tuple[str, str]]:
    with closing(SqliteCursorSets(data)) as sets:
        return {(one.key.feed, one.key.name) for one in sets.listed()}


def a_set(feed: str, name: str, partition: int, used: int) -> KeptCursor:
    return KeptCursor(SetKey("ann", feed, name, "v1", 4), partition, Offset(1), Instant(used))


def test_sets_that_nobody_uses_are_forgotten_whole(tmp_path: Path) -> None:
    with closing(SqliteCursorSets(tmp_path)) as sets:
        sets.save([a_set("1", "old", 0, 10), a_set("1", "old", 1, 20), a_set("1", "half", 0, 10), a_set("1", "half", 1, 99)])
        assert sets.forget(Instant(50), frozenset()) == 2
        assert {key.name for key in sets.held("ann")} == {"half"} and len(sets.listed()) == 2
        assert sets.forget(None, frozenset()) == 0
        assert sets.forget(None, {"1"}) == 2 and not sets.held("ann") and not sets.feeds()


def test_a_hub_forgets_unused_sets_and_those_of_deleted_topics(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        kept, deleted = Feed(api, 1, name="kept"), Feed(api, 1, name="deleted")
        for feed in (kept, deleted):
            feed.v1(1, {0: "_first"}, cursorset="used")
        assert api.call("DELETE", "/api/topics/deleted").status == 204
    with closing(SqliteCursorSets(tmp_path)) as sets:
        (number,) = {one.key.feed for one in sets.listed()} - {"2"}
        sets.save([a_set(number, "ancient", 0, 1)])
    with an_api(tmp_path) as api:
        until(lambda: sets_in(tmp_path) == {(number, "used")}, lambda: str(sets_in(tmp_path)))
