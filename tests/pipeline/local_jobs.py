"""Routing's jobs in threads of this process instead of Spark: the real tasks and the real channel, quick enough for properties."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

from pyspark.errors import PySparkException

from tidings.log.ranges import Range, RangeReader
from tidings.pipeline import spark_jobs
from tidings.pipeline.live_task import LiveTask, follow
from tidings.pipeline.route import Routing, route_range
from tidings.pipeline.routed_rows import RoutedRange, RoutedRow, decoded
from tidings.pipeline.routes import RouteTable
from tidings.pipeline.spark_jobs import LiveJob, RangeWork, SparkJobs, run_ranges

Poisonous = Callable[[Range], bool]


class WorkerDied(Exception):
    """What the end of a worker looks like in a thread."""


class LocalJobs(SparkJobs):
    """Ranges that `poisonous` names kill their worker; the live task's worker dies also when `dying` is set."""

    def __init__(self, hub: str, reader: RangeReader, budget: int, poisonous: Poisonous) -> None:
        self._hub, self._reader = hub, reader
        self._poisonous = poisonous
        self.budget = budget
        self.dying = threading.Event()

    slots = 4

    def run(self, table: RouteTable, ranges: Sequence[Range]) -> list[RoutedRange]:
        routes: Any = SimpleNamespace(value=table.since(None))
        work = RangeWork(self._hub, self._reader, table.revision, routes, budget=self.budget, route=self._route_closed)
        try:
            return [decoded(found) for one in ranges for found in run_ranges(work, iter([one]))]
        except WorkerDied as error:
            raise PySparkException("WorkerDied: Error") from error

    def follow(self, task: LiveTask) -> LiveJob:
        return LocalLiveJob(task)

    def live_task(self, wanted: Range, address: tuple[str, int], token: bytes) -> LiveTask:
        return LiveTask(wanted, self._reader, address, token, budget=self.budget, route=self._route_live)

    def forget(self) -> None:
        """Drop what a worker of Spark would keep for its next task."""
        for key in [key for key in spark_jobs._held if key[0] == self._hub]:
            del spark_jobs._held[key]

    def _route_closed(self, routing: Routing, reader: RangeReader, wanted: Range, budget: int) -> Iterator[RoutedRow]:
        if self._poisonous(wanted):
            raise WorkerDied
        return route_range(routing, reader, wanted, budget)

    def _route_live(self, routing: Routing, reader: RangeReader, wanted: Range, budget: int) -> Iterator[RoutedRow]:
        if self.dying.is_set():
            self.dying.clear()
            raise WorkerDied
        return self._route_closed(routing, reader, wanted, budget)


class LocalLiveJob(LiveJob):
    """The task that follows, in a thread."""

    def __init__(self, task: LiveTask) -> None:
        self._task = task
        self.failure: str | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self, patience: float) -> bool:
        self._thread.join(patience)
        return self.over

    def _run(self) -> None:
        try:
            follow(self._task)
        except WorkerDied:
            self.failure = "WorkerDied: Error"
