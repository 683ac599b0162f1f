"""A part's board: its figures and whether it is ready, in one small file that any process may read.

Every part (api, pipeline, deliver) keeps one board in the data folder's `run/` and flushes it about once a second. A flush writes
when something changed, and every few seconds to say that the part is alive: one that hangs or was stopped says nothing.
`/metrics` and `/api/status` put the boards together.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

Labels = tuple[tuple[str, str], ...]

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of the time histograms, in seconds."""


BEAT = 2.0
"""Seconds after which a board is written although nothing changed."""

SILENT = 15.0
"""Seconds without a beat after which a part counts as hanging."""


class Series(msgspec.Struct):
    """One figure with its labels. A histogram has `buckets` (counts per bound, the last one is +Inf) and `sum`."""

    name: str
    kind: str
    labels: Labels = ()
    value: float = 0.0
    buckets: list[int] | None = None


class PartState(msgspec.Struct):
    """What stands on a board. `ready` False comes with `reason`. `beat`: when it was written, in seconds since the machine started.

    All processes of a machine count these alike, and no clock that is set changes them.
    """

    part: str
    pid: int
    ready: bool = False
    reason: str = "starting"
    beat: float = 0.0
    series: list[Series] = []


class PartStatus:
    """The board of this process. Counting is cheap and thread-safe enough for figures; flushing is the caller's loop."""

    def __init__(self, folder: Path, part: str) -> None:
        self._path = folder / f"{part}.json"
        self._face = PartState(part=part, pid=os.getpid())
        self._series: dict[tuple[str, Labels], Series] = {}
        self._lock = threading.Lock()
        self._dirty = True
        folder.mkdir(parents=True, exist_ok=True)

    def count(self, name: str, by: float = 1, **labels: str) -> None:
        """Add to a counter."""
        self._at(name, "counter", labels).value += by
        self._dirty = True

    def gauge(self, name: str, value: float, **labels: str) -> None:
        """Set a gauge."""
        series = self._at(name, "gauge", labels)
        if series.value != value:
            series.value = value
            self._dirty = True

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Add a measured time, in seconds, to a histogram."""
        series = self._at(name, "histogram", labels)
        if series.buckets is None:
            series.buckets = [0] * (len(BUCKETS) + 1)
        series.value += value
        series.buckets[next((n for n, bound in enumerate(BUCKETS) if value <= bound), len(BUCKETS))] += 1
        self._dirty = True

    def observe_many(self, name: str, buckets: Sequence[int], total: float, **labels: str) -> None:
        """Add times that were counted elsewhere: how many fell under each of `BUCKETS` and above, and their sum in seconds."""
        series = self._at(name, "histogram", labels)
        series.buckets = [old + new for old, new in zip(series.buckets or [0] * (len(BUCKETS) + 1), buckets, strict=True)]
        series.value += total
        self._dirty = True

    def ready(self) -> None:
        """This part does its work."""
        self._say(True, "")

    def not_ready(self, reason: str) -> None:
        """This part does not, and why."""
        self._say(False, reason)

    def flush(self, *, force: bool = False) -> None:
        """Write the board if anything changed, if its beat is getting old, or if forced."""
        now = time.monotonic()
        if not (self._dirty or force or now - self._face.beat >= BEAT):
            return
        with self._lock:
            self._dirty = False
            self._face.beat = now
            self._face.series = list(self._series.values())
            swap = self._path.with_suffix(".new")
            swap.write_bytes(msgspec.json.encode(self._face))
            swap.replace(self._path)

    def face(self) -> PartState:
        """What stands on this board now, without the file."""
        self._face.series = list(self._series.values())
        return self._face

    def _say(self, ready: bool, reason: str) -> None:
        if (ready, reason) != (self._face.ready, self._face.reason):
            self._face.ready, self._face.reason = ready, reason
            self._dirty = True

    def _at(self, name: str, kind: str, labels: Mapping[str, str]) -> Series:
        key = (name, tuple(sorted(labels.items())))
        found = self._series.get(key)
        if found is None:
            found = self._series.setdefault(key, Series(name=name, kind=kind, labels=key[1]))
        return found


def read_faces(folder: Path) -> dict[str, PartState]:
    """The boards of all parts as last flushed. That of a process that is gone, or has been silent for long, reads as not ready."""
    faces: dict[str, PartState] = {}
    for path in sorted(folder.glob("*.json")):
        try:
            face = msgspec.json.decode(path.read_bytes(), type=PartState)
        except (OSError, msgspec.MsgspecError):
            continue
        if not _alive(face.pid):
            face.ready, face.reason = False, "its process has ended"
        elif face.ready and not 0 <= (silent := time.monotonic() - face.beat) <= SILENT:
            face.ready, face.reason = False, f"it hangs or was stopped: nothing was heard of it for {silent:.0f} s"
        faces[face.part] = face
    return faces


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
