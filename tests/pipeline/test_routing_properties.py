"""The one law of routing: however appends, changes, modes, fillings and crashes follow each other, every lane is the plain reading.

The plain reading: at the moment an event is appended, every subscription that exists takes it if its filter matches. A lane
that is filled takes everything after some event by the filter of then; the filter is not changed before that is done.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.pipeline.local_jobs import LocalJobs
from tests.pipeline.world import World
from tidings.adapters import pipeline_parts
from tidings.errors import LogUnavailable
from tidings.lanes.sink import LaneSink, Routed
from tidings.log.position import Marks
from tidings.log.ranges import Range
from tidings.pipeline import lane_filling, live, live_task, process, spark_jobs
from tidings.pipeline.process import RoutingJobs, RoutingLoop

POISON = 9
ABOVE, UNTIL = 6, 2

numbers = st.lists(st.sampled_from([0, 1, 2, 3, POISON]) | st.integers(0, 3), min_size=1, max_size=5)
publishing = st.tuples(st.just("publish"), numbers)
flood = st.tuples(st.just("publish"), st.lists(st.integers(0, 3), min_size=10, max_size=20))
subscribing = st.tuples(st.just("subscribe"), st.sampled_from("ab"), st.none() | st.integers(0, 3))
unsubscribing = st.tuples(st.just("unsubscribe"), st.sampled_from("ab"))
filling = st.tuples(st.just("fill"), st.sampled_from("ab"), st.none() | st.integers(0, 3), st.integers(0, 100))
crashing = st.tuples(st.sampled_from(["worker dies", "crash", "crash before writing", "crash after writing"]))
looking = st.tuples(st.just("look"))
"""Nothing happens: routing gets on by one message."""

scripts = st.lists(
    st.one_of(publishing, publishing, flood, subscribing, unsubscribing, filling, crashing, looking), max_size=25
)


class Crash(BaseException):
    """The driver's process is killed."""


@dataclass
class Crashing:
    """The writer of lanes in a process that may be killed: before it writes, or after that and before anybody hears of it."""

    lanes: LaneSink
    when: str = ""
    dead: bool = False

    def write(self, routed: Routed) -> None:
        if self.dead:
            return
        if self.when == "crash before writing":
            self._die()
        self.lanes.write(routed)
        if self.when == "crash after writing":
            self._die()

    def _die(self) -> None:
        self.dead = True
        # Whoever fills lanes beside routing does not end the process: that is for the one who routes.
        raise Crash if threading.current_thread() is threading.main_thread() else LogUnavailable("the process is killed")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.lanes, name)


@dataclass
class Reading:
    """What must be in the lanes, kept in the plainest way."""

    subscribed: dict[str, int | None] = field(default_factory=dict)
    lane_of: dict[str, int] = field(default_factory=dict)
    lanes: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    poisonous: list[int] = field(default_factory=list)
    published: list[tuple[int, int]] = field(default_factory=list)
    fillings: Counter[int] = field(default_factory=Counter)
    made: int = 0

    def publish(self, offsets: list[int], given: list[int]) -> None:
        for offset, n in zip(offsets, given, strict=True):
            self.published.append((offset, n))
            if n == POISON:
                self.poisonous.append(offset)
                continue
            for name, wanted in self.subscribed.items():
                if wanted is None or wanted == n:
                    self.lanes[self.lane_of[name]].append(offset)

    def subscribe(self, name: str, wanted: int | None) -> None:
        if name not in self.subscribed:
            self.made += 1
            self.lane_of[name] = self.made
        self.subscribed[name] = wanted

    def place(self, share: int) -> int:
        """The offset of an event somewhere in the log, by its percentage."""
        return self.published[(len(self.published) - 1) * share // 100][0] if self.published else 0

    def fill(self, name: str, wanted: int | None, after: int) -> None:
        self.subscribe(name, wanted)
        self.fillings[self.lane_of[name]] += 1
        matching = [o for o, n in self.published if o > after and n != POISON and (wanted is None or n == wanted)]
        self.lanes[self.lane_of[name]] = matching


class Scripted(threading.Event):
    """Told to stop when the script is over and everything is routed. Whenever it is asked, the script goes on by one step."""

    def __init__(self, world: World, script: Iterator[tuple[Any, ...]], reading: Reading) -> None:
        super().__init__()
        self._world, self._script, self._reading = world, script, reading
        self.jobs: LocalJobs | None = None
        self.lanes: Crashing | None = None
        self.filling: set[str] = set()

    def is_set(self) -> bool:
        if self.lanes is not None and self.lanes.dead:
            raise Crash
        step = next(self._script, None)
        if step is None:
            ends = self._world.parts.source.ends()
            return self._done(ends) and not any(map(self._is_filled, tuple(self.filling)))
        self._take(*step)
        return False

    def _done(self, ends: Marks) -> bool:
        return all(self._world.lanes.routed().get(partition, 0) >= end for partition, end in ends.items())

    def _is_filled(self, name: str) -> bool:
        """Whether the subscription's lane is being filled."""
        lane = self._reading.lane_of.get(name, 0)
        if name in self.filling and self._world.filled(lane, self._reading.fillings[lane]):
            self.filling.remove(name)
        return name in self.filling

    def _take(self, what: str, *more: Any) -> None:
        world, reading = self._world, self._reading
        assert self.lanes is not None and self.jobs is not None
        match what:
            case "publish":
                reading.publish(world.publish(*({"n": n} for n in more[0])), more[0])
            case "subscribe" | "unsubscribe" | "fill" if self._is_filled(more[0]):
                return
            case "fill":
                after = reading.place(more[2])
                world.subscribe(more[0], None if more[1] is None else f"n = {more[1]}", after=after)
                reading.fill(more[0], more[1], after)
                self.filling.add(more[0])
            case "subscribe":
                world.subscribe(more[0], None if more[1] is None else f"n = {more[1]}")
                reading.subscribe(*more)
            case "unsubscribe" if more[0] in reading.subscribed:
                world.unsubscribe(more[0])
                del reading.subscribed[more[0]]
            case "worker dies":
                self.jobs.dying.set()
            case "crash":
                self.lanes.dead = True
                raise Crash
            case "crash before writing" | "crash after writing":
                self.lanes.when = what


def lives(world: World, script: list[tuple[Any, ...]], budget: int, reading: Reading) -> None:
    """Route, from crash to crash, until the script is over and everything is routed."""
    stop = Scripted(world, iter(script), reading)

    def poisonous(wanted: Range) -> bool:
        return any(wanted.after < offset <= (wanted.upto or 0) for offset in reading.poisonous)

    while True:
        stop.jobs = LocalJobs(str(world.data), world.parts.source.reader, budget, poisonous)
        filling = LocalJobs(f"{world.data}, filling", world.parts.source.reader, budget, poisonous)
        stop.lanes = Crashing(world.parts.lanes)
        parts: Any = replace(world.parts, lanes=stop.lanes)
        try:
            jobs = RoutingJobs(stop.jobs, filling)
            RoutingLoop(world.settings.pipeline, jobs, parts, world.board, stop, lambda now: 0.0).run()
        except Crash:
            world.parts.close()
            world.parts = pipeline_parts(world.settings)
        else:
            return
        finally:
            for one in (stop.jobs, filling):
                one.forget()


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look often, also for a change of mode; and keep no garbage from the tests."""
    monkeypatch.setattr(live, "LOOK", 0.01)
    monkeypatch.setattr(live, "BEAT", 0.0)
    monkeypatch.setattr(live_task, "IDLE", 0.01)
    monkeypatch.setattr(lane_filling, "REST", 0.01)
    monkeypatch.setattr(process, "BEAT", 0.0)
    for module in (live_task, spark_jobs):
        monkeypatch.setattr(module, "settle", lambda: None)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(scripts, st.sampled_from([20, 200, 1 << 20]))
def test_every_lane_is_the_plain_reading_whatever_follows_what(script: list[tuple[Any, ...]], budget: int) -> None:
    with TemporaryDirectory() as folder:
        world = World(Path(folder), pipeline={"catch_up_above": ABOVE, "catch_up_until": UNTIL})
        try:
            world.topic()
            reading = Reading()
            lives(world, script, budget, reading)
            assert {lane: world.lane(lane) for lane in range(1, reading.made + 1)} == {
                lane: reading.lanes[lane] for lane in range(1, reading.made + 1)
            }
            assert sorted({aside.position.offset for aside in world.asides()}) == reading.poisonous
        finally:
            world.close()
