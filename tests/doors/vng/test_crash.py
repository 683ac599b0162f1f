"""kill -9 of every part while one subscription gets events of three domains: exact order, no loss (VT-36)."""

from __future__ import annotations

import http.client
import json
import random
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doors.vng.worlds import EVENT, VngDoor, an_event, consenting
from tests.hub import Hub
from tests.polling import until
from tests.receivers import Answer as SinkAnswer
from tests.receivers import Arrival

pytestmark = [pytest.mark.hub, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1200)]

DOMAINS = ("zaken", "documenten", "besluiten")
KILLS = ("deliver", "pipeline", "api", "supervisor", "deliver")
AHEAD = 60
DELIVERING = ("deliver", "supervisor")


class Ledger:
    """What a sink was sent and took. It fails now and then."""

    def __init__(self) -> None:
        self.first: list[str] = []
        self.taken: Counter[str] = Counter()
        self.early: list[str] = []
        self._chance = random.Random(36)

    def __call__(self, arrival: Arrival) -> SinkAnswer:
        event = json.loads(arrival.body)["id"]
        if event not in self.first:
            if self.first and not self.taken[self.first[-1]]:
                self.early.append(f"{event} before {self.first[-1]} was taken")
            self.first.append(event)
        draw = self._chance.random()
        if draw < 0.1:
            return SinkAnswer(500) if draw < 0.05 else SinkAnswer(429, {"retry-after": "0"})
        self.taken[event] += 1
        return SinkAnswer(204)


class Sender(threading.Thread):
    """Publishes one event after the other. What was not answered is sent again, until it is: then it is known to be stored."""

    def __init__(self, hub: Hub, ledger: Ledger) -> None:
        super().__init__(daemon=True)
        self.sent: list[str] = []
        self._ledger = ledger
        self.strange: list[int] = []
        self.stop = threading.Event()
        self._hub = hub

    def run(self) -> None:
        while not self.stop.is_set():
            event = an_event(id=str(uuid.uuid4()), domain=DOMAINS[len(self.sent) % len(DOMAINS)])
            while not self._stored(json.dumps(event).encode()):
                if self.stop.wait(0.05):
                    return
            self.sent.append(event["id"])
            while len(self.sent) > len(self._ledger.first) + AHEAD and not self.stop.wait(0.05):
                """Enough is waiting: what piles up says nothing more."""

    def _stored(self, body: bytes) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self._hub.port, timeout=80)
        try:
            connection.request("POST", "/vng/events", body, {"content-type": EVENT})
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
        if status not in (200, 503):
            self.strange.append(status)
        return status == 200


def some_more_arrive(ledger: Ledger, victim: str) -> None:
    reached = len(ledger.first) + 20
    until(lambda: len(ledger.first) >= reached, f"events arrive before {victim} is killed", within=300)


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    running = Hub(tmp_path / "data", '[push]\nretry_first = "20ms"\nretry_max = "50ms"\n')
    try:
        yield running.start().wait_ready(300)
    finally:
        running.stop()


def test_vt36_order_is_exact_over_three_domains_and_kills(hub: Hub) -> None:
    door, ledger = VngDoor(hub), Ledger()
    for name in DOMAINS:
        door.domain(name)
    with consenting(ledger) as sink:
        made = door.subscribed(sink.url)
        sender = Sender(hub, ledger)
        sender.start()
        for victim in KILLS:
            some_more_arrive(ledger, victim)
            assert hub.kill(victim)
            if victim == "supervisor":
                hub.start()
        some_more_arrive(ledger, "nobody")
        sender.stop.set()
        sender.join(30)
        last = sender.sent[-1]
        until(lambda: ledger.taken[last] > 0, lambda: f"{len(sender.sent)} events, not {len(ledger.first)}", within=300)
        assert door.call("GET", f"/subscriptions/{made['id']}").json["status"] == "active"
    assert sender.strange == []
    # The last one may have been stored although its answer was lost.
    assert ledger.first[: len(sender.sent)] == sender.sent
    assert ledger.early == []
    repeated = sum(count - 1 for count in ledger.taken.values())
    assert repeated <= sum(victim in DELIVERING for victim in KILLS)
