"""Counts of the hot path, kept as plain numbers and brought to the board once a second: a request costs no label look-up."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter

from tidings.observe.part_status import BUCKETS, PartStatus


class PublishCounters:
    """What was published and refused since the last report. Belongs to one event loop."""

    def __init__(self) -> None:
        self._published: Counter[str] = Counter()
        self._repeated: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()
        self._times = [0] * (len(BUCKETS) + 1)
        self._seconds = 0.0

    def published(self, topic: str, events: int, seconds: float) -> None:
        self._published[topic] += events
        self._times[bisect_left(BUCKETS, seconds)] += 1
        self._seconds += seconds

    def repeated(self, topic: str, events: int) -> None:
        self._repeated[topic] += events

    def refused(self, code: str) -> None:
        self._refused[code] += 1

    def report(self, board: PartStatus) -> None:
        """Bring everything to the board and start again."""
        for topic, events in self._published.items():
            board.count("tidings_published_total", events, topic=topic)
        for topic, events in self._repeated.items():
            board.count("tidings_duplicates_total", events, topic=topic)
        for code, requests in self._refused.items():
            board.count("tidings_publish_refused_total", requests, code=code)
        if any(self._times):
            board.observe_many("tidings_publish_seconds", self._times, self._seconds)
        self.__init__()  # type: ignore[misc]
