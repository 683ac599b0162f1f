"""Events about dead letters: each told once, whatever ends in between, and never about themselves."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.api_process import CLOUDEVENT, ApiProcess, an_api
from tests.builders import a_position, an_event
from tests.delivery.push.lanes import a_mark
from tests.polling import until
from tidings.clock import Instant
from tidings.delivery.push.sqlite import SqliteDeliveryReader, SqliteDeliveryStore
from tidings.delivery.push.sqlite.worker_count import reshare
from tidings.delivery.push.store import Burial, Flush, LaneTally, SavedLane
from tidings.events.stored import head_of
from tidings.log.position import LaneNumber

TOPIC = "tidings:dead-letters"
NOON = 1_700_000_000_000_000
BEYOND = 1_000_000
"""Offsets that the log has not reached."""


def bury(store: SqliteDeliveryStore, lane: int, *offsets: int, at: int = 0) -> None:
    event = an_event(b'{"secret": 1}', id="e1", datacontenttype="application/json")
    key = LaneNumber(lane)
    burials = [
        Burial(
            key, a_position(offset), "timeout after 3 tries", 3, Instant(NOON), Instant(NOON + at), head_of(event), event.data
        )
        for offset in offsets
    ]
    state = SavedLane(lane=key, state="active", body=b"", low_water=a_mark(0), open_items=0, next_due=None, tally=LaneTally())
    store.save(Flush(lanes=[state], burials=burials, at=Instant(NOON)))


def told(api: ApiProcess) -> list[Any]:
    answer = api.call("GET", f"/api/topics/{TOPIC}/events")
    assert answer.status in (200, 404), answer.body
    lines = [json.loads(line) for line in answer.body.splitlines()] if answer.status == 200 else []
    return [line["event"] for line in lines if "event" in line]


@contextmanager
def telling(folder: Path, **flags: Any) -> Iterator[ApiProcess]:
    with an_api(folder, push={"dead_letter_events": True}, **flags) as api:
        until(lambda: api.call("GET", f"/api/topics/{TOPIC}").status == 200)
        yield api


def set_up(api: ApiProcess) -> None:
    """Lanes 1 (billing), 2 (audit, of dead letters), 3 (everything, of both)."""
    api.call("PUT", "/api/topics/orders", {})
    for name, topics in {"billing": ["orders"], "audit": [TOPIC], "everything": ["orders", TOPIC]}.items():
        made = api.call("PUT", f"/api/subscriptions/{name}", {"topics": topics, "to": "http://127.0.0.1:9/in"})
        assert made.status == 201, made.body
    api.publish("orders", {**CLOUDEVENT, "id": "e1"}, "application/cloudevents+json")


def test_a_dead_letter_is_told_once_without_its_data(tmp_path: Path) -> None:
    with telling(tmp_path) as api:
        set_up(api)
        (cursor,) = [line["cursor"] for line in api.lines("orders") if "event" in line]
        store = SqliteDeliveryStore(tmp_path)
        bury(store, 1, int(cursor.partition("-")[2]))
        until(lambda: bool(told(api)))
        (event,) = told(api)
        assert (event["type"], event["subject"], event["source"]) == ("tidings.dead-letter", "billing", "/tidings/dead-letters")
        data = event["data"]
        assert (data["subscription"], data["topic"], data["cursor"]) == ("billing", "orders", cursor)
        assert data["event"]["id"] == "e1"
        assert (data["reason"], data["tries"]) == ("timeout after 3 tries", 3)
        assert "secret" not in json.dumps(event)
        letter = api.call("GET", f"/api/subscriptions/billing/dead-letters/{data['number']}").json
        assert letter["cursor"] == cursor
        store.close()


def test_a_dead_letter_of_a_subscription_that_takes_the_topic_makes_no_event(tmp_path: Path) -> None:
    with telling(tmp_path) as api:
        set_up(api)
        store = SqliteDeliveryStore(tmp_path)
        bury(store, 2, BEYOND)
        bury(store, 3, BEYOND + 1)
        bury(store, 1, BEYOND + 2)
        until(lambda: bool(told(api)))
        assert [event["data"]["subscription"] for event in told(api)] == ["billing"]
        store.close()


def test_nobody_but_the_hub_publishes_to_the_topic(tmp_path: Path) -> None:
    with telling(tmp_path) as api:
        assert api.publish(TOPIC, {"total": 5}).status == 403


def test_pruning_leaves_the_topic_alone(tmp_path: Path) -> None:
    with telling(tmp_path) as api:
        api.call("PUT", "/api/topics/orders", {})
        steps = api.call("POST", "/api/apply", {"topics": [], "exposures": [], "prune": True}).json["steps"]
        assert [(step["action"], step["name"]) for step in steps] == [("delete", "orders")]


@pytest.mark.parametrize("forgotten", [False, True])
def test_a_restart_neither_repeats_nor_leaves_out(tmp_path: Path, forgotten: bool) -> None:
    store = SqliteDeliveryStore(tmp_path)
    with telling(tmp_path) as api:
        set_up(api)
        bury(store, 1, *range(BEYOND, BEYOND + 250))
        until(lambda: len(told(api)) == 250)
    noted = tmp_path / "run" / "dead-letters.told"
    if forgotten:
        noted.unlink()
    else:
        # As if it had ended between telling and noting.
        noted.write_text('{"seen": {"0": 100}, "read": "0-0"}')
    bury(store, 1, BEYOND + 300, BEYOND + 301)
    bury(store, 1, BEYOND + 5, at=1)
    with telling(tmp_path) as api:
        until(lambda: len(told(api)) >= 253)
        ids = [event["id"] for event in told(api)]
        assert len(ids) == len(set(ids)) == 253
    store.close()


def test_a_dead_letter_that_moves_to_another_worker_is_not_told_again(tmp_path: Path) -> None:
    store = SqliteDeliveryStore(tmp_path)
    with telling(tmp_path) as api:
        set_up(api)
        bury(store, 1, BEYOND, BEYOND + 1)
        until(lambda: len(told(api)) == 2)
        store.close()
        assert reshare(tmp_path, 2) == 1
        store = SqliteDeliveryStore(tmp_path, 1)
        bury(store, 1, BEYOND + 9)
        until(lambda: len(told(api)) >= 3)
        assert [event["data"]["cursor"] for event in told(api)] == [f"0-{BEYOND + n}" for n in (0, 1, 9)]
        assert len(SqliteDeliveryReader(tmp_path).dead_letters(LaneNumber(1), 0, 10)) == 3
    store.close()


def test_a_killed_api_tells_of_each_dead_letter_exactly_once(tmp_path: Path) -> None:
    """It is killed again and again, at moments that chance decides, while dead letters come."""
    with telling(tmp_path) as api:
        set_up(api)
    store = SqliteDeliveryStore(tmp_path)
    for turn in range(4):
        process, port = _start(tmp_path)
        seen = ApiProcess(port, tmp_path)
        until(lambda at=seen: _answers(at))
        bury(store, 1, *range(BEYOND + turn * 200, BEYOND + turn * 200 + 200))
        before = len(told(seen))
        until(lambda at=seen, had=before: len(told(at)) > had)
        process.kill()
        process.wait()
    with telling(tmp_path) as last:
        until(lambda: len(told(last)) >= 800)
        cursors = [event["data"]["cursor"] for event in told(last)]
        assert cursors == [f"0-{offset}" for offset in range(BEYOND, BEYOND + 800)]
    store.close()


def _start(folder: Path) -> tuple[subprocess.Popen[bytes], int]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    command = [sys.executable, "-m", "tidings.cli", "api", "--data", str(folder), "--port", str(port)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL), port


def _answers(api: ApiProcess) -> bool:
    try:
        return api.call("GET", "/health/live").status == 200
    except OSError:
        return False
