"""A hub with publishers that never rest, endpoints in their moods, and readers of streams."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from tests.faults.endpoints import Endpoints
from tests.faults.ledger import Report, count, hub_errors, lane_faults
from tests.faults.processes import Family
from tests.faults.publisher import Publisher
from tests.faults.receipts import number_of
from tests.faults.repeats import Disturbance
from tests.faults.rest import wait_for_rest
from tests.faults.streams import StreamReader
from tests.faults.subscriptions import SUBSCRIPTIONS, TOPICS
from tests.hub import Hub

STREAMED = [name for name, wanted in SUBSCRIPTIONS.items() if "sse" in wanted.kinds]
DELIVERERS = ("deliver", "supervisor")
"""Who delivers, or takes with it who does; a fault of anybody else repeats nothing but frames of streams."""

SETTINGS = """
[push]
retry_first = "200ms"
retry_max = "1s"
probe_interval = "500ms"
loop_max = "2s"
[deliver]
workers = {workers}
[pipeline]
catch_up_above = 400
catch_up_until = 40
"""
"""Routing changes its mode after a few hundred events: kills come at such changes."""

HASTE = 500
"""Events that each publisher publishes without slowing down after every step: a backlog of hours would test nothing else."""

Say = Callable[[str], None]


class World:
    """Everything of one run. `with` starts the hub and declares topics and subscriptions; publishing starts with `publish`."""

    def __init__(self, folder: Path, report: Report, *, data: Path | None = None, settings: str = "", workers: int = 1) -> None:
        self.report = report
        moods = {name: wanted.mood for name, wanted in SUBSCRIPTIONS.items()}
        lines = {name: wanted.line_of for name, wanted in SUBSCRIPTIONS.items() if wanted.line_of is not None}
        self.endpoints = Endpoints(moods, lines, report.seed)
        self._settings = settings
        self.workers = workers
        self.kinds = {name: wanted.kinds[0] for name, wanted in SUBSCRIPTIONS.items()}
        self.hub = Hub(data or folder / "data", self._configuration(), beside=folder)
        self.publishers = [Publisher(f"p{n}", TOPICS[0 if n else 1], self.hub, pause=0.03, haste=HASTE) for n in range(4)]
        self.readers = [StreamReader(self.hub, self.endpoints.of(name), self.kinds[name] == "sse") for name in STREAMED]
        self._began = time.monotonic()

    def __enter__(self) -> World:
        self.hub.start().wait_live(60)
        for topic in TOPICS:
            assert self.hub.call("PUT", f"/api/topics/{topic}", {}).status == 201
        for name in SUBSCRIPTIONS:
            self.declare(name)
        self.hub.wait_ready()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for stop in [one.stop for one in self.publishers] + [one.stop for one in self.readers]:
            stop.set()
        processes = Family(self.hub.pid) if self.hub.running else None
        try:
            self.hub.stop()
        finally:
            # A part whose supervisor could not end it must not outlive the run.
            if processes is not None:
                processes.kill()
            self.endpoints.close()
        self.report.seconds += time.monotonic() - self._began

    def declare(self, name: str, kind: str | None = None) -> None:
        """Put a subscription as it should be, or in another kind."""
        wanted = SUBSCRIPTIONS[name]
        self.kinds[name] = kind or self.kinds[name]
        delivery = wanted.delivery(self.kinds[name], self.endpoints.url(f"/{name}"))
        body = {"topic": wanted.topic, "delivery": delivery} | ({"where": wanted.where} if wanted.where else {})
        self.ask("PUT", f"/api/subscriptions/{name}", body)

    def ask(self, method: str, path: str, body: object = None, within: float = 90) -> None:
        """A call that has to succeed as soon as somebody answers."""
        answers: list[str] = []

        def done() -> bool:
            answer = self.hub.call(method, path, body)
            answers.append(f"{answer.status} {answer.body[:300]!r}")
            assert answer.status < 400 or answer.status >= 500, f"{method} {path} got {answers[-1]}"
            return answer.status < 400

        try:
            self.hub.until(done, within, f"{method} {path} is done")
        except AssertionError as error:
            raise AssertionError(f"{error}\nlast answers: {answers[-3:]}") from None

    def publish(self) -> None:
        """Let publishers and readers begin."""
        for thread in (*self.publishers, *self.readers):
            thread.start()

    def hold(self) -> None:
        """Let all publishers wait."""
        for publisher in self.publishers:
            publisher.hold()

    def spur(self, events: float = HASTE) -> None:
        """Let every publisher hurry for so many events."""
        for publisher in self.publishers:
            publisher.spur(events)

    def acknowledged(self) -> int:
        return sum(len(publisher.acknowledged) for publisher in self.publishers)

    def refused(self) -> int:
        return sum(publisher.refusals.total() for publisher in self.publishers)

    def wait_acknowledged(self, more: int, within: float = 300) -> None:
        """Wait until so many more events are acknowledged: what came back must work, not only have lost nothing."""
        enough = self.acknowledged() + more
        self.spur(more)
        self.hub.until(lambda: self.acknowledged() >= enough, within, f"{more} more events are acknowledged")

    def disturbed(self, part: str, began: float, ended: float | None = None) -> None:
        """Note a fault of a part that may repeat deliveries."""
        end = began if ended is None else ended
        concerned = [""] if part.partition("-")[0] in DELIVERERS else STREAMED
        self.report.disturbances += [Disturbance(began, end, name) for name in concerned]

    def restart(self, workers: int | None = None) -> None:
        """Stop in order and start again."""
        began = time.monotonic()
        self.hub.stop()
        self.workers = workers or self.workers
        self.hub.configure(self._configuration())
        self.hub.start()
        self.disturbed("supervisor", began, time.monotonic())

    def rewind(self, name: str) -> bool:
        """Rewind an ordered subscription to an event that it took lately; whether there was one."""
        order = self.endpoints.of(name).order
        if not order:
            return False
        number = number_of(order[max(0, len(order) - 20)])
        publisher = next(one for one in self.publishers if one.topic == SUBSCRIPTIONS[name].topic)
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(publisher.begun_at(number)))
        self.ask("POST", f"/api/subscriptions/{name}/rewind", {"to": moment})
        return True

    def rest(self) -> bool:
        """Let publishers wait, heal every endpoint, and wait until the hub is at rest; whether it came to it."""
        self.hold()
        self.endpoints.heal()
        for name in SUBSCRIPTIONS:
            self.ask("PUT", f"/api/subscriptions/{name}/state", {"state": "active"})
        self.hub.wait_ready(180)
        found = wait_for_rest(self.hub)
        self.report.fault("not at rest", found)
        return not found

    def go_on(self) -> None:
        """After a rest: endpoints are in their moods again, and publishers go on."""
        self.endpoints.relapse()
        for publisher in self.publishers:
            publisher.go_on()

    def judge(self, *, lanes: bool = True) -> None:
        """Stop the hub and count."""
        for stop in [one.stop for one in self.publishers] + [one.stop for one in self.readers]:
            stop.set()
        self.hub.stop()
        count(self.report, self.publishers, self.endpoints.receipts)
        self.report.fault("not to be read", self.endpoints.garbage)
        self.report.fault("errors in the log", hub_errors(self.hub.log))
        if lanes:
            self.report.fault("lanes that are not what the log says", lane_faults(self.hub.data))

    def _configuration(self) -> str:
        return self._settings + SETTINGS.format(workers=self.workers)
