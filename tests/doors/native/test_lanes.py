"""What stands below a subscription, with delivery played by a small owner that only notes the commands it gets."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.api_process import CLOUDEVENT, ApiProcess, an_api
from tests.builders import a_position, an_event
from tests.delivery.push.lanes import a_mark, a_state, an_item
from tidings.clock import Instant
from tidings.delivery.push.lane.saved import encode
from tidings.delivery.push.reader import LaneDetail
from tidings.delivery.push.sqlite.writer import SqliteDeliveryStore
from tidings.delivery.push.store import AppliedCommand, Attempted, Burial, Firsts, Flush, LaneTally, SavedLane
from tidings.events.stored import head_of
from tidings.lanes.sink import Routed
from tidings.lanes.sqlite.block import packed
from tidings.lanes.sqlite.writer import SqliteLanesWriter
from tidings.log.commands import Act, Activate, Command, DropDeadLetters, Redeliver, Rewind, Suspend, decoded
from tidings.log.cursor import position_of
from tidings.log.port import Limit
from tidings.log.position import COMMANDS, EMBEDDED, LaneNumber, Marks, Offset, embedded
from tidings.log.sqlite.reader import SqliteLogReader

LANE = LaneNumber(1)
KEY = LANE
NOON = Instant(1_700_000_000_000_000)
TALLY = LaneTally(1, 4, 0, "HTTP 500", dead=1, bytes=512, last_delivered=NOON, server_errors=3, timeouts=1)


class Owner(threading.Thread):
    """Notes every command and says that it was applied, or why not."""

    def __init__(self, folder: Path, result: str = "") -> None:
        super().__init__(daemon=True)
        self.commands: list[Command] = []
        self.over = threading.Event()
        self._log = SqliteLogReader(folder)
        self._store = SqliteDeliveryStore(folder)
        self._result = result

    def run(self) -> None:
        after: Marks = {}
        while not self.over.wait(0.005):
            page = self._log.read(COMMANDS, after, Limit())
            after = page.reached
            for entry in page.entries:
                self.commands.append(decoded(entry.head))
                self._store.save(Flush(applied=[AppliedCommand(self.commands[-1].id, NOON, self._result)]))
        self._store.close()


@contextmanager
def an_owner(folder: Path, result: str = "") -> Iterator[Owner]:
    owner = Owner(folder, result)
    owner.start()
    try:
        yield owner
    finally:
        owner.over.set()
        owner.join()


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    with an_api(tmp_path_factory.mktemp("lanes")) as api:
        api.call("PUT", "/api/topics/orders", {})
        api.call("PUT", "/api/subscriptions/billing", {"topic": "orders", "to": "http://127.0.0.1:9/in"})
        for n in range(5):
            api.publish("orders", {**CLOUDEVENT, "id": str(n)}, "application/cloudevents+json")
        lanes = SqliteLanesWriter(api.data)
        lanes.write(Routed([packed(LANE, [1, 2, 3, 5])], embedded(5)))
        lanes.close()
        _deliver(api.data)
        yield api


def _deliver(folder: Path) -> None:
    """Offset 1 was delivered at once, 2 is dead, 3 is tried again, 5 is still to come."""
    firsts = Firsts()
    firsts.add(a_position(1), NOON, 2.5, 204)
    event = an_event(b'{"total":5}', id="1", datacontenttype="application/json")
    state = a_state(3, [an_item(3, tries=1, due=NOON, since=NOON, cause="no connection")])
    lane = SavedLane(
        lane=KEY, state="active", body=encode(state), low_water=a_mark(2), open_items=1, next_due=NOON, tally=TALLY
    )
    store = SqliteDeliveryStore(folder)
    store.save(
        Flush(
            lanes=[lane],
            firsts={KEY: firsts},
            attempts=[
                Attempted(KEY, a_position(2), "dead", 3, NOON, 500, 1.5, "HTTP 500"),
                Attempted(KEY, a_position(3), "retrying", 1, NOON, None, None, "no connection"),
            ],
            burials=[Burial(KEY, a_position(2), "HTTP 500", 3, NOON, NOON, head_of(event), event.data)],
        )
    )
    store.close()


def test_the_state_tells_lag_and_what_is_open(api: ApiProcess) -> None:
    state = api.call("GET", "/api/subscriptions/billing/state").json
    assert state == {
        "state": "active",
        "reason": "",
        "breaker": None,
        "pausedUntil": None,
        "rate": None,
        "rateMode": "normal",
        "lag": 2,
        "openItems": 1,
        "delivered": 1,
        "failedAttempts": 4,
        "deadLetters": 1,
        "expired": 0,
        "lastError": "HTTP 500",
        "redelivering": 0,
        "refill": None,
        "nextDue": "2023-11-14T22:13:20.000000Z",
        "counts": {
            "dead": 1,
            "bytes": 512,
            "lastDelivered": "2023-11-14T22:13:20.000000Z",
            "timeouts": 1,
            "clientErrors": 0,
            "serverErrors": 3,
            "otherErrors": 0,
            "replays": 0,
        },
    }


def test_deliveries_are_listed_newest_first_and_in_pages(api: ApiProcess) -> None:
    listed, before = [], {}
    while before is not None:
        page = api.call("GET", "/api/subscriptions/billing/deliveries", limit=2, **before).json
        listed += page["deliveries"]
        before = {"before": page["before"]} if page["before"] else None
    assert [(one["cursor"], one["state"], one["status"]) for one in listed] == [
        ("0-5", "processed", None),
        ("0-3", "retrying", None),
        ("0-2", "dead", 500),
        ("0-1", "delivered", 204),
    ]
    assert page["records"]["limitedBy"] == "time"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"state": "dead"}, ["0-2"]),
        ([("state", "dead"), ("state", "delivered")], ["0-2", "0-1"]),
        ({"state": "processed"}, ["0-5"]),
        ({"state": "expired"}, []),
        ({"event": "0-3"}, ["0-3"]),
        ({"event": "0-4"}, []),
        ({"event": "2"}, ["0-3"]),
        ({"event": "nobody"}, []),
        ({"from": "2020-01-01T00:00:00Z"}, ["0-5", "0-3", "0-2", "0-1"]),
        ({"to": "2020-01-01T00:00:00Z"}, []),
    ],
)
def test_deliveries_are_chosen_by_state_time_and_event(api: ApiProcess, query: Any, expected: list[str]) -> None:
    answer = api.call("GET", f"/api/subscriptions/billing/deliveries?{urlencode(query)}")
    assert [one["cursor"] for one in answer.json["deliveries"]] == expected


def test_an_unknown_state_is_refused_with_those_there_are(api: ApiProcess) -> None:
    refused = api.call("GET", "/api/subscriptions/billing/deliveries", state="lost")
    assert refused.status == 400
    assert "redelivering" in refused.body.decode()


def test_one_delivery_is_told_with_its_history_by_cursor_or_by_its_id(api: ApiProcess) -> None:
    dead = api.call("GET", "/api/subscriptions/billing/deliveries/0-2").json
    assert (dead["state"], dead["cause"], dead["tries"]) == ("dead", "HTTP 500", 3)
    assert [(fact["state"], fact["tries"], fact["status"]) for fact in dead["history"]] == [("dead", 3, 500)]
    assert api.call("GET", f"/api/subscriptions/billing/deliveries/{dead['id']}").json == dead
    assert api.call("GET", f"/api/deliveries/{dead['id']}").json == dead
    retried = api.call("GET", "/api/subscriptions/billing/deliveries/0-3").json
    assert (retried["state"], retried["message"], retried["nextDue"]) == (
        "retrying",
        "no connection",
        "2023-11-14T22:13:20.000000Z",
    )


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("subscriptions/billing/deliveries/0-4", 404),
        ("subscriptions/billing/deliveries/7c1e3d0a-6a55-8b1e-9c3e-0123456789ab", 404),
        ("deliveries/7c1e3d0a-6a55-8b1e-9c3e-0123456789ab", 404),
        ("subscriptions/billing/deliveries/what", 400),
        ("deliveries/what", 400),
    ],
)
def test_a_delivery_that_is_not_there_is_refused(api: ApiProcess, path: str, status: int) -> None:
    assert api.call("GET", f"/api/{path}").status == status


def test_a_trace_joins_the_publishing_with_every_delivery(api: ApiProcess) -> None:
    cursor = api.call("GET", "/api/topics/orders/find", id="1").json["cursor"]
    traced = api.call("GET", f"/api/topics/orders/events/{cursor}/trace").json
    assert (traced["topic"], traced["cursor"], traced["routed"]) == ("orders", "0-2", True)
    assert (traced["published"]["id"], traced["published"]["type"]) == ("1", "order.created")
    assert [(one["subscription"], one["delivery"]["state"]) for one in traced["deliveries"]] == [("billing", "dead")]
    assert len(traced["deliveries"][0]["delivery"]["history"]) == 1
    assert api.call("GET", "/api/topics/orders/find", id="nobody").json["end"] is True
    assert api.call("GET", "/api/topics/orders/events/0-999/trace").status == 410


def test_the_last_dead_letters_come_newest_first(api: ApiProcess) -> None:
    found = api.call("GET", "/api/subscriptions/billing/dead-letters", newest="true", limit=1).json
    assert [letter["cursor"] for letter in found["deadLetters"]] == ["0-2"]


def test_metrics_tell_what_was_counted_since_the_subscription_exists(api: ApiProcess) -> None:
    lines = api.call("GET", "/metrics").body.decode().splitlines()
    label = '{subscription="billing"}'
    for line in (
        f"tidings_subscription_delivered_total{label} 1.0",
        f"tidings_subscription_delivered_bytes_total{label} 512.0",
        f"tidings_subscription_dead_total{label} 1.0",
        'tidings_subscription_attempts_failed_total{kind="server-error",subscription="billing"} 3.0',
        f"tidings_subscription_last_delivered_seconds{label} 1.7e+09",
        "# TYPE tidings_subscription_dead_total counter",
        "# TYPE tidings_records_bytes gauge",
    ):
        assert line in lines


def test_dead_letters_carry_their_event_and_the_reason(api: ApiProcess) -> None:
    found = api.call("GET", "/api/subscriptions/billing/dead-letters").json
    (letter,) = found["deadLetters"]
    assert (letter["cursor"], letter["reason"], letter["tries"], letter["event"]["data"]) == (
        "0-2",
        "HTTP 500",
        3,
        {"total": 5},
    )


@pytest.mark.parametrize(
    ("method", "path", "body", "act"),
    [
        ("PUT", "state", {"state": "suspended"}, Suspend()),
        ("PUT", "state", {"state": "active"}, Activate()),
        ("POST", "rewind", {"to": "0-3"}, Rewind(embedded(3))),
        ("POST", "rewind", {"to": "_first"}, Rewind({})),
        ("POST", "rewind", {"to": "2000-01-01T00:00:00Z"}, Rewind(embedded(0))),
        ("POST", "redeliver", {"positions": ["0-1", "0-2"]}, Redeliver(((EMBEDDED, Offset(1)), (EMBEDDED, Offset(2))))),  # type: ignore[arg-type]
        ("POST", "redeliver", {"deadLetters": True}, Redeliver(dead_letters=True)),
        ("DELETE", "dead-letters?position=0-2", None, DropDeadLetters(((EMBEDDED, Offset(2)),))),  # type: ignore[arg-type]
        ("DELETE", "dead-letters", None, DropDeadLetters()),
    ],
)
def test_commands_reach_the_owner_of_the_lane(api: ApiProcess, method: str, path: str, body: Any, act: Act) -> None:
    with an_owner(api.data) as owner:
        answer = api.call(method, f"/api/subscriptions/billing/{path}", body)
        assert (answer.status, answer.json) == (200, {"applied": True})
        assert (owner.commands[-1].lane, owner.commands[-1].by, owner.commands[-1].act) == (LANE, "anonymous", act)


@pytest.mark.parametrize(("until", "shown"), [(Instant(1), False), (Instant(4_000_000_000_000_000), True)])
def test_a_pause_that_is_over_is_not_told(tmp_path: Path, until: Instant, shown: bool) -> None:
    with an_api(tmp_path) as api:
        api.call("PUT", "/api/topics/orders", {})
        api.call("PUT", "/api/subscriptions/billing", {"topic": "orders", "to": "http://127.0.0.1:9/in"})
        store, detail = SqliteDeliveryStore(tmp_path), LaneDetail(paused_until=until)
        body = encode(a_state())
        lane = SavedLane(
            lane=KEY, state="active", body=body, low_water=a_mark(0), open_items=0, next_due=None, tally=TALLY, detail=detail
        )
        store.save(Flush(lanes=[lane]))
        store.close()
        assert (api.call("GET", "/api/subscriptions/billing/state").json["pausedUntil"] is not None) is shown


def test_last_is_the_end_of_the_log(api: ApiProcess) -> None:
    with an_owner(api.data) as owner:
        end = api.call("GET", "/api/status").json["end"]
        api.call("POST", "/api/subscriptions/billing/rewind", {"to": "_last"})
        assert owner.commands[-1].act == Rewind(embedded(int(end.removeprefix("0-"))))


def test_a_time_in_the_future_is_the_end_of_the_events(api: ApiProcess) -> None:
    with an_owner(api.data) as owner:
        api.call("POST", "/api/subscriptions/billing/rewind", {"to": "2999-01-01T00:00:00+01:00"})
        assert owner.commands[-1].act == Rewind(embedded(5))


def test_a_command_that_cannot_be_applied_is_a_conflict(api: ApiProcess) -> None:
    with an_owner(api.data, "the lane does not reach back so far"):
        answer = api.call("POST", "/api/subscriptions/billing/rewind", {"to": "_first"})
        assert (answer.status, answer.json["detail"]) == (409, "the lane does not reach back so far")


def test_a_command_that_nobody_applies_yet_is_accepted(api: ApiProcess) -> None:
    answer = api.call("PUT", "/api/subscriptions/billing/state", {"state": "suspended"})
    assert (answer.status, answer.json) == (202, {"applied": False})


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("rewind", {"to": "yesterday"}),
        ("rewind", {"to": "2030-01-01T00:00:00"}),
        ("rewind", {}),
        ("redeliver", {}),
        ("redeliver", {"positions": ["0-1.1-2"]}),
        ("rewind", {"to": "1-3"}),
        ("rewind", {"to": "0-3.7-1"}),
        ("redeliver", {"positions": ["0-1", "1-2"]}),
    ],
)
def test_commands_that_cannot_be_read_are_refused(api: ApiProcess, path: str, body: Any) -> None:
    assert api.call("POST", f"/api/subscriptions/billing/{path}", body).status == 400


@pytest.mark.parametrize("path", ["dead-letters?position=7-2", "deliveries?before=7-2"])
def test_a_cursor_of_a_partition_that_does_not_exist_is_refused(api: ApiProcess, path: str) -> None:
    answer = api.call("DELETE" if "position" in path else "GET", f"/api/subscriptions/billing/{path}")
    assert answer.status == 400
    assert "the log has no such partition" in answer.json["detail"]


def test_nothing_stands_below_an_unknown_subscription(api: ApiProcess) -> None:
    for path in ("state", "deliveries", "dead-letters"):
        assert api.call("GET", f"/api/subscriptions/nobody/{path}").status == 404


def test_the_status_adds_everything_up(api: ApiProcess) -> None:
    status = api.call("GET", "/api/status").json
    assert (status["openItems"], status["deadLetters"], status["routed"]) == (1, 1, "0-5")
    assert status["lag"]["delivery"]["events"] == 2
    assert status["lag"]["delivery"]["seconds"] >= 0
    (billing,) = status["subscriptions"]
    assert (billing["name"], billing["lag"], billing["lastError"]) == ("billing", 2, "HTTP 500")


def test_metrics_tell_the_lag_of_every_subscription(api: ApiProcess) -> None:
    text = api.call("GET", "/metrics").body.decode()
    assert 'tidings_subscription_lag_events{subscription="billing"} 2' in text
    assert 'tidings_lag_events{stage="delivery"} 2' in text


def test_one_dead_letter_is_read_sent_again_and_forgotten(api: ApiProcess) -> None:
    (letter,) = api.call("GET", "/api/subscriptions/billing/dead-letters").json["deadLetters"]
    path = f"/api/subscriptions/billing/dead-letters/{letter['number']}"
    assert api.call("GET", path).json == letter
    assert api.call("GET", "/api/subscriptions/billing/dead-letters/999999").status == 404
    assert api.call("POST", "/api/subscriptions/billing/dead-letters/999999/retry").status == 404
    with an_owner(api.data) as owner:
        assert api.call("POST", f"{path}/retry").status == 200
        assert api.call("POST", "/api/subscriptions/billing/dead-letters/retry", {"all": True}).status == 200
        assert api.call("DELETE", path).status == 200
    position = position_of(letter["cursor"])
    acts = [command.act for command in owner.commands[-3:]]
    assert acts == [Redeliver((position,)), Redeliver(dead_letters=True), DropDeadLetters((position,))]


def test_a_dead_letter_of_which_nothing_is_left_does_not_hide_the_others(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        api.call("PUT", "/api/topics/orders", {})
        api.call("PUT", "/api/subscriptions/billing", {"topic": "orders", "to": "http://127.0.0.1:9/in"})
        _deliver(api.data)
        store = SqliteDeliveryStore(api.data)
        store.save(Flush(burials=[Burial(KEY, a_position(3), "timeout after 3 tries", 3, NOON, NOON, b"", None)]))
        store.close()
        whole, empty = api.call("GET", "/api/subscriptions/billing/dead-letters").json["deadLetters"]
        assert (whole["event"]["id"], empty["event"], empty["reason"]) == ("1", None, "timeout after 3 tries")
