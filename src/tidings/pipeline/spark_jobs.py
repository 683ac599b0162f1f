"""How routing runs on Spark: closed ranges as the tasks of one job, an open range as a job that lives as long as it is followed.

What a task needs travels with it: the reader of its range, the routes (a broadcast, fetched only by workers that do not hold
that revision), and where to reach the driver. Every Python worker keeps the newest compiled routes for its next task.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from py4j.protocol import Py4JError
from pyspark import Broadcast, InheritableThread, SparkContext
from pyspark.errors import PySparkException

from tidings.filters import RE2_ONLY, RegexRules
from tidings.log.position import Partition
from tidings.log.ranges import Range, RangeReader
from tidings.pipeline.live_task import LiveTask, follow
from tidings.pipeline.route import Routing, route_range
from tidings.pipeline.routed_rows import RoutedRange, RoutedRow, decoded, encoded
from tidings.pipeline.routes import RouteChange, RouteTable
from tidings.pipeline.workers import settle

SparkFailed = (PySparkException, Py4JError)

RouteRange: TypeAlias = Callable[[Routing, RangeReader, Range, int], Iterator[RoutedRow]]

BUDGET = 16 << 20
"""Bytes of lane entries and bodies that one task returns at the most."""


@dataclass(frozen=True, slots=True)
class RangeWork:
    """What every task of a job gets. `hub` tells the routes of several hubs apart in one worker."""

    hub: str
    reader: RangeReader
    revision: int
    routes: Broadcast[RouteChange]
    regex: RegexRules = RE2_ONLY
    budget: int = BUDGET
    route: RouteRange = route_range


@dataclass(slots=True)
class _Held:
    revision: int
    routing: Routing


_held: dict[tuple[str, Partition], _Held] = {}


def run_ranges(work: RangeWork, ranges: Iterator[Range]) -> Iterator[bytes]:
    """The body of a task, in a worker."""
    for wanted in ranges:
        routing = _routing_for(work, wanted.partition)
        yield encoded(RoutedRange(wanted.partition, list(work.route(routing, work.reader, wanted, work.budget))))


def _routing_for(work: RangeWork, partition: Partition) -> Routing:
    held = _held.get((work.hub, partition))
    if held is None or held.revision != work.revision:
        before = None if held is None else held.routing
        table = work.routes.value
        routing = Routing(table.added, partition, work.regex, before, table.schemas)
        held = _held[work.hub, partition] = _Held(work.revision, routing)
        settle()
    return held.routing


class SparkJobs:
    """Runs ranges on Spark. Used by one thread."""

    def __init__(self, context: SparkContext, hub: str, reader: RangeReader, regex: RegexRules = RE2_ONLY) -> None:
        self._context = context
        self._hub = hub
        self._reader = reader
        self._regex = regex
        self._sent: tuple[RouteTable, Broadcast[RouteChange]] | None = None
        self.budget = BUDGET
        self.route: RouteRange = route_range

    @property
    def slots(self) -> int:
        """How many tasks may run at once."""
        return self._context.defaultParallelism

    def run(self, table: RouteTable, ranges: Sequence[Range]) -> list[RoutedRange]:
        """What was found in these ranges. Raises SparkFailed."""
        routes = self._broadcast(table)
        work = RangeWork(self._hub, self._reader, table.revision, routes, self._regex, self.budget, self.route)
        tasks = self._context.parallelize(list(ranges), max(1, len(ranges)))
        return list(map(decoded, tasks.mapPartitions(partial(run_ranges, work)).collect()))

    def follow(self, task: LiveTask) -> LiveJob:
        """Begin to follow an open range."""
        return LiveJob(self._context, task)

    def live_task(self, wanted: Range, address: tuple[str, int], token: bytes) -> LiveTask:
        """The task that follows a range and speaks to the driver at this address."""
        return LiveTask(wanted, self._reader, address, token, self._regex, self.budget, self.route)

    def _broadcast(self, table: RouteTable) -> Broadcast[RouteChange]:
        if self._sent is None or self._sent[0] is not table:
            if self._sent is not None:
                self._sent[1].unpersist()
            self._sent = table, self._context.broadcast(table.since(None))
        return self._sent[1]


class LiveJob:
    """A job on its way. `failure` says why it ended, None while it runs or when it ended as it was told."""

    GROUP = "tidings live routing"

    def __init__(self, context: SparkContext, task: LiveTask) -> None:
        self._context = context
        self._task = task
        self.failure: str | None = None
        self._thread: threading.Thread = InheritableThread(target=self._run, name="live-routing", daemon=True)
        self._thread.start()

    @property
    def over(self) -> bool:
        return not self._thread.is_alive()

    def end(self, patience: float) -> bool:
        """Wait for the end, and cancel the job when it does not come; whether it is over now."""
        self._thread.join(patience)
        if not self.over:
            self._context.cancelJobGroup(self.GROUP)
            self._thread.join(patience)
        return self.over

    def _run(self) -> None:
        self._context.setJobGroup(self.GROUP, "follows the log", interruptOnCancel=True)
        try:
            self._context.parallelize([0], 1).mapPartitions(partial(_followed, self._task)).collect()
        except SparkFailed as error:
            self.failure = first_line(error)


def _followed(task: LiveTask, _: Iterator[Any]) -> Iterator[Any]:
    follow(task)
    return iter(())


def first_line(error: Exception) -> str:
    """The line of a Spark failure that says what happened: the last line of the Python traceback if there is one."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = [line for line in lines if "Error" in line or "Exception" in line]
    return (said or lines or [type(error).__name__])[-1][:500]
