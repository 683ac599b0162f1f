"""Rows of the test plan around a hub that is killed, whose files are changed while it is down, and that is started again."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.doors.horizon.flows import World, arrived, posts
from tests.hub import PARTS, Hub, free_port
from tests.polling import until
from tests.receivers import Answer, Arrival, Receiver

pytestmark = [pytest.mark.hub, pytest.mark.spark]

ODD = {"advancedSelectionFilter": {"ne": {"field": "$.n", "value": 0}}}
BROKEN: dict[str, Any] = {
    "unknown-operator": {"dialect": "horizon", "text": {"noop": [{"field": "$.n"}]}},
    "no-object": {"dialect": "horizon", "text": 7},
    "unknown-dialect": {"dialect": "martian", "text": {}},
}
"""What stands in the registry instead of a filter, by the name of its subscriber."""

HOURS = 3600 * 1_000_000
UNREAD: dict[str, Any] = {"deliveryType": "server_sent_event", "callback": None}


@dataclass
class Started:
    """A hub that was killed and started again, and what was in it before."""

    hub: Hub
    receiver: Receiver
    broken: World
    killed: World
    again: World
    past: World
    down: World
    names: dict[str, str] = field(default_factory=dict)
    ids: dict[str, list[str]] = field(default_factory=dict)

    def url(self, name: str) -> str:
        return f"{self.receiver.url}/{name}"

    def statuses_of(self, name: str) -> list[str]:
        return list(self.down.statuses(self.names[name]).values())

    def got(self, name: str) -> list[str]:
        return [json.loads(one.body)["id"] for one in posts(self.receiver) if one.path.endswith(f"/{name}")]


def answering(arrival: Arrival) -> Answer:
    return {"hangs": Answer(hang=True), "fails": Answer(404)}.get(arrival.path.rpartition("/")[2], Answer())


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    hub = Hub(tmp_path_factory.mktemp("killed") / "data").start().wait_ready()
    try:
        with Receiver(answering) as receiver:
            world = Started(hub, receiver, *(World(hub) for _ in range(5)))
            _before(world)
            _kill(hub)
            _spoil(hub.data / "registry.db", world)
            _age(hub.data / "log.db", world)
            receiver.script = [Answer()]
            hub.start().wait_ready()
            yield world
    finally:
        hub.stop()


def _before(world: Started) -> None:
    """Subscriptions, and the events whose fate is asked for later."""
    for name in (*BROKEN, "a", "b", "c"):
        world.names[name] = world.broken.subscribe(None, name, callback=world.url(name), trigger=ODD)
    world.names["hangs"] = world.killed.subscribe(None, "hangs", callback=world.url("hangs"))
    world.names["fails"] = world.again.subscribe(None, "fails", callback=world.url("fails"))
    world.names["takes"] = world.again.subscribe(None, "takes", callback=world.url("takes"), trigger=ODD)
    world.names["past"] = world.past.subscribe(None, "past", callback=world.url("past"), eventRetentionTime="1h")
    _unread(world)
    world.ids["killed"] = world.killed.send({"n": 1})
    world.ids["again"] = world.again.send({"n": 1}, {"n": 0})
    world.ids["past"] = world.past.send({"n": 1})
    until(lambda: world.got("hangs"), "the event was sent and is not answered")
    failed, took = world.ids["again"], world.ids["again"][:1]
    wanted = [
        (world.again, "fails", dict.fromkeys(failed, "FAILED")),
        (world.again, "takes", dict.fromkeys(took, "DELIVERED")),
        (world.past, "past", dict.fromkeys(world.ids["past"], "DELIVERED")),
    ]
    for where, name, statuses in wanted:
        until(lambda where=where, name=name, statuses=statuses: where.statuses(world.names[name]) == statuses, name)
    until(lambda: list(world.killed.statuses(world.names["hangs"]).values()) == ["DELIVERING"], "it is on its way")


def _unread(world: Started) -> None:
    """Events that nobody takes: some from before the subscriptions wanted them for an hour only, some from after."""
    quick = {
        "deliveryPolicy": {"maxRetries": 0, "probeIntervalSeconds": 3600},
        "callback": f"http://127.0.0.1:{free_port()}/in",
    }
    world.names["down"] = world.down.subscribe(None, "down", **quick)
    world.names["stream"] = world.down.subscribe(None, "stream", **UNREAD)
    world.ids["week"] = world.down.send({"n": 1})
    routed = ["WAITING", "PROCESSED"]
    until(lambda: [world.statuses_of(name) for name in ("down", "stream")] == [[one] for one in routed], "they wait")
    world.down.subscribe(None, "down", **quick, eventRetentionTime="1h")
    world.down.subscribe(None, "stream", **UNREAD, eventRetentionTime="1h")
    world.ids["hour"] = world.down.send({"n": 2})
    until(lambda: [world.statuses_of(name) for name in ("down", "stream")] == [[one] * 2 for one in routed], "both wait")


def _kill(hub: Hub) -> None:
    for part in (*PARTS, "supervisor"):
        hub.kill(part)


def _spoil(registry: Path, world: Started) -> None:
    with sqlite3.connect(registry) as changed:
        for name, filter in BROKEN.items():
            row = (json.dumps(filter), world.names[name])
            changed.execute("UPDATE versions SET document = json_set(document, '$.filter', json(?)) WHERE name = ?", row)
    changed.close()


def _age(log: Path, world: Started) -> None:
    """Some events were published two hours earlier than they were."""
    with sqlite3.connect(log) as changed:
        for id in (*world.ids["past"], *world.ids["week"], *world.ids["hour"]):
            done = changed.execute("UPDATE entries SET at = at - ? WHERE instr(head, CAST(? AS BLOB))", (2 * HOURS, id))
            assert done.rowcount == 1
    changed.close()


def test_hor_t19_a_broken_filter_in_the_registry_touches_nobody_else(started: Started) -> None:
    ids = started.broken.send(*({"n": n} for n in range(1, 11)))
    for name in ("a", "b", "c"):
        until(lambda name=name: set(started.got(name)) == set(ids), f"{name} gets every event")
        until(lambda name=name: started.broken.statuses(started.names[name]) == dict.fromkeys(ids, "DELIVERED"), "delivered")
    for name in BROKEN:
        assert started.got(name) == []
        told = started.broken.events(started.names[name], f"?eventId={ids[0]}")
        assert [one["status"] for one in told] == ["DROPPED"]


def test_hor_t30_what_was_not_answered_when_the_hub_was_killed_is_sent_again(started: Started) -> None:
    (event,), name = started.ids["killed"], started.names["hangs"]
    until(lambda: started.killed.statuses(name) == {event: "DELIVERED"}, "it is delivered after the start")
    assert started.got("hangs") == [event, event]
    sent = [one for one in posts(started.receiver) if one.path.endswith("/hangs")]
    # The same delivery once more, as a receiver that keeps the ids can tell.
    assert len({one.headers["tidings-delivery-id"] for one in sent}) == 1


def test_hor_t39_what_is_final_is_sent_again_unless_it_is_too_late_or_never_was(started: Started) -> None:
    def redeliver(world: World, name: str, **what: Any) -> Any:
        path = f"/horizon/v1/{world.environment}/subscriptions/{started.names[name]}/redeliver"
        answer = world.call("POST", path, what)
        assert answer.status == 202, answer.body
        return answer.json

    again, first = started.again, started.ids["again"][0]
    assert redeliver(again, "fails", status=["FAILED"]) == {"accepted": 2, "skipped": []}
    until(lambda: set(again.statuses(started.names["fails"]).values()) == {"DELIVERED"}, "the failed ones are delivered")
    (delivered,) = again.events(started.names["takes"])
    (dropped,) = again.events(started.names["takes"], "?status=DROPPED")
    answer = redeliver(again, "takes", ids=[delivered["id"], dropped["id"]])
    assert answer == {"accepted": 1, "skipped": [{"id": dropped["id"], "reason": "DROPPED"}]}
    until(lambda: started.got("takes") == [first, first], "the delivered one is sent again")
    (old,) = started.past.events(started.names["past"])
    answer = redeliver(started.past, "past", ids=[old["id"]])
    assert answer == {"accepted": 0, "skipped": [{"id": old["id"], "reason": "EXPIRED"}]}
    assert started.got("past") == started.ids["past"]


def test_hor_t38_and_t51_retention_is_what_it_was_when_the_event_was_published(started: Started) -> None:
    down, (old,), (new,) = started.down, started.ids["week"], started.ids["hour"]
    until(lambda: down.statuses(started.names["down"]) == {old: "WAITING", new: "FAILED"}, "the hour is over, the week is not")
    (failed,) = down.events(started.names["down"], "?status=FAILED")
    assert (failed["errorType"], failed["eventRetentionTime"], failed["event"]["id"]) == ("RetentionExpired", "1h", new)
    told = down.call("GET", f"/horizon/v1/{down.environment}/subscriptions/{started.names['down']}/events/{failed['id']}")
    assert told.json["status"] == "FAILED" and "history" in told.json
    (waiting,) = down.events(started.names["down"], "?status=WAITING")
    assert (waiting["eventRetentionTime"], waiting["event"]["id"]) == ("7d", old)
    stream = f"/horizon/v1/{down.environment}/sse/{started.names['stream']}?maxNumber=1"
    assert json.loads(down.call("GET", stream).body)["id"] == old
    until(lambda: down.statuses(started.names["stream"]) == {old: "DELIVERED", new: "FAILED"}, "the stream has no more")


def test_events_flow_on_after_the_start(started: Started) -> None:
    with Receiver() as receiver:
        world = World(started.hub)
        world.subscribe(receiver)
        ids = world.send({"n": 1}, {"n": 2})
        assert {one["id"] for one in arrived(receiver, 2)} == set(ids)
