"""The pipeline process: Spark, the one streaming query over all topics, its lanes, and the housekeeping of lanes.

The checkpoint that Spark keeps is thrown away at every start: the lanes' own mark is the truth, and a new query begins there.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tidings.config import Settings
from tidings.errors import Unavailable, tolerating
from tidings.log.port import LanesWriter, Limit, LogReader
from tidings.log.position import EMBEDDED, START, Marks, embedded
from tidings.log.sqlite.lanes import SqliteLanesWriter
from tidings.log.sqlite.reader import SqliteLogReader
from tidings.log.wake import Bell
from tidings.observe.board import Board
from tidings.pipeline import session
from tidings.pipeline.route import RoutePlan, stage
from tidings.pipeline.sinks import LaneSink, SparkFailed, Stage
from tidings.pipeline.source import FORMAT, LogSource
from tidings.registry.passages import rules_of
from tidings.registry.store import SqlRegistryReader, open_reader

log = logging.getLogger("tidings.pipeline")

_BEAT = 1.0
_TRIM_EVERY = 60.0
_SWEEP_SECONDS = 0.1
"""How long a sweep may go on in each beat: there may be much to look at after an upgrade, and routing comes first."""


def run(settings: Settings, stop: threading.Event, board: Board, *, stage: Stage = stage) -> None:
    """Route until `stop` is set. A query that fails for a reason of its own is started again with growing pauses."""
    board.not_ready("Spark is starting")
    board.flush()
    folder = settings.data / "spark"
    shutil.rmtree(folder, ignore_errors=True)
    spark = _started(settings, folder, stop)
    if spark is None:
        return
    spark.dataSource.register(LogSource)
    try:
        parts = _opened(settings.data, stop, board)
        if parts is not None:
            with closing(parts):
                plan = first_plan(settings, parts)
                sink = LaneSink(plan, stage, parts.lanes, parts.registry, board)
                _keep_running(settings, spark, sink, parts, stop, board)
    finally:
        board.not_ready("stopping")
        board.flush()
        _quietly_stop(spark)


@dataclass(frozen=True, slots=True)
class Parts:
    """What routing reads and writes."""

    lanes: SqliteLanesWriter
    log: SqliteLogReader
    registry: SqlRegistryReader

    def close(self) -> None:
        """Release all files."""
        self.lanes.close()
        self.log.close()
        self.registry.close()


def _started(settings: Settings, folder: Path, stop: threading.Event) -> SparkSession | None:
    """Spark, or None when told to stop before it was up: what is left of its start ends with this process."""
    starting = Future[SparkSession]()

    def start() -> None:
        try:
            starting.set_result(session.start(settings.pipeline, folder))
        except BaseException as error:
            starting.set_exception(error)

    threading.Thread(target=start, name="spark-start", daemon=True).start()
    while not stop.is_set():
        with suppress(TimeoutError):
            return starting.result(timeout=0.1)
    return None


def first_plan(settings: Settings, parts: Parts) -> RoutePlan:
    """The plan to begin with: everything in force from where the lanes are routed."""
    routed = int(parts.lanes.routed().get(EMBEDDED, START))
    return RoutePlan(settings.data, parts.registry.revision(), routed, rules_of(settings.regex))


def _opened(data: Path, stop: threading.Event, board: Board) -> Parts | None:
    """The files, as soon as the api has made them; None when told to stop before that."""
    while not stop.is_set():
        try:
            return Parts(SqliteLanesWriter(data), SqliteLogReader(data), open_reader(data))
        except Unavailable as error:
            board.not_ready(f"waiting for the api: {error}")
            board.flush()
            stop.wait(0.2)
    return None


def _keep_running(
    settings: Settings, spark: SparkSession, sink: LaneSink, parts: Parts, stop: threading.Event, board: Board
) -> None:
    pause = 1.0
    while not stop.is_set():
        began = time.monotonic()
        board.not_ready("the first batch is on its way")
        query = start_query(settings, spark, sink, parts, settings.data / "spark" / f"checkpoint-{time.time_ns()}")
        failure = _watch(settings, query, parts, stop, board)
        if failure is None:
            return
        pause = 1.0 if time.monotonic() - began > 60 else min(pause * 2, 30.0)
        log.error("routing stopped and starts again in %.0f s: %s", pause, failure)
        board.not_ready(f"routing failed and starts again: {failure}")
        board.flush()
        stop.wait(pause)


def start_query(
    settings: Settings, spark: SparkSession, sink: LaneSink, parts: Parts, checkpoint: Path, rows: str = "ranges"
) -> StreamingQuery:
    """The one streaming query, from where the lanes are routed. `rows` is what the sink's stage takes; see `LogSource`."""
    frame = (
        spark.readStream.format(FORMAT)
        .option("data", str(settings.data))
        .option("after", str(parts.lanes.routed().get(EMBEDDED, START)))
        .option("events", str(settings.pipeline.batch_events))
        .option("bytes", str(settings.pipeline.batch_bytes))
        .option("warm", str(settings.pipeline.warm_interval))
        .option("rows", rows)
        .load()
    )

    def each(batch: DataFrame, number: int) -> None:
        sink.take(batch, parts.log)

    return frame.writeStream.foreachBatch(each).option("checkpointLocation", str(checkpoint)).start()


def _watch(settings: Settings, query: StreamingQuery, parts: Parts, stop: threading.Event, board: Board) -> str | None:
    """Wait until told to stop (None) or until the query ended by itself (why). Flushes the board, keeps the lanes tidy."""
    tidy = Tidying(parts)
    while not stop.wait(_BEAT):
        if not query.isActive:
            return str(query.exception() or "the query ended").splitlines()[0][:300]
        board.flush()
        tidy.step(time.monotonic())
    # The source may be waiting for an event for seconds: a ring lets it look up, so that stopping is quick.
    Bell(settings.data, "log").ring()
    return None


class Tidying:
    """The housekeeping of lanes, a little every second.

    What the log has lost goes from the lanes too, and the write-ahead file is cut once it is quiet.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._trimmed = 0.0
        self._sweep: Iterator[int] | None = None
        self._routed: Marks = {}
        self._rested = False

    def step(self, now: float) -> None:
        # Nothing is lost when it cannot be done now (a full disk): it is begun anew, and routing goes on.
        with tolerating(Unavailable, doing="the housekeeping of lanes"):
            if now - self._trimmed > _TRIM_EVERY:
                self._trimmed = now
                trim_lanes(self._parts.lanes, self._parts.log)
                self._sweep = self._sweep or self._parts.lanes.sweep(self._parts.log)
            self._sweep_on()
        routed = self._parts.lanes.routed()
        quiet = routed == self._routed
        if quiet and not self._rested:
            self._parts.lanes.rest()
        self._routed, self._rested = routed, quiet

    def _sweep_on(self) -> None:
        """Take steps of the sweep for a moment."""
        until = time.monotonic() + _SWEEP_SECONDS
        while self._sweep is not None and time.monotonic() < until:
            if next(self._sweep, None) is None:
                self._sweep = None


def trim_lanes(lanes: LanesWriter, reader: LogReader) -> int:
    """Remove lane entries whose events are gone from the log; never anything that is not routed yet."""
    oldest = reader.scan(embedded(0), reader.ends(), Limit(entries=1)).entries
    routed = int(lanes.routed().get(EMBEDDED, START))
    kept_from = int(oldest[0].position.offset) if oldest else routed + 1
    return lanes.trim(embedded(min(kept_from - 1, routed)))


def _quietly_stop(spark: SparkSession) -> None:
    """Stop Spark within a bounded time; nothing is lost if it does not: what counts is in the lanes."""
    ending = threading.Thread(target=_stop_all, args=(spark,), daemon=True)
    ending.start()
    ending.join(8.0)


def _stop_all(spark: SparkSession) -> None:
    try:
        for query in spark.streams.active:
            query.stop()
        spark.stop()
    except SparkFailed as error:
        log.warning("Spark did not stop in order: %s", str(error).splitlines()[0][:200])
