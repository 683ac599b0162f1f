"""Live routing, on the driver's side: one task follows the log, and what it finds is written to the lanes as it comes.

waiting for the task ──Hello──▶ following ──Ask/Go, Found──▶ following
        │                          │
        └── no Hello, no progress while the log grows, a failure ──▶ Ended.FAILED
                                   ├── too far behind ──▶ Ended.BEHIND
                                   └── told to stop ──▶ Ended.STOPPED
"""

from __future__ import annotations

import hmac
import logging
import os
import secrets
import select
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto

from tidings.log.position import START, Marks, Partition
from tidings.log.ranges import Range, RoutingSource
from tidings.pipeline.live_channel import Ask, ChannelClosed, Go, Hello, LiveChannel, StepFound, StopFollowing
from tidings.pipeline.routed_sink import RoutedSink
from tidings.pipeline.routes import RouteChange, Routes, RouteTable
from tidings.pipeline.routing_figures import RoutingFigures
from tidings.pipeline.spark_jobs import LiveJob, SparkJobs

log = logging.getLogger("tidings.pipeline")

LOOK = 0.25
"""Seconds after which the driver looks whether it is to stop, although nobody said anything."""

BEAT = 1.0
STUCK = 20.0
"""Seconds without a word from the task, while the log has grown, after which it counts as hanging."""

FIRST_WORD = 60.0
END_PATIENCE = 3.0


class Ended(Enum):
    """Why following the log ended."""

    STOPPED = auto()
    BEHIND = auto()
    FAILED = auto()


@dataclass(frozen=True, slots=True)
class LiveParts:
    """What live routing works with. More than `most_behind` entries are too much for one task. `beat` is called once a second."""

    jobs: SparkJobs
    source: RoutingSource
    sink: RoutedSink
    routes: Routes
    figures: RoutingFigures
    host: str
    most_behind: int
    stopping: Callable[[], bool]
    beat: Callable[[float], None]


class Live:
    """One life of the task that follows a partition. Use it once; one thread."""

    def __init__(self, parts: LiveParts, partition: Partition) -> None:
        self._parts = parts
        self._partition = partition
        self._token = secrets.token_bytes(32)
        self._listener = socket.create_server((parts.host, 0), backlog=4)
        self._channel: LiveChannel | None = None
        self._table: RouteTable | None = None
        self._pid = 0
        self._heard = self._beaten = time.monotonic()
        self._asked = 0.0
        self.reason = ""

    def run(self) -> Ended:
        """Follow until something ends it; `reason` says more about a failure."""
        after = self._parts.sink.routed().get(self._partition, START)
        address: tuple[str, int] = self._listener.getsockname()[:2]
        job = self._parts.jobs.follow(self._parts.jobs.live_task(Range(self._partition, after), address, self._token))
        try:
            return self._served(job)
        finally:
            self._finish(job)

    def _served(self, job: LiveJob) -> Ended:
        while True:
            ended = self._looked(job)
            if ended is not None:
                return ended
            try:
                self._hear()
            except ChannelClosed:
                job.end(END_PATIENCE)
                self.reason = job.failure or "the task that follows the log has left"
                return Ended.FAILED

    def _looked(self, job: LiveJob) -> Ended | None:
        """Whether something ended it, asked before every message; the rest about once a second."""
        if self._parts.stopping():
            return Ended.STOPPED
        now = time.monotonic()
        if now - self._beaten < BEAT:
            return None
        self._beaten = now
        self._parts.beat(now)
        if job.over:
            self.reason = job.failure or "the task that follows the log has ended"
            return Ended.FAILED
        routed, ends = self._parts.sink.routed(), self._parts.source.ends()
        if self._is_stuck(now, routed, ends):
            self.reason = f"the task that follows the log says nothing for {now - self._heard:.0f} s"
            self._kill()
            return Ended.FAILED
        if self._channel is not None and self._parts.source.count(routed, ends) > self._parts.most_behind:
            return Ended.BEHIND
        return None

    def _is_stuck(self, now: float, routed: Marks, ends: Marks) -> bool:
        if self._channel is None:
            return now - self._heard > FIRST_WORD
        grown = routed.get(self._partition, START) < ends.get(self._partition, START)
        if not grown:
            # Nothing to say is no silence.
            self._heard = now
        return grown and now - self._heard > STUCK

    def _hear(self) -> None:
        """Wait a moment for the next message, and answer it. Raises ChannelClosed."""
        if self._channel is None:
            self._accept()
            return
        message = self._channel.receive(LOOK)
        if message is None:
            return
        self._heard = time.monotonic()
        match message:
            case Ask():
                self._asked = self._heard
                self._channel.send(Go(self._change()))
            case StepFound(routed):
                self._parts.sink.write([routed])
                self._parts.figures.step(time.monotonic() - self._asked)
            case _:
                raise ChannelClosed

    def _change(self) -> RouteChange | None:
        table = self._parts.routes.current()
        if table is self._table:
            return None
        change, self._table = table.since(self._table), table
        return change

    def _accept(self) -> None:
        """Take the task's connection. Anybody else's is closed."""
        if not select.select([self._listener], [], [], LOOK)[0]:
            return
        connection, _ = self._listener.accept()
        channel = LiveChannel(connection)
        with suppress(ChannelClosed):
            match channel.receive(5.0):
                case Hello(token, pid) if hmac.compare_digest(token, self._token):
                    self._channel, self._pid, self._heard = channel, pid, time.monotonic()
                    self._parts.figures.live()
                    return
        channel.close()

    def _kill(self) -> None:
        """A worker that hangs does not hear its job being canceled. It runs on this machine, or its own Spark ends it."""
        if self._pid and self._parts.host == "127.0.0.1":
            with suppress(OSError):
                os.kill(self._pid, 9)

    def _finish(self, job: LiveJob) -> None:
        with suppress(ChannelClosed):
            if self._channel is not None:
                self._channel.send(StopFollowing())
                self._drain(self._channel)
        if self._channel is not None:
            self._channel.close()
        self._listener.close()
        if not job.end(END_PATIENCE):
            log.warning("the task that follows the log did not end in time")

    def _drain(self, channel: LiveChannel) -> None:
        """What the task found before it heard the Stop is written too. Raises ChannelClosed when it has left."""
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            match channel.receive(0.1):
                case StepFound(routed):
                    self._parts.sink.write([routed])
