from __future__ import annotations

from pathlib import Path

from tests.api_process import an_api
from tidings.log.port import Aside, Routed
from tidings.log.position import EMBEDDED, LaneNumber, Offset, Position, embedded
from tidings.log.sqlite.lanes import SqliteLanesWriter


def test_what_was_set_aside_is_listed_with_whom_it_was_kept_from_and_why(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        api.call("PUT", "/api/topics/orders", {})
        api.call("PUT", "/api/subscriptions/all", {"topic": "orders", "delivery": {"kind": "pull"}})
        api.publish("orders", {"n": 1})
        api.publish("orders", {"n": 2})
        lanes = SqliteLanesWriter(api.data)
        one = Aside(Position(EMBEDDED, Offset(1)), LaneNumber(1), "its filter cannot be evaluated")
        every = Aside(Position(EMBEDDED, Offset(2)), None, "the worker died")
        lanes.write(Routed(blocks=(), scanned=embedded(2), aside=(one, every)))
        lanes.close()
        listed = api.call("GET", "/api/asides").json
        rest = api.call("GET", "/api/asides", after="0-1").json

    assert [(each["cursor"], each["subscription"], each["reason"]) for each in listed["asides"]] == [
        ("0-1", "all", "its filter cannot be evaluated"),
        ("0-2", None, "the worker died"),
    ]
    assert [each["cursor"] for each in rest["asides"]] == ["0-2"]
