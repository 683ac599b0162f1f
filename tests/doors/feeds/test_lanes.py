"""Feeds of subscriptions: their lanes, written here as the pipeline would."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.api_process import ApiProcess, an_api
from tests.builders import a_name
from tests.doors.feeds.reading import Feed, code_of, taken_apart, until_waiting
from tests.doors.feeds.test_failures import remove_until
from tests.polling import until
from tidings.access.authentication import token_digest
from tidings.lanes.parts import WHOLE, key_of
from tidings.lanes.sink import Part, PartKey, Routed
from tidings.lanes.sqlite.block import packed
from tidings.lanes.sqlite.writer import SqliteLanesWriter
from tidings.log.position import EMBEDDED, LaneNumber, Offset, Position, embedded
from tidings.log.sqlite.reader import SqliteLogReader
from tidings.registry.store import open_reader


class Lane:
    """A subscription, and what the pipeline does for it."""

    def __init__(self, api: ApiProcess, name: str, topic: str, **fields: Any) -> None:
        self.api, self.name = api, name
        body = {"topic": topic, "delivery": {"kind": "pull"}, **fields}
        answer = api.call("PUT", f"/api/subscriptions/{name}", body)
        assert answer.status == 201, answer.body
        with open_reader(api.data) as registry:
            self.number: LaneNumber = registry.snapshot().subscriptions[a_name(name)].lane
        self._lanes = SqliteLanesWriter(api.data)
        self._log = SqliteLogReader(api.data)

    def route(self, offsets: list[int], projected: dict[int, bytes] | None = None) -> None:
        """Write these entries into the lane, some of them projected, and everything up to the log's end as routed."""
        bodies = projected or {}
        digests = b"".join(key_of(bodies[one]) if one in bodies else WHOLE for one in offsets)
        made = [Part(PartKey(Position(EMBEDDED, Offset(one)), key_of(data)), data) for one, data in bodies.items()]
        blocks = [packed(self.number, offsets, digests if bodies else None)] if offsets else []
        self._lanes.write(Routed(blocks, embedded(self._log.ends()[EMBEDDED]), parts=made))

    def get(self, rest: str = "") -> Any:
        return self.api.call("GET", f"/feeds/~{self.name}{rest}")

    def close(self) -> None:
        self._lanes.close()
        self._log.close()


@pytest.fixture
def lane(tmp_path: Path) -> Iterator[Lane]:
    with an_api(tmp_path) as api:
        Feed(api, 4, name="orders", duplicates="forever")
        made = Lane(api, "billing", "orders")
        yield made
        made.close()


def publish(api: ApiProcess, count: int) -> list[int]:
    """Publish events to `orders`; their offsets."""
    events = [
        {"specversion": "1.0", "source": "/s", "type": "t", "id": f"{time.monotonic_ns()}-{n}", "data": {"n": n, "secret": 1}}
        for n in range(count)
    ]
    receipt = api.publish("orders", events, "application/cloudevents-batch+json").json
    first = int(receipt["first"].partition("-")[2])
    return list(range(first, first + count))


def test_a_lane_is_read_like_any_feed(lane: Lane) -> None:
    found = lane.get().json
    assert found["partitions"] == [{"id": "0"}] and found["consistent"] is False and found["exactlyOnce"] is True
    offsets = publish(lane.api, 250)
    lane.route(offsets[::2], {offsets[4]: b'{"n": 4}'})
    events = []
    cursor = "_first"
    while True:
        page = taken_apart(lane.get(f"/events?token={found['token']}&partition=0&cursor={cursor}&pagesizehint=60"))
        events += [event for _, event in page.events]
        if not page.events:
            break
        cursor = page.cursor
    assert [event["data"]["n"] for event in events] == list(range(0, 250, 2))
    assert events[2]["data"] == {"n": 4} and events[3]["data"] == {"n": 6, "secret": 1}
    assert taken_apart(lane.get(f"/events?token={found['token']}&partition=0&cursor={cursor}")).lines == [{"cursor": cursor}]
    apart = [taken_apart(lane.get(f"?n=2&cursor{p}=_first&pagesizehint=1000")) for p in (0, 1)]
    assert sorted(apart[0].ids + apart[1].ids) == sorted(event["id"] for event in events)


def test_who_waits_by_the_feed_of_a_deleted_subscription_is_let_go(lane: Lane) -> None:
    start = taken_apart(lane.get("?n=1&cursor0=_last")).cursors[0]
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lane.get, f"?n=1&cursor0={start}&wait=60")
        until_waiting(lane.api, 1)
        began = time.monotonic()
        assert lane.api.call("DELETE", f"/api/subscriptions/{lane.name}").status == 204
        assert taken_apart(waiting.result(60)).cursors == {0: start}
        assert time.monotonic() - began < 20


def test_a_lane_may_be_waited_for(lane: Lane) -> None:
    offsets = publish(lane.api, 3)
    lane.route(offsets[:1])
    start = taken_apart(lane.get("?n=1&cursor0=_last")).cursors[0]
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lane.get, f"?n=1&cursor0={start}&wait=30")
        until_waiting(lane.api, 1)
        more = publish(lane.api, 1)
        lane.route([])
        time.sleep(0.3)
        assert not waiting.done()
        more += publish(lane.api, 2)
        lane.route(more[1:])
        assert len(taken_apart(waiting.result(30)).events) == 2


def test_cursor_sets_work_on_lanes(lane: Lane) -> None:
    offsets = publish(lane.api, 10)
    lane.route(offsets)
    lane.get(f"?n=1&cursor0={offsets[3]}&cursorset=a")
    assert len(taken_apart(lane.get("?n=1&resume=0&cursorset=a")).events) == 6
    (kept,) = lane.api.call("GET", "/api/feeds/~billing/cursorsets").json["cursors"]
    assert kept["cursor"] == str(offsets[3]) and kept["lag"] == 6


def test_only_lanes_that_wait_to_be_fetched_have_a_feed(lane: Lane) -> None:
    pushed = {"topic": "orders", "to": "http://127.0.0.1:9/"}
    assert lane.api.call("PUT", "/api/subscriptions/pushed", pushed).status == 201
    for name in ("pushed", "nobody", "not a name"):
        assert code_of(lane.api.call("GET", f"/feeds/~{name.replace(' ', '%20')}")) == (404, "not-found")
    (listed,) = [one for one in lane.api.call("GET", "/feeds").json["feeds"] if "subscription" in one]
    assert listed["subscription"] == "billing" and listed["url"] == "/feeds/~billing" and listed["consistent"] is False
    assert lane.api.call("POST", "/api/feeds/~billing/partitions", {"method": "close", "count": 2}).status == 404


def test_what_is_past_the_retention_of_its_subscription_is_passed_over(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        Feed(api, 1, name="orders")
        brief = Lane(api, "brief", "orders", retention="1s")
        offsets = publish(api, 3)
        brief.route(offsets)
        until(lambda: not taken_apart(brief.get("?n=1&cursor0=_first")).events, within=20)
        assert int(taken_apart(brief.get("?n=1&cursor0=_first")).cursors[0]) == offsets[-1]
        retentions = {one["url"]: one["retention"] for one in api.call("GET", "/feeds").json["feeds"]}
        assert retentions["/feeds/~brief"] == 1 < retentions["/feeds/orders"]
        api.call("PUT", "/api/subscriptions/brief", {"topic": "orders", "delivery": {"kind": "pull"}, "retention": "1h"})
        brief.route(more := publish(api, 2))
        assert len(taken_apart(brief.get("?n=1&cursor0=_first")).events) == len(more)
        brief.close()


def test_a_lane_is_read_by_its_owner_only(tmp_path: Path) -> None:
    rights = ["subscribe", "read"]
    tokens = [{"name": name, "sha256": token_digest(name), "rights": rights} for name in ("ann", "bob")]
    tokens.append({"name": "root", "sha256": token_digest("root"), "rights": ["admin"]})
    with an_api(tmp_path, access={"mode": "tokens", "tokens": tokens}) as api:
        as_ann, as_bob, as_root = ({"authorization": f"Bearer {name}"} for name in ("ann", "bob", "root"))
        api.call("PUT", "/api/topics/orders", {}, as_root)
        api.call("PUT", "/api/subscriptions/mine", {"topic": "orders", "delivery": {"kind": "pull"}}, as_ann)
        statuses = [api.call("GET", "/feeds/~mine", headers=who).status for who in (as_ann, as_bob, as_root)]
        assert statuses == [200, 404, 200]


def test_a_lane_whose_events_were_removed_says_so(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        Feed(api, 1, name="orders")
        made = Lane(api, "billing", "orders")
        offsets = publish(api, 20)
        made.route(offsets)
        made.close()
    remove_until(tmp_path, offsets[9])
    with an_api(tmp_path) as api:
        answer = api.call("GET", f"/feeds/~billing?n=1&cursor0={offsets[2]}")
        assert code_of(answer) == (410, "cursor-expired") and answer.json["first"] == str(offsets[9])
        assert len(taken_apart(api.call("GET", "/feeds/~billing?n=1&cursor0=_first")).events) == 10
