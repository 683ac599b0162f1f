"""Routing a backlog: closed ranges in parallel, again and again until it is small.

Ranges that fail are tried once more; then they are halved until the one event that cannot be routed is found and set aside
with its reason. Nothing is set aside while no other event passes: then it is not the event's fault.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tidings.log.port import Limit
from tidings.log.position import START, Marks, Offset, Partition, Position
from tidings.log.ranges import Range, RoutingSource, cut_to, following, halves, last_of, marks_of, only, size_of, up_to
from tidings.pipeline.routed_rows import RoutedRange
from tidings.pipeline.routes import RouteTable
from tidings.pipeline.routing_figures import RoutingFigures
from tidings.pipeline.spark_jobs import SparkFailed, SparkJobs, first_line

log = logging.getLogger("tidings.pipeline")

TASKS = 4
"""Tasks of one job at the most."""

_RECOVER = Limit(entries=20_000, bytes=32 << 20)


class RangeSink(Protocol):
    """Where the rows of closed ranges go."""

    def routed(self) -> Marks:
        """How far they are durable."""

    def write(self, found: Sequence[RoutedRange]) -> Marks:
        """Write them; how far they are durable now."""

    def set_aside(self, position: Position, reason: str) -> None:
        """The event at this position cannot be routed."""


class TableSource(Protocol):
    """What ranges are routed by."""

    def current(self) -> RouteTable:
        """Asked after the end of the ranges was fixed."""


@dataclass(slots=True)
class CatchUp:
    """Routes closed ranges. One thread."""

    jobs: SparkJobs
    source: RoutingSource
    sink: RangeSink
    routes: TableSource
    limit: Limit
    figures: RoutingFigures
    _passed: Range | None = None
    """A range of one event that was routed before."""

    def behind(self) -> int:
        """How many entries are not routed yet, about."""
        return self.source.count(self.sink.routed(), self.source.ends())

    def step(self) -> None:
        """Route the next ranges. Returns when all of them are durable in the lanes, or what cannot be routed is set aside."""
        ranges = self.source.ranges(self.sink.routed(), self.limit, TASKS)
        if not ranges:
            return
        began = time.monotonic()
        self.through(ranges)
        self.figures.step(time.monotonic() - began)

    def through(self, ranges: Sequence[Range]) -> None:
        """Route these ranges, as `step` does."""
        if not self._routed_twice(ranges):
            self.isolate(marks_of(ranges))

    def isolate(self, upto: Marks) -> None:
        """Route everything up to there, in ranges that are halved where they fail. Raises SparkFailed when every event fails."""
        while any(self.sink.routed().get(partition, START) < end for partition, end in upto.items()):
            for one in up_to(self.source.ranges(self.sink.routed(), _RECOVER, 1), upto):
                self._halved(one)

    def _routed_twice(self, ranges: Sequence[Range]) -> bool:
        for again in (True, False):
            try:
                self._route(ranges)
            except SparkFailed as error:
                log.warning("a batch failed%s: %s", ", trying it again" if again else "", first_line(error))
                self.figures.failed()
            else:
                return True
        return False

    def _route(self, ranges: Sequence[Range]) -> None:
        """Route these ranges. What tasks left out, their budget spent, is routed again in ranges of what came through."""
        wanted, asked, sizes = marks_of(ranges), ranges, dict[Partition, int]()
        while asked:
            before = self.sink.routed()
            # The end of the ranges is fixed by now: every change that governs them is in the table.
            reached = self.sink.write(self.jobs.run(self.routes.current(), asked))
            done = {part: size_of(Range(part, before.get(part, START), reached.get(part, START))) for part in wanted}
            rest = [
                Range(part, reached.get(part, START), upto) for part, upto in wanted.items() if reached.get(part, START) < upto
            ]
            if rest and not any(done.values()):
                raise RuntimeError(f"routing does not get beyond {dict(before)}")
            whole = {part for part, upto in marks_of(asked).items() if reached.get(part, START) >= upto}
            sizes = {part: 2 * size if part in whole else size for part, size in done.items()}
            asked = [cut_to(one, sizes[one.partition]) for one in rest]
        self._passed = only(last_of(ranges[-1]))

    def _halved(self, one: Range) -> None:
        try:
            self._route([one])
        except SparkFailed as error:
            parts = halves(one)
            if parts is not None:
                for part in parts:
                    self._halved(part)
            elif self._others_pass(one):
                reason, position = first_line(error), last_of(one)
                log.error("the event at position %d cannot be routed and was set aside: %s", position.offset, reason)
                self.sink.set_aside(position, reason)
            else:
                raise

    def _others_pass(self, one: Range) -> bool:
        """Whether it is this event and not Spark, the disk or our own code: else nothing may be set aside."""
        if self.source.fault():
            return False
        others = (self._passed or only(Position(one.partition, Offset(1))), following(one))
        return any(self._passes(other) for other in others if other != one)

    def _passes(self, one: Range) -> bool:
        try:
            self.jobs.run(self.routes.current(), [one])
        except SparkFailed:
            return False
        return True
