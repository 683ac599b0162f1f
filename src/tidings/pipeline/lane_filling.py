"""Filling lanes from the log, in a thread beside routing: closed ranges, one Spark task at a time, from where a lane begins up to
what is routed. Then routing writes the lane itself; the writer of lanes sees to it that nothing is missing or there twice.

Lanes that have come equally far are filled together, and those further behind catch up with the others first: many subscriptions
that begin at the same place cost about one reading of the log. While routing catches up with a backlog, filling waits.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec

from tidings.errors import Unavailable
from tidings.lanes.sink import Aside, Filling, LaneSink, Routed
from tidings.log.port import Limit
from tidings.log.position import START, LaneNumber, Marks, Partition, Position, lesser
from tidings.log.ranges import RoutingSource, up_to
from tidings.pipeline.catch_up import CatchUp
from tidings.pipeline.filling_starts import begin_wanted
from tidings.pipeline.routed_rows import RoutedRange
from tidings.pipeline.routed_sink import routed_of
from tidings.pipeline.routes import Routes, RouteTable, encode_route
from tidings.pipeline.routing_figures import RoutingFigures
from tidings.pipeline.spark_jobs import SparkFailed, SparkJobs, first_line
from tidings.registry.rules.fills import WantedFill

log = logging.getLogger("tidings.pipeline")

REST = 0.25
"""Seconds until somebody looks again whether a lane is to be filled."""

AFTER_FAILURE = 5.0
END_PATIENCE = 5.0


class LaneFilling:
    """Fills the lanes whose subscriptions ask for it."""

    def __init__(
        self,
        jobs: SparkJobs,
        source: RoutingSource,
        lanes: LaneSink,
        routes: Routes,
        limit: Limit,
        figures: RoutingFigures,
    ) -> None:
        self._source = source
        self._lanes = lanes
        self._routes = routes
        self._limit = limit
        self._figures = figures
        self._tables = FillTables()
        self._sink = FillSink(lanes)
        self._ranges = CatchUp(jobs, source, self._sink, self._tables, limit, figures)
        self._alone = jobs.slots < 2
        self._said = False
        self._ending = threading.Event()

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Fill lanes in a thread of its own as long as the body runs."""
        self._ending.clear()
        thread = threading.Thread(target=self._run, name="lane-filling", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ending.set()
            thread.join(END_PATIENCE)

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                if not (self._figures.is_live and self.step()):
                    self._ending.wait(REST)
            except Exception as error:  # the top of a thread: lanes are filled on from where they are
                if not self._ending.is_set():
                    foreseen = isinstance(error, (*SparkFailed, Unavailable))
                    log.error("lanes cannot be filled now: %s", first_line(error), exc_info=not foreseen)
                self._ending.wait(AFTER_FAILURE)

    def step(self) -> bool:
        """Fill the lanes that are furthest behind by one range. Whether there was anything to do."""
        wanted = self._routes.fills
        active = self._active(wanted)
        if not active:
            return False
        if self._alone and not self._said:
            self._said = True
            log.warning("lanes are not filled: pipeline.master has one task only, and it follows the log; give it two or more")
        if self._alone:
            return False
        together, upto = convoy(active)
        begin = together[0].reached
        lanes = frozenset(one.lane for one in together)
        ranges = up_to(self._source.ranges(begin, self._limit, 1), upto)
        if not ranges:
            # There is nothing more: perhaps that is all, and the writer sees it.
            self._lanes.write(Routed((), begin, filled=lanes))
            return False
        self._tables.take([wanted[lane] for lane in sorted(lanes)])
        self._sink.take(lanes, begin)
        self._ranges.through(ranges)
        for lane in lanes:
            if self._lanes.fillings()[lane].done:
                log.info("lane %d is filled from the log", lane)
        return True

    def _active(self, wanted: Mapping[LaneNumber, WantedFill]) -> Sequence[Filling]:
        """What is to be filled now; new fillings begin."""
        known = begin_wanted(self._lanes, wanted)
        return [one for lane, one in known.items() if not one.done and lane in wanted and wanted[lane].routes]


class FillTables:
    """The routes of the lanes that are being filled. Equal ones are one table, which is sent to workers once."""

    def __init__(self) -> None:
        self._table = RouteTable(0, {})

    def take(self, fills: Sequence[WantedFill]) -> None:
        """These are filled next."""
        routes = dict.fromkeys(encode_route(route) for fill in fills for route in fill.routes)
        if routes.keys() != self._table.routes.keys():
            self._table = RouteTable(self._table.revision + 1, routes)

    def current(self) -> RouteTable:
        """See `TableSource.current`."""
        return self._table


class FillSink:
    """Writes what was found for lanes that are being filled, as far as it is without a gap."""

    def __init__(self, lanes: LaneSink) -> None:
        self._lanes = lanes
        self._filled: frozenset[LaneNumber] = frozenset()
        self._reached: Marks = {}

    def take(self, lanes: frozenset[LaneNumber], reached: Marks) -> None:
        """These lanes are filled next, and have come so far."""
        self._filled, self._reached = lanes, reached

    def routed(self) -> Marks:
        """See `RangeSink.routed`."""
        return self._reached

    def write(self, found: Sequence[RoutedRange]) -> Marks:
        """See `RangeSink.write`."""
        for partition in sorted({one.partition for one in found}):
            rows = [row for one in found if one.partition == partition for row in one.rows]
            routed = routed_of(partition, rows, self._reached.get(partition, START))
            if routed is not None:
                self._write(partition, routed)
        return self._reached

    def set_aside(self, position: Position, reason: str) -> None:
        """See `RangeSink.set_aside`: for these lanes only."""
        asides = [Aside(position, lane, reason) for lane in sorted(self._filled)]
        self._write(position.partition, Routed((), {position.partition: position.offset}, aside=asides))

    def _write(self, partition: Partition, routed: Routed) -> None:
        reached = {**self._reached, partition: routed.scanned[partition]}
        self._lanes.write(msgspec.structs.replace(routed, scanned=reached, filled=self._filled))
        self._reached = reached


def convoy(active: Sequence[Filling]) -> tuple[Sequence[Filling], Marks]:
    """The fillings that are furthest behind, and how far they may go: not beyond where the next ones are."""
    first = min(active, key=lambda one: sum(one.reached.values()))
    together = [one for one in active if one.reached == first.reached]
    upto = first.upto
    for one in active:
        upto = lesser(upto, one.upto if one.reached == first.reached else one.reached)
    return together, upto


def floor_of(lanes: LaneSink) -> Marks:
    """Where what is yet to be routed begins, fillings included: their routes hold from `since` on."""
    floor = lanes.routed()
    for one in lanes.fillings().values():
        if not one.done:
            floor = lesser(floor, one.since)
    return floor
