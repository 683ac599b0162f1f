"""Time as a value. What needs the time is given a clock; nothing else asks the machine for it."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import NewType, Protocol

from tidings.errors import ClockLeapt

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
        self._leapt = 0

    def now(self) -> Instant:
        return Instant(self._now + self._leapt)

    def monotonic(self) -> float:
        return self._now / SECOND

    def advance(self, seconds: float) -> None:
        self._now += int(seconds * SECOND)

    def leap(self, seconds: float) -> None:
        """Set the clock without time passing."""
        self._leapt += int(seconds * SECOND)


LEAP = 6 * 3600.0
"""Seconds by which a clock may be ahead of the time that has passed before it counts as leapt."""


class LeapWatch:
    """Whether the machine's clock has leapt forward since this was made. Whoever deletes by age asks before.

    A clock that is set right again is no leap any more; after a new start the clock is believed.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._elapsed = _since_boot if isinstance(clock, SystemClock) else clock.monotonic
        self._began = self._difference()

    def leapt(self) -> float:
        """Seconds by which the clock is ahead of the time that has passed; 0 when that is little."""
        ahead = self._difference() - self._began
        return ahead if ahead > LEAP else 0.0

    def check(self) -> None:
        """Raise ClockLeapt while the clock is far ahead of the time that has passed."""
        ahead = self.leapt()
        if ahead:
            raise ClockLeapt(
                f"the machine's clock leapt forward by {ahead / 3600:.0f} hours: nothing is removed by age until it is right again "
                "(if it is right now, start the hub again)"
            )

    def _difference(self) -> float:
        return self._clock.now() / SECOND - self._elapsed()


def _since_boot() -> float:
    """Where the machine can tell, the time that it slept counts too: else waking up would look like a leap of the clock."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def rfc3339(instant: Instant) -> str:
    """The instant as RFC 3339 text in UTC with microseconds."""
    return (_EPOCH + timedelta(microseconds=instant)).isoformat(timespec="microseconds") + "Z"
