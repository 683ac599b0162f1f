"""The task that follows the log, in a Spark worker: sees it grow, asks for the routes, routes, sends what it found.

Every step fixes its end first and asks for the routes then, so a change of the registry is in force for every event that was
published after the change was answered.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tidings.filters import RE2_ONLY, RegexRules
from tidings.log.position import Offset
from tidings.log.ranges import Range, RangeReader
from tidings.pipeline.live_channel import Ask, ChannelClosed, Go, Hello, LiveChannel, StepFound, StopFollowing
from tidings.pipeline.route import Routing, route_range
from tidings.pipeline.routed_rows import SCANNED, RoutedRange, RoutedRow
from tidings.pipeline.routes import EncodedRoute, RouteChange
from tidings.pipeline.workers import settle

IDLE = 0.25
"""Seconds after which a task that waits for the log looks whether it is to stop."""

CONNECT_TIMEOUT = 10.0


@dataclass(frozen=True, slots=True)
class LiveTask:
    """What travels to the worker."""

    wanted: Range
    reader: RangeReader
    address: tuple[str, int]
    token: bytes
    regex: RegexRules = RE2_ONLY
    budget: int = 16 << 20
    route: Callable[[Routing, RangeReader, Range, int], Iterator[RoutedRow]] = route_range


def follow(task: LiveTask) -> None:
    """Follow the range until the driver says stop or is gone. What cannot be routed raises; the driver isolates it."""
    try:
        connection = socket.create_connection(task.address, CONNECT_TIMEOUT)
    except ConnectionRefusedError:
        # The driver was told to stop before this task began.
        return
    channel = LiveChannel(connection)
    try:
        channel.send(Hello(task.token, os.getpid()))
        _Following(task, channel).run()
    except ChannelClosed:
        return
    finally:
        task.reader.close()
        channel.close()


class _Following:
    def __init__(self, task: LiveTask, channel: LiveChannel) -> None:
        self._task = task
        self._channel = channel
        self._partition, self._at, _ = task.wanted
        self._routes: dict[EncodedRoute, None] = {}
        self._routing: Routing | None = None

    def run(self) -> None:
        reader = self._task.reader
        while True:
            end = reader.end(self._partition)
            if end > self._at:
                if not self._step(end):
                    return
                continue
            reader.wait(self._partition, IDLE)
            if isinstance(self._channel.receive(0), StopFollowing):
                return

    def _step(self, end: Offset) -> bool:
        """Route up to `end`, or as far as the budget goes; False: the driver said stop."""
        self._channel.send(Ask())
        match self._channel.receive():
            case Go(change):
                routing = self._routed_by(change)
            case _:
                return False
        rows = list(self._task.route(routing, self._task.reader, Range(self._partition, self._at, end), self._task.budget))
        self._channel.send(StepFound(RoutedRange(self._partition, rows)))
        self._at = Offset(max(row.last for row in rows if row.kind == SCANNED))
        return True

    def _routed_by(self, change: RouteChange | None) -> Routing:
        if change is not None or self._routing is None:
            for route in () if change is None else change.removed:
                self._routes.pop(route, None)
            self._routes |= dict.fromkeys(() if change is None else change.added)
            schemas = () if change is None else change.schemas
            self._routing = Routing(self._routes, self._partition, self._task.regex, self._routing, schemas)
            settle()
        return self._routing
