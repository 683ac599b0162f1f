"""How fast a lane may send. Pure state machines: the time (monotonic seconds) and what happened come in.

The hard limit counts every attempt in a sliding window, so that it holds for any one second and nothing is saved up; within the
window attempts are spaced. Over it Hermes' limiter lowers the rate of an endpoint that fails (HER-103…110).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from enum import StrEnum

import msgspec

from tidings.delivery.push.policy.policy import PacePolicy

MINUTE = 60.0
AT_ONCE = 1 / 20
"""The share of a window's attempts that may go at once, beside the first; the others are spread over the window."""

GRAIN = 1 / 200
"""The share of a window within which attempts count as made together, when the last of them was."""


class RateWindow:
    """At most `count` attempts in any `seconds`, and few of them at once. `sent` is when the last ones were, and how many."""

    __slots__ = ("_began", "_sent", "_spaced", "_total", "count", "seconds")

    def __init__(self, count: int, seconds: float, sent: Sequence[tuple[float, int]] = ()) -> None:
        self.count = count
        self.seconds = seconds
        self._sent = deque(sent)
        self._total = sum(many for _, many in sent)
        self._began = -math.inf
        # When the next attempt would go if all were evenly spread.
        self._spaced = self._sent[-1][0] + seconds / count if sent else -math.inf

    def wait(self, now: float) -> float:
        """Seconds until one more may go; 0 when it may go now."""
        self._forget(now)
        wait, over = self._spaced - self.seconds * AT_ONCE - now, self._total - self.count
        for at, many in self._sent if over >= 0 else ():
            wait, over = max(wait, at + self.seconds - now), over - many
            if over < 0:
                break
        return max(0.0, wait)

    def sent(self, now: float) -> None:
        self._forget(now)
        self._spaced = max(self._spaced, now) + self.seconds / self.count
        self._total += 1
        if now - self._began < self.seconds * GRAIN and self._sent:
            self._sent[-1] = now, self._sent[-1][1] + 1
        else:
            self._began = now
            self._sent.append((now, 1))

    @property
    def last(self) -> Sequence[tuple[float, int]]:
        """When the last attempts were, and how many each time; enough to make the window again."""
        return tuple(self._sent)

    def resized(self, count: int, seconds: float) -> RateWindow:
        """The same past under another limit; a lower one holds at once."""
        return RateWindow(count, seconds, self.last)

    def _forget(self, now: float) -> None:
        if self._sent and self._sent[-1][0] > now:
            # Saved before the machine was started again, when its time began anew: all of it may have been just now.
            self._sent = deque([(now, self._total)])
            self._spaced = now + self.seconds / self.count
        while self._sent and self._sent[0][0] + self.seconds <= now:
            self._total -= self._sent.popleft()[1]


def window_of(rate: float) -> tuple[int, float]:
    """A rate per second as attempts in a window: below one a second the window is longer."""
    return (math.floor(rate), 1.0) if rate >= 1 else (1, 1.0 / rate)


class PaceMode(StrEnum):
    """How an adaptive lane is doing."""

    NORMAL = "normal"
    SLOW = "slow"
    HEARTBEAT = "heartbeat"


class Adaptive(msgspec.Struct, frozen=True):
    """Tolerances and delays of the limiter."""

    period: float = 1.0
    slow_rate: float = 1.0
    heartbeat_rate: float = 1 / 60
    recover_below: float = 0.01
    lower_above: float = 0.05
    step: float = 0.2


class Speed(msgspec.Struct, frozen=True):
    """Where the limiter stands: the mode and the rate per second."""

    mode: PaceMode
    rate: float


class AnswerCounts(msgspec.Struct):
    """What happened in one period. Back pressure that named its own time counts as neither success nor failure."""

    successes: int = 0
    failures: int = 0
    asked: int = 0


TOLERANT = Adaptive()


def next_speed(speed: Speed, counts: AnswerCounts, most: float, rules: Adaptive = TOLERANT) -> Speed:
    """The speed after a period (HER-105…110)."""
    s, f = counts.successes, counts.failures
    if counts.asked and not s:
        return _cut(speed, most)
    ratio = f / (f + s) if f else 0.0
    bad, clean = f > s, s > 0 and f == 0
    slow = min(rules.slow_rate, most)
    match speed.mode:
        case PaceMode.NORMAL if ratio <= rules.recover_below:
            speed = Speed(PaceMode.NORMAL, speed.rate + (most - speed.rate) * rules.step) if speed.rate < most else speed
        case PaceMode.NORMAL if bad:
            speed = Speed(PaceMode.SLOW, slow)
        case PaceMode.NORMAL if ratio > rules.lower_above:
            speed = Speed(PaceMode.NORMAL, max(slow, speed.rate * (1 - rules.step)))
        case PaceMode.SLOW if bad:
            speed = Speed(PaceMode.HEARTBEAT, min(rules.heartbeat_rate, most))
        case PaceMode.SLOW if clean:
            speed = Speed(PaceMode.NORMAL, slow)
        case PaceMode.HEARTBEAT if clean:
            speed = Speed(PaceMode.SLOW, slow)
    return _cut(speed, most)


def _cut(speed: Speed, most: float) -> Speed:
    return speed if speed.rate <= most else Speed(speed.mode, most)


class Pace:
    """The limits of one lane together. Kept when the policy changes, so that a change is no way around them."""

    __slots__ = ("_counts", "_extra", "_minute", "_period_ends", "_policy", "_second", "speed")

    def __init__(self, policy: PacePolicy = PacePolicy()) -> None:
        self._policy = policy
        self._counts = AnswerCounts()
        self._period_ends = -math.inf
        self._second: RateWindow | None = None
        self._minute: RateWindow | None = None
        self._extra: RateWindow | None = None
        self.speed = Speed(PaceMode.NORMAL, policy.second or math.inf)
        self.adopt(policy)

    def adopt(self, policy: PacePolicy) -> None:
        """Keep these limits from now on."""
        raised = self.speed.mode is PaceMode.NORMAL and self.speed.rate == (self._policy.second or math.inf)
        self._policy = policy
        most = policy.second or math.inf
        self.speed = Speed(PaceMode.NORMAL, most) if raised or not policy.adaptive else _cut(self.speed, most)
        self._second = self._fitted(self._second, self.speed.rate)
        self._minute = self._per_minute(policy.minute)

    @property
    def last_minute(self) -> Sequence[tuple[float, int]]:
        """The attempts that count against the limit per minute; to be kept over a restart."""
        return () if self._minute is None else self._minute.last

    def remember(self, sent: Sequence[tuple[float, int]]) -> None:
        """What `last_minute` was before a restart. The next policy says what limit that counts against."""
        self._minute = RateWindow(1, MINUTE, sent) if sent else None

    def republish(self, rate: float | None) -> None:
        """A further limit while what waited is sent; None takes it away."""
        self._extra = None if rate is None else self._fitted(self._extra, rate)

    def wait(self, now: float) -> float:
        """0 when an attempt may begin now, else the seconds until it is worth asking again."""
        if self._policy.adaptive and now >= self._period_ends:
            self._turn_period(now)
        windows = [window for window in (self._second, self._minute) if window is not None]
        wait = max((window.wait(now) for window in windows), default=0.0)
        # The end of the period may bring a higher rate.
        return min(wait, self._period_ends - now) if self._policy.adaptive else wait

    def sent(self, now: float) -> None:
        """An attempt begins."""
        for window in (self._second, self._minute):
            if window is not None:
                window.sent(now)

    def back_wait(self, now: float) -> float:
        """0 when one more of what waited may be taken, else the seconds until it is worth asking again."""
        return 0.0 if self._extra is None else self._extra.wait(now)

    def back_sent(self, now: float) -> None:
        """One of what waited is taken."""
        if self._extra is not None:
            self._extra.sent(now)

    def ended(self, delivered: bool, asked: bool) -> None:
        """What came of an attempt. `asked`: the endpoint named the time of the next one itself."""
        if asked:
            self._counts.asked += 1
        elif delivered:
            self._counts.successes += 1
        else:
            self._counts.failures += 1

    @property
    def limited(self) -> bool:
        return self._second is not None or self._minute is not None

    def _turn_period(self, now: float) -> None:
        if self._period_ends > -math.inf:
            self.speed = next_speed(self.speed, self._counts, self._policy.second or math.inf)
            self._second = self._fitted(self._second, self.speed.rate)
        self._counts = AnswerCounts()
        self._period_ends = now + TOLERANT.period

    def _fitted(self, window: RateWindow | None, rate: float) -> RateWindow | None:
        if math.isinf(rate):
            return None
        count, seconds = window_of(rate)
        if window is None:
            return RateWindow(count, seconds)
        return window if (window.count, window.seconds) == (count, seconds) else window.resized(count, seconds)

    def _per_minute(self, minute: int | None) -> RateWindow | None:
        if minute is None:
            return None
        return RateWindow(minute, MINUTE) if self._minute is None else self._minute.resized(minute, MINUTE)
