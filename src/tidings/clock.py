"""Time as a value. What needs the time is given a clock; nothing else asks the machine for it."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import NewType, Protocol

Instant = NewType("Instant", int)
"""Microseconds since 1970-01-01 UTC."""

SECOND = 1_000_000

_EPOCH = datetime(1970, 1, 1)


class Clock(Protocol):
    """Tells the time. `now` may jump with the machine's clock, `monotonic` never goes back (seconds)."""

    def now(self) -> Instant: ...
    def monotonic(self) -> float: ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> Instant:
        return Instant(time.time_ns() // 1000)

    def monotonic(self) -> float:
        return time.monotonic()


class ManualClock:
    """A clock that stands still until it is moved; for tests."""

    def __init__(self, now: int = 1_700_000_000 * SECOND) -> None:
        self._now = now

    def now(self) -> Instant:
        return Instant(self._now)

    def monotonic(self) -> float:
        return self._now / SECOND

    def advance(self, seconds: float) -> None:
        self._now += int(seconds * SECOND)


def rfc3339(instant: Instant) -> str:
    """The instant as RFC 3339 text in UTC with microseconds."""
    return (_EPOCH + timedelta(microseconds=instant)).isoformat(timespec="microseconds") + "Z"
