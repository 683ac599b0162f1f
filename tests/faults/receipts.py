"""What one subscriber was sent and took: how often each event came, in which order, and what overtook what."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

from tests.faults.repeats import Repeat

LineOf = Callable[[int], int]
"""Event number → the line in which it must keep its place."""


def number_of(event: str) -> int:
    """The number in an event's id."""
    return int(event.rpartition("-")[2])


class Receipts:
    """The receipts of one subscription. An event is *sent* at every attempt and *taken* when it was answered well, or read.

    With `line_of`, an event must not be sent before all that came earlier in its line were taken. Safe to use from any thread.
    """

    def __init__(self, name: str, line_of: LineOf | None = None) -> None:
        self.name = name
        self.attempts: Counter[str] = Counter()
        self.taken: Counter[str] = Counter()
        self.order: list[str] = []
        self.repeats: list[Repeat] = []
        self.overtaken: list[str] = []
        self._line_of = line_of
        self._waiting: dict[int, set[int]] = defaultdict(set)
        self._last: dict[str, float] = {}
        self._lock = threading.Lock()

    def sent(self, events: Sequence[str]) -> None:
        """An attempt with these events came."""
        with self._lock:
            for event in events:
                if self._line_of is not None and event not in self.attempts and event not in self.taken:
                    self._look(number_of(event), {number_of(other) for other in events}, self._line_of)
                self.attempts[event] += 1

    def took(self, events: Iterable[str]) -> None:
        """They were answered well, or read to their end."""
        with self._lock:
            for event in events:
                before, now = self._last.get(event), time.monotonic()
                self._last[event] = now
                if before is None:
                    self.order.append(event)
                else:
                    self.repeats.append(Repeat(self.name, event, before, now))
                self.taken[event] += 1
                if self._line_of is not None:
                    self._waiting[self._line_of(number_of(event))].discard(number_of(event))

    def forget_waiting(self) -> None:
        """What was sent and not taken is gone with the log: it never comes again, and holds nothing up."""
        with self._lock:
            self._waiting.clear()

    def out_of_order(self) -> list[str]:
        """What was sent before its time, and what was taken for the first time after a later one of its line."""
        faults, last = list(self.overtaken), defaultdict[int, int](lambda: -1)
        for event in self.order if self._line_of is not None else ():
            number = number_of(event)
            line = self._line_of(number) if self._line_of is not None else 0
            if number < last[line]:
                faults.append(f"{self.name}: {event} was taken after {last[line]}")
            last[line] = max(number, last[line])
        return faults

    def _look(self, number: int, together: set[int], line_of: LineOf) -> None:
        waiting = self._waiting[line_of(number)]
        early = sorted(other for other in waiting - together if other < number)
        if early:
            self.overtaken.append(f"{self.name}: {number} was sent while {early[0]} waited for its next try")
        waiting.add(number)
