"""Where rows go: the lanes. One call for each micro-batch, idempotent by position, whatever Spark calls the batch.

A batch that fails is tried once more; then its range is read again and halved until the one event that cannot be routed is
found and set aside with its reason. The stream never stops for it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tidings.log.port import Aside, Block, Body, BodyKey, LanesWriter, Limit, Routed
from tidings.log.position import EMBEDDED, START, LaneNumber, Offset, Position, embedded
from tidings.log.sqlite.reader import SqliteLogReader
from tidings.observe.board import Board
from tidings.pipeline.route import RoutePlan
from tidings.pipeline.rows import ASIDE, BLOCK, BODY, COUNTED, SCANNED, Row, from_arrow, merged
from tidings.pipeline.source import FORMAT
from tidings.registry.port import RegistryReader

log = logging.getLogger("tidings.pipeline")

Stage = Callable[[DataFrame, RoutePlan], DataFrame]
SparkFailed = (PySparkException, Py4JError)

_SAME_FLOOR = 200
"""Revisions after which superseded routes are left behind: until then they are compiled along."""

_RECOVER = Limit(entries=20_000, bytes=32 << 20)


class LaneSink:
    """Writes what a stage found into the lanes. Called by one thread only: Spark's."""

    def __init__(
        self,
        plan: RoutePlan,
        stage: Stage,
        lanes: LanesWriter,
        registry: RegistryReader,
        board: Board,
    ) -> None:
        self._data = plan.data
        self._stage = stage
        self._lanes = lanes
        self._registry = registry
        self._board = board
        self._plan = plan
        self._floored = plan.revision
        self._proven = 1
        """An event that was routed before; the first one until then."""

    def take(self, frame: DataFrame, reader: SqliteLogReader) -> None:
        """Route one micro-batch. Returns when everything the batch holds is durable in the lanes, or set aside."""
        began = time.monotonic()
        if not self._route_twice(frame):
            self._recover(frame.sparkSession, reader)
        self._board.observe("tidings_batch_seconds", time.monotonic() - began)
        self._board.ready()

    def _route_twice(self, frame: DataFrame) -> bool:
        for again in (True, False):
            try:
                self._route(frame)
            except SparkFailed as error:
                log.warning("a batch failed%s: %s", ", trying it again" if again else "", _first_line(error))
                self._board.count("tidings_batches_failed_total")
            else:
                return True
        return False

    def _route(self, frame: DataFrame) -> None:
        """Route the frame. When a task stopped at its budget, the rest is read again in ranges of what came through."""
        begun = self._routed()
        scanned, wanted = self._write(self._stage(frame, self._current_plan()).toArrow(), begun)
        if scanned == begun < wanted:
            raise RuntimeError(f"the batch begins above {begun}, up to where the lanes are routed")
        step = scanned - begun
        while scanned < wanted:
            begun, upto = scanned, min(scanned + step, wanted)
            rest = self._range(frame.sparkSession, begun, upto)
            scanned, _ = self._write(self._stage(rest, self._current_plan()).toArrow(), begun)
            step = 2 * step if scanned == upto else scanned - begun

    def _recover(self, spark: SparkSession, reader: SqliteLogReader) -> None:
        """Route from the log itself in ranges, halving what fails, up to the newest entry now: the batch ended below it."""
        end = int(reader.ends().get(EMBEDDED, START))
        while (after := self._routed()) < end:
            self._route_range(spark, after, reader.cut(embedded(after), _RECOVER).end)

    def _route_range(self, spark: SparkSession, after: int, upto: int) -> None:
        try:
            self._route(self._range(spark, after, upto))
        except SparkFailed as error:
            if upto - after > 1:
                middle = (after + upto) // 2
                self._route_range(spark, after, middle)
                self._route_range(spark, middle, upto)
            elif self._others_pass(spark, upto):
                self._set_aside(upto, _first_line(error))
            else:
                raise

    def _others_pass(self, spark: SparkSession, offset: int) -> bool:
        """Whether it is this event and not Spark, the disk or our own code: else nothing may be set aside."""
        return any(self._passes(spark, other) for other in (self._proven, offset + 1) if other != offset)

    def _passes(self, spark: SparkSession, offset: int) -> bool:
        try:
            self._stage(self._range(spark, offset - 1, offset), self._current_plan()).toArrow()
        except SparkFailed:
            return False
        return True

    def _range(self, spark: SparkSession, after: int, upto: int) -> DataFrame:
        reader = spark.read.format(FORMAT).option("data", str(self._data)).option("rows", "ranges")
        return reader.option("after", str(after)).option("upto", str(upto)).load()

    def _set_aside(self, offset: int, reason: str) -> None:
        log.error("the event at position %d cannot be routed and was set aside: %s", offset, reason)
        aside = Aside(Position(EMBEDDED, Offset(offset)), None, reason)
        self._lanes.write(Routed(blocks=(), scanned=embedded(offset), aside=(aside,)))
        self._board.count("tidings_set_aside_total")

    def _write(self, found: pa.Table, begun: int) -> tuple[int, int]:
        """Write what was found up to where the scanning is without a gap; how far that is, and how far the frame goes."""
        rows = from_arrow(found)
        scans = sorted((row.first, row.last) for row in rows if row.kind == SCANNED)
        scanned, wanted = begun, begun
        for first, last in scans:
            wanted = max(wanted, last, first)
            if first <= scanned:
                scanned = max(scanned, last)
        if scanned > begun:
            routed = Routed(
                blocks=list(_blocks(rows, scanned)),
                scanned=embedded(scanned),
                aside=list(_asides(rows, scanned)),
                bodies=list(_bodies(rows, scanned)),
            )
            self._lanes.write(routed)
            self._proven = scanned
            self._count(routed, scanned - begun)
            for row in rows:
                if row.kind == COUNTED and row.reason is not None:
                    self._board.count(row.reason, row.first)
        return scanned, wanted

    def _count(self, routed: Routed, events: int) -> None:
        self._board.count("tidings_routed_total", events)
        self._board.count("tidings_lane_entries_total", sum(block.count for block in routed.blocks))
        self._board.count("tidings_set_aside_total", len(routed.aside))

    def _routed(self) -> int:
        return int(self._lanes.routed().get(EMBEDDED, START))

    def _current_plan(self) -> RoutePlan:
        """Asked after Spark fixed the end of the batch: every change that governs it is in the registry by then.

        The floor stays for a while: workers then take over most of what they compiled for the revision before.
        """
        revision = self._registry.revision()
        if revision != self._plan.revision:
            raised = revision - self._floored > _SAME_FLOOR
            self._floored = revision if raised else self._floored
            self._plan = replace(self._plan, revision=revision, floor=self._routed() if raised else self._plan.floor)
        return self._plan


def _blocks(rows: Sequence[Row], upto: int) -> Iterator[Block]:
    for lane, row in merged(row for row in rows if row.kind == BLOCK and row.first <= upto):
        yield Block(
            lane=LaneNumber(lane),
            partition=EMBEDDED,
            first=Offset(row.first),
            last=Offset(row.last),
            count=row.entries,
            offsets=row.offsets,
            digests=row.digests,
        )


def _bodies(rows: Sequence[Row], upto: int) -> Iterator[Body]:
    for row in rows:
        if row.kind == BODY and row.first <= upto:
            position = Position(EMBEDDED, Offset(row.first))
            yield Body(BodyKey(position, row.digests or b""), row.body or b"")


def _asides(rows: Sequence[Row], upto: int) -> Iterator[Aside]:
    for row in rows:
        if row.kind == ASIDE and row.first <= upto:
            lane = None if row.lane is None else LaneNumber(row.lane)
            yield Aside(Position(EMBEDDED, Offset(row.first)), lane, row.reason or "")


def _first_line(error: Exception) -> str:
    """The line of a Spark failure that says what happened: the last line of the Python traceback if there is one."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if "Error" in line or "Exception" in line]
    return (told or lines or [type(error).__name__])[-1][:500]
