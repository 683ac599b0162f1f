"""The housekeeping of lanes, a little every second: what the log has lost goes from the lanes too."""

from __future__ import annotations

import time
from collections.abc import Iterator

from tidings.errors import Unavailable, tolerating
from tidings.lanes.sink import LaneSink
from tidings.log.port import Remains
from tidings.log.position import Marks, lesser
from tidings.log.ranges import RoutingSource

TRIM_EVERY = 60.0
SWEEP_SECONDS = 0.1
"""How long a sweep may go on in each beat: there may be much to look at, and routing comes first."""


class Housekeeping:
    """Trims and sweeps the lanes, and cuts their write-ahead file once it is quiet."""

    def __init__(self, lanes: LaneSink, source: RoutingSource, log: Remains) -> None:
        self._lanes = lanes
        self._source = source
        self._log = log
        self._trimmed = 0.0
        self._sweep: Iterator[int] | None = None
        self._routed: Marks = {}
        self._rested = False

    def step(self, now: float) -> None:
        """Called about once a second; `now` is monotonic."""
        # Nothing is lost when it cannot be done now (a full disk): it is begun anew, and routing goes on.
        with tolerating(Unavailable, doing="the housekeeping of lanes"):
            if now - self._trimmed > TRIM_EVERY:
                self._trimmed = now
                trim_lanes(self._lanes, self._source)
                self._sweep = self._sweep or self._lanes.sweep(self._log)
            self._sweep_on()
        routed = self._lanes.routed()
        quiet = routed == self._routed
        if quiet and not self._rested:
            self._lanes.rest()
        self._routed, self._rested = routed, quiet

    def _sweep_on(self) -> None:
        """Take steps of the sweep for a moment."""
        until = time.monotonic() + SWEEP_SECONDS
        while self._sweep is not None and time.monotonic() < until:
            if next(self._sweep, None) is None:
                self._sweep = None


def trim_lanes(lanes: LaneSink, source: RoutingSource) -> int:
    """Remove lane entries whose events are gone from the log; never anything that is not routed yet."""
    return lanes.trim(lesser(source.gone(), lanes.routed()))
