"""The pipeline process: Spark, and routing on it. Live while it keeps up, in parallel ranges while it has to catch up.

Truth is the lanes' own mark (docs/decisions/001-routing-truth.md): whatever ends here, routing goes on from it.
"""

from __future__ import annotations

import logging
import math
import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession

from tidings.config import PipelineSettings, Settings
from tidings.errors import DataFolderUnusable, Unavailable
from tidings.lanes.sink import LaneSink
from tidings.log.port import Limit, Remains
from tidings.log.ranges import RoutingSource
from tidings.observe.part_status import SILENT, PartStatus
from tidings.pipeline import session
from tidings.pipeline.catch_up import CatchUp
from tidings.pipeline.housekeeping import Housekeeping
from tidings.pipeline.lane_filling import LaneFilling, floor_of
from tidings.pipeline.live import Ended, Live, LiveParts
from tidings.pipeline.routed_sink import RoutedSink
from tidings.pipeline.routes import Routes
from tidings.pipeline.routing_figures import RoutingFigures
from tidings.pipeline.spark_jobs import SparkFailed, SparkJobs, first_line
from tidings.registry.port import RegistryReader
from tidings.registry.route_steps import rules_of

log = logging.getLogger("tidings.pipeline")

BEAT = 1.0

DRIVER_HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class PipelineParts:
    """What routing reads and writes."""

    lanes: LaneSink
    source: RoutingSource
    log: Remains
    registry: RegistryReader
    close: Callable[[], None]


class RoutingJobs(NamedTuple):
    """Who runs routing, and who fills lanes from the log beside it."""

    routing: SparkJobs
    filling: SparkJobs


OpenParts = Callable[[], PipelineParts]
"""Opens the adapters. Raises Unavailable while the api has not made them yet."""


def run(settings: Settings, stop: threading.Event, board: PartStatus, open_parts: OpenParts) -> None:
    """Route until `stop` is set. Routing that fails for a reason of its own is started again with growing pauses."""
    board.not_ready("Spark is starting")
    board.flush()
    folder = settings.data / "spark"
    shutil.rmtree(folder, ignore_errors=True)
    spark = _started(settings, folder, stop)
    if spark is None:
        return
    try:
        parts = _opened(open_parts, stop, board)
        if parts is not None:
            try:
                made = partial(SparkJobs, spark.sparkContext, reader=parts.source.reader, regex=rules_of(settings.regex))
                jobs = RoutingJobs(made(str(settings.data)), made(f"{settings.data}, filling"))
                router = RoutingLoop(settings.pipeline, jobs, parts, board, stop, JvmWatch(spark).silent_for)
                _keep_running(router, parts.source, stop, board)
            finally:
                parts.close()
    finally:
        board.not_ready("stopping")
        board.flush()
        _quietly_stop(spark)


class RoutingLoop:
    """Routes in whichever way is right now. One thread."""

    def __init__(
        self,
        settings: PipelineSettings,
        jobs: RoutingJobs,
        parts: PipelineParts,
        board: PartStatus,
        stop: threading.Event,
        silent_for: Callable[[float], float],
    ) -> None:
        self._parts = parts
        self._board = board
        self._stop = stop
        self._jobs = jobs.routing
        self._figures = RoutingFigures(board)
        self._settings = settings
        self._routes = Routes(parts.registry, partial(floor_of, parts.lanes))
        self._sink = RoutedSink(parts.lanes, self._routes, board)
        limit = Limit(entries=settings.batch_events, bytes=settings.batch_bytes)
        self._catch_up = CatchUp(self._jobs, parts.source, self._sink, self._routes, limit, self._figures)
        self._filling = LaneFilling(jobs.filling, parts.source, parts.lanes, self._routes, limit, self._figures)
        self._housekeeping = Housekeeping(parts.lanes, parts.source, parts.log)
        self._jvm_silent_for = silent_for
        self._deaf = False
        self._beaten = 0.0

    def run(self) -> None:
        """Route until told to stop. Raises SparkFailed when nothing can be routed."""
        with self._filling.beside():
            self._run()

    def _run(self) -> None:
        while not self._stop.is_set():
            if self._catch_up.behind() > self._settings.catch_up_above:
                self._catch_up_now()
            if not self._stop.is_set():
                self._follow()

    def _catch_up_now(self) -> None:
        self._figures.catching_up()
        began, behind = time.monotonic(), self._catch_up.behind()
        log.info("%d events behind: routing in parallel", behind)
        while not self._stop.is_set() and self._catch_up.behind() > self._settings.catch_up_until:
            self._catch_up.step()
            self._board.ready()
            self.beat(time.monotonic())
        log.info("caught up with %d events in %.1f s", behind, time.monotonic() - began)

    def _follow(self) -> None:
        parts = LiveParts(
            jobs=self._jobs,
            source=self._parts.source,
            sink=self._sink,
            routes=self._routes,
            figures=self._figures,
            host=DRIVER_HOST,
            most_behind=self._settings.catch_up_above,
            stopping=self._stop.is_set,
            beat=self.beat,
        )
        # One partition has one follower; the embedded log has one partition.
        (partition,) = self._parts.source.ends()
        live = Live(parts, partition)
        if live.run() is Ended.FAILED and not self._stop.is_set():
            log.warning("following the log failed and begins again: %s", live.reason)
            self._figures.failed()
            self._figures.catching_up()
            self._catch_up.isolate(self._parts.source.ends())

    def beat(self, now: float) -> None:
        """What is done about once a second, whatever else goes on."""
        if now - self._beaten < BEAT:
            return
        self._beaten = now
        self._housekeeping.step(now)
        # Where nothing is published, nobody else would see a subscription that asks to be filled.
        self._routes.current()
        self._listen_to_jvm(now)
        self._board.flush()

    def _listen_to_jvm(self, now: float) -> None:
        """Events may go on for a while without the JVM; nothing can be started again without it."""
        silent = self._jvm_silent_for(now)
        if silent > SILENT:
            self._board.not_ready(f"Spark's JVM hangs or was stopped: it has not answered for {silent:.0f} s")
        elif self._deaf:
            self._board.ready()
        self._deaf = silent > SILENT


class JvmWatch:
    """Asks Spark's JVM something small, again and again, in a thread of its own: a stopped JVM answers nobody."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._answered = time.monotonic()
        threading.Thread(target=self._ask, name="jvm-watch", daemon=True).start()

    def silent_for(self, now: float) -> float:
        """Seconds since it last answered."""
        return now - self._answered

    def _ask(self) -> None:
        # When Spark is stopped, in order or not, there is nobody to watch: routing itself says so.
        with suppress(Exception):
            while True:
                self._spark.sparkContext.defaultParallelism  # noqa: B018 - asked of the JVM
                self._answered = time.monotonic()
                time.sleep(2.0)
        self._answered = math.inf


def _keep_running(router: RoutingLoop, source: RoutingSource, stop: threading.Event, board: PartStatus) -> None:
    pause = 1.0
    while not stop.is_set():
        began = time.monotonic()
        try:
            router.run()
        except (*SparkFailed, Unavailable, DataFolderUnusable, RuntimeError) as error:
            pause = 1.0 if time.monotonic() - began > 60 else min(pause * 2, 30.0)
            why = source.fault() or first_line(error)
            log.error("routing stopped and starts again in %.0f s: %s", pause, why)
            board.not_ready(f"routing failed and starts again: {why}")
            board.flush()
            stop.wait(pause)


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


def _opened(open_parts: OpenParts, stop: threading.Event, board: PartStatus) -> PipelineParts | None:
    """The adapters, as soon as the api has made their files; None when told to stop before that."""
    while not stop.is_set():
        try:
            return open_parts()
        except Unavailable as error:
            board.not_ready(f"waiting for the api: {error}")
            board.flush()
            stop.wait(0.2)
    return None


def _quietly_stop(spark: SparkSession) -> None:
    """Stop Spark within a bounded time; nothing is lost if it does not: what counts is in the lanes."""
    ending = threading.Thread(target=_stop_all, args=(spark,), daemon=True)
    ending.start()
    ending.join(8.0)


def _stop_all(spark: SparkSession) -> None:
    try:
        spark.stop()
    except SparkFailed as error:
        log.warning("Spark did not stop in order: %s", first_line(error))
