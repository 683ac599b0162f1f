"""What only FeedAPI v2 has: tokens, listed partitions, and how they grow."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.api_process import ApiProcess, an_api
from tests.doors.feeds.reading import Feed, by_key, code_of, taken_apart
from tidings.backup import archive
from tidings.clock import Instant
from tidings.serve import folder as data_folder


def test_ft_15_the_token_is_judged_first(api: ApiProcess) -> None:
    feed = Feed(api, 2)
    token = feed.discover()["token"]
    for query in (
        {"partition": 0, "cursor": "_first"},
        {"token": "other", "partition": 0, "cursor": "_first"},
        {"token": "other", "partition": "x", "cursor": "bad"},
        {"token": Feed(api, 2).discover()["token"], "partition": 0, "cursor": "_first"},
    ):
        assert code_of(feed.get("/events", **query)) == (409, "token-stale")
    assert code_of(feed.raw(f"/events?token={token}&token={token}&partition=0&cursor=1")) == (400, "parameter-repeated")
    for partition in ("", "2", "x", "00", "-1"):
        answer = feed.get("/events", token=token, partition=partition, cursor="bad")
        assert code_of(answer) == (400, "partition-unknown")
    assert code_of(feed.get("/events", token=token, cursor="_first")) == (400, "partition-unknown")
    for query in ({}, {"cursor": ""}):
        assert code_of(feed.get("/events", token=token, partition=0, **query)) == (400, "cursor-missing")


def test_ft_16_types_are_compared_whole_and_without_case(api: ApiProcess) -> None:
    feed = Feed(api, 1)
    feed.publish({"type": "a"}, {"type": "B"}, {"type": "ab"}, {"type": 'q"x'}, {"type": "Ä"})
    token = feed.discover()["token"]
    start = f"/events?token={token}&partition=0&cursor=_first"
    for types in ("A%3Bb", "a;B", "%20a%20;;b;"):
        assert taken_apart(feed.raw(f"{start}&event-types={types}")).ids == ["1", "2"]
    assert taken_apart(feed.raw(f"{start}&event-types=q%22X;%C3%A4")).ids == ["4", "5"]
    empty = taken_apart(feed.raw(f"{start}&event-types="))
    assert empty.events == [] and int(empty.cursor) >= 5
    assert taken_apart(feed.raw(f"{start}&skip-event-types=a;AB")).ids == ["2", "4", "5"]
    assert code_of(feed.raw(f"{start}&event-types=a&skip-event-types=b")) == (400, "types-conflict")


def test_ft_17_hidden_events_are_passed_in_pages(api: ApiProcess) -> None:
    feed = Feed(api, 1)
    feed.publish_keyed(10_000)
    cursor, pages = "_first", 0
    while True:
        page = feed.v2(0, cursor, **{"event-types": "other"})
        assert page.events == []
        if page.cursor == cursor:
            break
        assert cursor == "_first" or int(page.cursor) > int(cursor)
        cursor, pages = page.cursor, pages + 1
    assert pages >= 1
    (shown,) = feed.publish({"type": "Other"})
    assert feed.v2(0, cursor, **{"event-types": "other"}).ids == [shown]


def follow(feed: Feed, delivered: list[str], lock: threading.Lock, until: int) -> None:
    """A reader by the rules of v2: parents first, tokens again after 409, positions by partition."""
    cursors: dict[str, str] = {}
    finished: set[str] = set()
    while len(delivered) < until:
        found = feed.discover()
        token = found["token"]
        for one in found["partitions"]:
            parent = one.get("startsAfterPartition")
            if one["id"] in finished or (parent is not None and parent not in finished):
                continue
            inherited = next((cursors[a] for a in one.get("cursorFromPartitions", ()) if a in cursors), "_first")
            cursor = cursors.get(one["id"], inherited)
            answer = feed.get("/events", token=token, partition=one["id"], cursor=cursor, pagesizehint=20)
            if answer.status == 409:
                break
            page = taken_apart(answer)
            with lock:
                delivered += [event["id"] for _, event in page.events]
            if one.get("closed") and not page.events and page.cursor == cursor:
                finished.add(one["id"])
            cursors[one["id"]] = page.cursor


@pytest.mark.parametrize("method", ["close", "redistribute"])
def test_ft_18_partitions_grow_while_readers_run(api: ApiProcess, method: str) -> None:
    feed = Feed(api, 2)
    delivered: list[str] = []
    reader = threading.Thread(target=follow, args=(feed, delivered, threading.Lock(), 400), daemon=True)
    feed.publish_keyed(150, keys=20)
    reader.start()
    old = feed.discover()["token"]
    assert feed.repartition(method, 4).status == 200
    for partition in (0, 1):
        assert code_of(feed.get("/events", token=old, partition=partition, cursor="_first")) == (409, "token-stale")
    feed.publish_keyed(250, keys=20)
    reader.join(30)
    assert not reader.is_alive()
    assert len(delivered) == len(set(delivered)) == 400
    keys = {event["id"]: event["subject"] for event in feed.all_v1(1, 0, pagesizehint=1000)}
    for ids in by_key({"id": one, "subject": keys[one]} for one in delivered).values():
        assert ids == sorted(ids, key=int)


def test_closed_partitions_stay_and_children_come_after_them(api: ApiProcess) -> None:
    feed = Feed(api, 2)
    feed.publish_keyed(40)
    answer = feed.repartition("close", 4)
    assert answer.status == 200 and answer.json == feed.discover()
    assert answer.json["partitions"] == [
        {"id": "0", "closed": True},
        {"id": "1", "closed": True},
        *({"id": str(2 + j), "startsAfterPartition": str(j % 2)} for j in range(4)),
    ]
    feed.publish_keyed(40)
    before = [event["id"] for p in (0, 1) for event in feed.all_v2(p)]
    after = [event["id"] for p in range(2, 6) for event in feed.all_v2(p)]
    assert sorted(before, key=int) == [str(n) for n in range(1, 41)]
    assert sorted(after, key=int) == [str(n) for n in range(41, 81)]
    end = feed.v2(0, "_last")
    assert end.events == [] and feed.v2(0, end.cursor, wait=30).lines == [{"cursor": end.cursor}]


def test_ft_19_an_ancestors_cursor_goes_on_in_every_child(api: ApiProcess) -> None:
    feed = Feed(api, 2)
    feed.publish_keyed(200)
    read = {p: feed.v2(p, "_first", pagesizehint=30) for p in (0, 1)}
    found = feed.repartition("redistribute", 4).json
    assert found["partitions"] == [{"id": str(2 + j), "cursorFromPartitions": [str(j % 2)]} for j in range(4)]
    feed.publish_keyed(50)
    rest = [event["id"] for j in range(4) for event in feed.all_v2(2 + j, read[j % 2].cursor)]
    assert sorted(rest + read[0].ids + read[1].ids, key=int) == [str(n) for n in range(1, 251)]
    whole = [event["id"] for j in range(4) for event in feed.all_v2(2 + j)]
    assert sorted(whole, key=int) == [str(n) for n in range(1, 251)]
    assert code_of(feed.get("/events", token=found["token"], partition=0, cursor="_first")) == (400, "partition-unknown")


def test_ft_20_a_cursor_of_a_closed_parent_survives_redistribution(api: ApiProcess) -> None:
    feed = Feed(api, 1)
    feed.publish_keyed(100)
    stopped = feed.v2(0, "_first", pagesizehint=40)
    feed.repartition("close", 2)
    feed.publish_keyed(50)
    found = feed.repartition("redistribute", 4).json
    assert [one["cursorFromPartitions"] for one in found["partitions"]] == [["1", "0"], ["2", "0"], ["1", "0"], ["2", "0"]]
    feed.publish_keyed(50)
    rest = [event["id"] for one in found["partitions"] for event in feed.all_v2(one["id"], stopped.cursor)]
    assert sorted(stopped.ids + rest, key=int) == [str(n) for n in range(1, 201)]


def test_ft_21_partitions_can_only_be_doubled(api: ApiProcess) -> None:
    feed = Feed(api, 2)
    for count in (3, 2, 1, 0, 6, 2048):
        answer = feed.repartition("close", count)
        assert answer.status == 400, (count, answer.body)
    assert feed.repartition("melt", 4).status == 400
    assert feed.api.call("POST", "/api/feeds/nobody-made-this/partitions", {"method": "close", "count": 2}).status == 404
    assert len(feed.discover()["partitions"]) == 2


def test_a_change_of_partitions_is_in_the_audit_log(api: ApiProcess) -> None:
    feed = Feed(api, 1)
    feed.publish_keyed(5)
    feed.repartition("close", 2)
    changes = api.call("GET", "/api/changes", after=0, limit=1000).json["changes"]
    change = [one for one in changes if one["kind"] == "topic" and one["name"] == feed.name][-1]
    layout = change["document"]["feed"]["layout"]
    assert change["action"] == "update" and change["cursor"] == f"0-{layout['switches'][-1]}"
    assert [one["id"] for one in layout["partitions"]] == [0, 1, 2]


@pytest.mark.parametrize("as_int", [False, True])
def test_ft_33_relations_are_texts_or_integers(api: ApiProcess, as_int: bool) -> None:
    name = int if as_int else str
    feed = Feed(api, 1, feed={"relationsAsInt": as_int, "firstPartitionId": 1})
    assert [one["id"] for one in feed.discover()["partitions"]] == ["1"]
    feed.repartition("close", 2)
    assert feed.discover()["partitions"][1:] == [
        {"id": "2", "startsAfterPartition": name(1)},
        {"id": "3", "startsAfterPartition": name(1)},
    ]
    feed.repartition("redistribute", 4)
    assert feed.discover()["partitions"][0] == {"id": "4", "cursorFromPartitions": [name(2), name(1)]}


def test_ft_33_integers_need_ids_from_one(api: ApiProcess) -> None:
    answer = api.call("PUT", "/api/topics/ints", {"feed": {"relationsAsInt": True, "firstPartitionId": 0}})
    assert answer.status == 400 and "firstPartitionId" in answer.json["detail"]
    assert answer.json["errors"][0]["attribute"].endswith("feed.relationsAsInt")
    feed = Feed(api, 1)
    assert api.call("PUT", f"/api/topics/{feed.name}", {"feed": {"relationsAsInt": True}}).status == 400
    feed.repartition("redistribute", 2)
    assert api.call("PUT", f"/api/topics/{feed.name}", {"feed": {"relationsAsInt": True}}).status == 200


def test_a_topic_begins_with_partition_one_unless_it_says_otherwise(api: ApiProcess) -> None:
    assert api.call("PUT", "/api/topics/plain", {}).json["feed"]["firstPartitionId"] == 1
    found = api.call("GET", "/feeds/plain").json
    assert found["partitions"] == [{"id": "1"}]
    answer = api.call("GET", f"/feeds/plain/events?token={found['token']}&partition=1&cursor=_first")
    assert taken_apart(answer).events == []


def test_ft_37_partition_ids_run_out_at_32767(api: ApiProcess) -> None:
    feed = Feed(api, 512, feed={"firstPartitionId": 31_744})
    assert feed.repartition("close", 1024).status == 409
    assert len(feed.discover()["partitions"]) == 512


def test_ft_35_exactly_once_is_promised_only_where_it_holds(api: ApiProcess) -> None:
    assert Feed(api, 1, duplicates="forever").discover()["exactlyOnce"] is True
    assert Feed(api, 1, duplicates="24h").discover()["exactlyOnce"] is False
    late = Feed(api, 1)
    assert late.discover()["exactlyOnce"] is False
    api.call("PUT", f"/api/topics/{late.name}", {"duplicates": "forever"})
    assert late.discover()["exactlyOnce"] is False, "there may be repeated events from before"


def test_ft_35_an_operator_can_tell_that_something_was_replayed(api: ApiProcess) -> None:
    feed = Feed(api, 1, duplicates="forever")
    path = f"/api/topics/{feed.name}"
    assert api.call("PUT", path, {"duplicates": "forever", "feed": {"mayRepeat": True}}).status == 200
    assert feed.discover()["exactlyOnce"] is False and api.call("GET", path).json["feed"]["mayRepeat"] is True
    api.call("PUT", path, {"duplicates": "forever", "feed": {"versions": "v2"}})
    assert feed.discover()["exactlyOnce"] is False, "what readers have seen twice stays seen"


def test_ft_35_what_was_published_is_in_the_next_read(api: ApiProcess) -> None:
    feed = Feed(api, 2)
    missed: list[str] = []

    def publish_and_read(worker: int) -> None:
        for n in range(125):
            id = f"{worker}-{n}"
            start = feed.v1(1, {0: "_last"}).cursors[0]
            feed.publish({"id": id})
            if id not in feed.v1(1, {0: start}, pagesizehint=10_000).ids:
                missed.append(id)

    workers = [threading.Thread(target=publish_and_read, args=(n,)) for n in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert missed == [] and len(feed.all_v1(1, 0, pagesizehint=10_000)) == 1000


def test_a_promise_ends_with_closed_partitions_that_are_redistributed(api: ApiProcess) -> None:
    """A reader that takes partitions in any order meets events again there."""
    feed = Feed(api, 1, duplicates="forever")
    assert feed.repartition("close", 2).json["exactlyOnce"] is True
    changed = feed.repartition("redistribute", 4).json
    assert changed["exactlyOnce"] is False and changed == feed.discover()
    other = Feed(api, 1, duplicates="forever")
    assert other.repartition("redistribute", 2).json["exactlyOnce"] is True


def test_a_withdrawn_promise_is_another_token(api: ApiProcess) -> None:
    feed = Feed(api, 1, duplicates="forever")
    token = feed.discover()["token"]
    path = f"/api/topics/{feed.name}"
    assert api.call("PUT", path, {"duplicates": "forever", "description": "other words"}).status == 200
    assert feed.v2(0, "_first", token).events == []
    assert api.call("PUT", path, {"duplicates": "forever", "feed": {"mayRepeat": True}}).status == 200
    assert code_of(feed.get("/events", token=token, partition=0, cursor="_first")) == (409, "token-stale")


def test_tokens_of_two_hubs_and_of_a_restored_one_differ(tmp_path: Path) -> None:
    """Cursors of one log mean nothing in another, even where topics and partitions look the same."""
    first, second, backup = tmp_path / "first", tmp_path / "second", tmp_path / "hub.tar"

    def token(data: Path) -> str:
        with an_api(data) as api:
            assert api.call("PUT", "/api/topics/orders", {}).status in (200, 201)
            return str(api.call("GET", "/feeds/orders").json["token"])

    data_folder.prepare(first)
    tokens = [token(first), token(first), token(second)]
    archive.make(first, backup, Instant(0), lambda done: None)
    for name in ("third", "fourth"):
        archive.restore(backup, tmp_path / name, lambda done: None)
        tokens.append(token(tmp_path / name))
    assert tokens[0] == tokens[1] and len(set(tokens)) == 4
