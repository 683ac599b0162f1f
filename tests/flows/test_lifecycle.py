"""A hub from its first second to its end and again: starting, stopping, coming back, and what it refuses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.hub import PARTS, Hub
from tests.polling import until
from tests.receivers import Receiver

pytestmark = [pytest.mark.hub, pytest.mark.spark]


def test_what_is_published_before_spark_is_up_waits_and_a_restart_goes_on_where_it_stopped(tmp_path: Path) -> None:
    hub = Hub(tmp_path / "data")
    with Receiver() as receiver:
        try:
            hub.start().wait_live()
            ready = hub.call("GET", "/health/ready")
            assert hub.call("PUT", "/api/topics/orders", {}).status == 201
            assert hub.call("PUT", "/api/subscriptions/all", {"topic": "orders", "to": receiver.url}).status == 201
            for n in range(3):
                assert hub.call("POST", "/api/topics/orders/events", {"n": n}).status == 202
            receiver.wait_for(3, 120)
            hub.wait_ready()

            assert hub.stop() == 0
            assert ready.status == 503
            assert "pipeline" in ready.body.decode()

            shutil.rmtree(hub.data / "spark", ignore_errors=True)
            hub.start().wait_live()
            assert hub.call("POST", "/api/topics/orders/events", {"n": 3}).status == 202
            receiver.wait_for(4, 120)
            hub.wait_ready()
            _wait_delivered(hub)
        finally:
            hub.stop()

    assert sorted(json.loads(arrival.body)["data"]["n"] for arrival in receiver.arrivals) == [0, 1, 2, 3]


def test_a_died_part_comes_back_and_all_parts_end_with_their_supervisor(tmp_path: Path) -> None:
    hub = Hub(tmp_path / "data")
    try:
        hub.start().wait_ready()
        for part in ("api", "deliver"):
            before = hub.child(part)
            assert hub.kill(part)
            hub.until(lambda part=part, before=before: hub.child(part) not in (None, before), 30, f"{part} is back")
        hub.wait_ready()
        pids = {part: hub.child(part) for part in PARTS}
        assert all(pids.values())
        assert hub.kill("supervisor")
        _wait_gone(hub)
    finally:
        hub.kill("supervisor")

    assert all(hub.child(part) is None for part in PARTS)


def _wait_delivered(hub: Hub) -> None:
    def delivered() -> bool:
        lag = hub.call("GET", "/api/status").json["lag"]
        return bool(lag["routing"]["events"] == 0 and lag["delivery"]["events"] == 0)

    hub.until(delivered, 30, "everything is delivered")


def _wait_gone(hub: Hub) -> None:
    def left() -> list[str]:
        return [part for part in PARTS if hub.child(part) is not None]

    until(lambda: not left(), lambda: f"still there: {left()}", within=30)
