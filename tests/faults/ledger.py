"""Kill and ledger: publish all the time, kill anything at any moment, and count.

Acknowledged = the hub answered 202. Lost = acknowledged and never arrived at a receiver that should have it. Whoever gets no
answer does not try again: such an event may or may not be in the log, and both are right.
"""

from __future__ import annotations

import http.client
import json
import random
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.receiver import CountingReceiver
from tests.faults.repeats import unexplained
from tests.hub import PARTS, Hub
from tidings.log.port import Limit
from tidings.log.position import EMBEDDED, START, LaneNumber, Offset, TopicNumber
from tidings.log.sqlite.lanes import SqliteLanesReader
from tidings.log.sqlite.reader import SqliteLogReader
from tidings.registry.rules import parse_name
from tidings.registry.store import open_reader

VICTIMS = (*PARTS, "supervisor")
DELIVERERS = ("deliver", "supervisor")
"""Who delivers, or takes with it who does; killing anybody else repeats nothing."""

KEYS = 5
BATCH = 20

SUBSCRIPTIONS: dict[str, tuple[str, str | None, Callable[[int], bool]]] = {
    "everything": ("orders", None, lambda n: True),
    "thirds": ("orders", "third = 0", lambda n: n % 3 == 0),
    "big": ("orders", 'n >= 50 and region = "EU"', lambda n: n >= 50 and n % 2 == 0),
    "returns": ("returns", None, lambda n: True),
    "in-order": ("returns", "third = 0", lambda n: n % 3 == 0),
    "by-key": ("returns", "third = 1", lambda n: n % 3 == 1),
    "batched": ("returns", "third = 2", lambda n: n % 3 == 2),
}
"""Subscription → topic, filter, and which event numbers it should get."""

POLICIES: dict[str, dict[str, object]] = {
    "in-order": {"ordering": "strict", "tries": 1000},
    "by-key": {"ordering": "key", "tries": 1000},
    "batched": {"batchSize": BATCH, "batchTime": 0.1, "ordering": "strict", "tries": 1000},
}
"""Subscription → delivery policy, where it is not the default."""

ONE_LINE: dict[str, Callable[[int], int]] = {"in-order": lambda n: 0, "by-key": lambda n: n % KEYS, "batched": lambda n: 0}
"""Subscription → the line in which an event must keep its place. Topic `returns` has one publisher, so numbers rise."""

ON_THEIR_WAY = {"in-order": 1, "by-key": KEYS, "batched": BATCH}
"""Subscription → how many of its events may be on their way at once; a kill repeats no more than that."""


@dataclass
class Report:
    """What came of it. The lists must be empty. `repeated`: deliveries that came again although no kill explains it."""

    kills: dict[str, int] = field(default_factory=dict)
    acknowledged: int = 0
    unanswered: int = 0
    delivered: int = 0
    duplicates: int = 0
    lost: list[str] = field(default_factory=list)
    wrongly_delivered: list[str] = field(default_factory=list)
    lane_faults: list[str] = field(default_factory=list)
    out_of_order: list[str] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)
    kill_times: list[float] = field(default_factory=list)
    seconds: float = 0.0

    def lines(self) -> list[str]:
        kills = ", ".join(f"{part} {count}" for part, count in sorted(self.kills.items()))
        return [
            f"kills         {sum(self.kills.values())} ({kills})",
            f"acknowledged  {self.acknowledged} (and {self.unanswered} without an answer)",
            f"delivered     {self.delivered}",
            f"duplicate     {self.duplicates}, {len(self.repeated)} of them without a reason",
            f"lost          {len(self.lost)}",
            f"wrong         {len(self.wrongly_delivered)} delivered without matching",
            f"lanes         {len(self.lane_faults)} faults",
            f"out of order  {len(self.out_of_order)} (strict, by key and batched, on first arrivals)",
            f"took          {self.seconds:.0f} s",
        ]


class Publisher(threading.Thread):
    """Publishes numbered events in small requests until told to stop; keeps what was acknowledged."""

    def __init__(self, name: str, topic: str, hub: Hub, pause: float) -> None:
        super().__init__(name=name, daemon=True)
        self.topic = topic
        self.acknowledged: dict[str, int] = {}
        self.unanswered: set[str] = set()
        self.stop = threading.Event()
        self._hub = hub
        self._pause = pause
        self._chance = random.Random(name)
        self._next = 0
        self._connection: http.client.HTTPConnection | None = None

    def run(self) -> None:
        while not self.stop.is_set():
            numbers = range(self._next, self._next + self._chance.randint(1, 40))
            self._next = numbers.stop
            if not self._publish({f"{self.name}-{n}": n for n in numbers}):
                time.sleep(0.05)
            time.sleep(self._pause)

    def _publish(self, events: dict[str, int]) -> bool:
        body = json.dumps([self._event(event, n) for event, n in events.items()]).encode()
        try:
            if self._connection is None:
                self._connection = http.client.HTTPConnection("127.0.0.1", self._hub.port, timeout=20)
            self._connection.request(
                "POST", f"/api/topics/{self.topic}/events", body, {"content-type": "application/cloudevents-batch+json"}
            )
            response = self._connection.getresponse()
            response.read()
        except (OSError, http.client.HTTPException):
            self._connection = None
            self.unanswered.update(events)
            return False
        if response.status == 202:
            self.acknowledged.update(events)
            return True
        if response.status != 503:
            raise AssertionError(f"publishing got {response.status}")
        return False

    def _event(self, event: str, n: int) -> dict[str, object]:
        data = {"n": n, "third": n % 3, "region": "EU" if n % 2 == 0 else "US"}
        named = {"specversion": "1.0", "id": event, "source": f"/{self.name}", "type": self.topic, "subject": f"k{n % KEYS}"}
        return {**named, "data": data}


def run(folder: Path, *, kills: int, events: int, seed: int = 1, say: Callable[[str], None] = lambda line: None) -> Report:
    """One whole run in `folder`: start, publish, kill, wait until all is delivered, count."""
    began = time.monotonic()
    chance = random.Random(seed)
    receiver = CountingReceiver()
    hub = Hub(folder / "data", '[push]\nretry_first = "200ms"\nretry_max = "1s"\n').start().wait_live()
    report = Report()
    try:
        _declare(hub, receiver)
        hub.wait_ready()
        publishers = [Publisher(f"p{n}", "orders" if n else "returns", hub, pause=0.02) for n in range(4)]
        for publisher in publishers:
            publisher.start()
        for victim in _victims(kills, chance):
            if victim == "pipeline" and chance.random() < 0.75:
                # Spark takes seconds to start: without waiting, routing would hardly ever be killed in mid-batch.
                hub.until(lambda: hub.is_ready("pipeline"), 120, "the pipeline routes")
            time.sleep(chance.uniform(0.2, 3.0))
            _kill(hub, victim, report)
            say(f"killed {victim}; {_acknowledged(publishers)} acknowledged so far")
        # Publishing goes on for a while after the last kill: what came back must work, not only have lost nothing.
        enough = max(events, _acknowledged(publishers) + 500)
        hub.until(lambda: _acknowledged(publishers) >= enough, 1800, f"{enough} events are acknowledged")
        for publisher in publishers:
            publisher.stop.set()
            publisher.join(60)
        hub.wait_ready()
        say("waiting until everything is delivered")
        hub.until(lambda: _drained(hub), 600, "everything is delivered")
        hub.stop()
        _count(report, publishers, receiver)
        report.lane_faults = _lane_faults(hub.data, receiver)
        report.out_of_order = _out_of_order(receiver)
        report.repeated = unexplained(receiver.repeats, report.kill_times, ON_THEIR_WAY)
    finally:
        hub.stop()
        receiver.close()
    report.seconds = time.monotonic() - began
    return report


def _kill(hub: Hub, victim: str, report: Report) -> None:
    """Kill it, as soon as it is there: one that was killed a moment ago comes back first."""
    hub.until(lambda: hub.kill(victim), 60, f"there is a {victim} to kill")
    if victim in DELIVERERS:
        report.kill_times.append(time.monotonic())
    report.kills[victim] = report.kills.get(victim, 0) + 1
    if victim == "supervisor":
        hub.start()


def _victims(kills: int, chance: random.Random) -> list[str]:
    """Each part about equally often, in random order."""
    victims = [VICTIMS[n % len(VICTIMS)] for n in range(kills)]
    chance.shuffle(victims)
    return victims


def _acknowledged(publishers: list[Publisher]) -> int:
    return sum(len(publisher.acknowledged) for publisher in publishers)


def _declare(hub: Hub, receiver: CountingReceiver) -> None:
    for topic in ("orders", "returns"):
        assert hub.call("PUT", f"/api/topics/{topic}", {}).status == 201
    for name, (topic, where, _) in SUBSCRIPTIONS.items():
        push = {"url": receiver.url(f"/{name}"), **POLICIES.get(name, {})}
        body = {"topic": topic, "delivery": push} | ({"where": where} if where else {})
        answer = hub.call("PUT", f"/api/subscriptions/{name}", body)
        assert answer.status == 201, answer.body


def _drained(hub: Hub) -> bool:
    """Nothing waits for routing, and no lane has anything left to deliver."""
    status = hub.call("GET", "/api/status").json
    return bool(status["lag"]["routing"]["events"] == 0 and status["lag"]["delivery"]["events"] == 0)


def _count(report: Report, publishers: list[Publisher], receiver: CountingReceiver) -> None:
    report.acknowledged = _acknowledged(publishers)
    report.unanswered = sum(len(publisher.unanswered) for publisher in publishers)
    for name, (topic, _, wanted) in SUBSCRIPTIONS.items():
        arrived = receiver.arrived[f"/{name}"]
        report.delivered += len(arrived)
        report.duplicates += sum(arrived.values()) - len(arrived)
        for publisher in (p for p in publishers if p.topic == topic):
            report.lost += [f"{name}: {e}" for e, n in publisher.acknowledged.items() if wanted(n) and e not in arrived]
        report.wrongly_delivered += [f"{name}: {e}" for e in arrived if not wanted(int(e.partition("-")[2]))]


def _out_of_order(receiver: CountingReceiver) -> list[str]:
    """First arrivals that came after a later one of their line."""
    faults: list[str] = []
    for name, line_of in ONE_LINE.items():
        last: dict[int, int] = {}
        for event in receiver.order[f"/{name}"]:
            number = int(event.partition("-")[2])
            line = line_of(number)
            if number < last.get(line, -1):
                faults.append(f"{name}: {event} after {last[line]}")
            last[line] = max(number, last.get(line, -1))
    return faults


def _lane_faults(data: Path, receiver: CountingReceiver) -> list[str]:
    """Every lane holds exactly the log's matching entries, each once, in order."""
    log, lanes = SqliteLogReader(data), SqliteLanesReader(data)
    with open_reader(data) as registry:
        topics = registry.snapshot().topics
    faults: list[str] = []
    for lane, (name, (topic, _, wanted)) in enumerate(SUBSCRIPTIONS.items(), start=1):
        should = _matching(log, topics[parse_name(topic)].number, wanted)
        holds = _lane(lanes, LaneNumber(lane))
        if holds != should:
            twice = len(holds) - len(set(holds))
            faults.append(
                f"{name}: {len(holds)} entries, {len(should)} expected, {twice} twice, ordered {holds == sorted(holds)}"
            )
    return faults


def _matching(log: SqliteLogReader, topic: TopicNumber, wanted: Callable[[int], bool]) -> list[int]:
    found: list[int] = []
    after = {EMBEDDED: START}
    while (page := log.read(topic, after, Limit())).entries:
        after = dict(page.reached)
        found += [entry.position.offset for entry in page.entries if wanted(json.loads(entry.data or b"{}")["n"])]
    return found


def _lane(lanes: SqliteLanesReader, lane: LaneNumber) -> list[int]:
    found: list[int] = []
    after = Offset(0)
    while blocks := lanes.blocks(lane, after, EMBEDDED, 100):
        for block in blocks:
            found += struct.unpack(f"<{block.count}q", block.offsets)
        after = blocks[-1].last
    return found
