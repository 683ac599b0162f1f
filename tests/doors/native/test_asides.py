from __future__ import annotations

from pathlib import Path

from tests.api_process import an_api
from tidings.lanes.sink import Aside, Routed
from tidings.lanes.sqlite.block import packed
from tidings.lanes.sqlite.writer import SqliteLanesWriter
from tidings.log.position import EMBEDDED, LaneNumber, Offset, Position, embedded


def test_what_was_set_aside_is_listed_with_whom_it_was_kept_from_and_why(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        api.call("PUT", "/api/topics/orders", {})
        api.call("PUT", "/api/subscriptions/all", {"topic": "orders", "delivery": {"kind": "pull"}})
        api.publish("orders", {"n": 1})
        api.publish("orders", {"n": 2})
        lanes = SqliteLanesWriter(api.data)
        one = Aside(Position(EMBEDDED, Offset(1)), LaneNumber(1), "its filter cannot be evaluated")
        every = Aside(Position(EMBEDDED, Offset(2)), None, "the worker died")
        lanes.write(Routed(runs=(), scanned=embedded(2), aside=(one, every)))
        lanes.close()
        listed = api.call("GET", "/api/asides").json
        rest = api.call("GET", "/api/asides", after="0-1").json

    assert [(each["cursor"], each["subscription"], each["reason"]) for each in listed["asides"]] == [
        ("0-1", "all", "its filter cannot be evaluated"),
        ("0-2", None, "the worker died"),
    ]
    assert [each["cursor"] for each in rest["asides"]] == ["0-2"]


def test_explaining_says_that_routing_set_a_published_event_aside_and_why(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        api.call("PUT", "/api/topics/orders", {})
        for name in ("one", "two"):
            api.call("PUT", f"/api/subscriptions/{name}", {"topic": "orders", "delivery": {"kind": "pull"}})
        for n in range(3):
            api.publish("orders", {"n": n})
        lanes = SqliteLanesWriter(api.data)
        slow = Aside(Position(EMBEDDED, Offset(1)), LaneNumber(1), "its regular expression took too long")
        broken = Aside(Position(EMBEDDED, Offset(2)), None, "it could not be read")
        lanes.write(Routed(runs=[packed(LaneNumber(2), [1, 2, 3])], scanned=embedded(3), aside=(slow, broken)))
        lanes.close()
        told = {
            cursor: [
                (each["subscription"], each["gets"], each["why"])
                for each in api.call("POST", "/api/topics/orders/explain", {"cursor": cursor}).json["verdicts"]
            ]
            for cursor in ("0-1", "0-2", "0-3")
        }

    every = "it has no filter: every event of its topics goes to it"
    assert told["0-1"] == [
        ("one", False, "routing set it aside: its regular expression took too long"),
        ("two", True, every),
    ]
    assert told["0-2"] == [("one", False, "routing set it aside: it could not be read"), ("two", True, every)]
    assert told["0-3"] == [("one", True, every), ("two", True, every)]
