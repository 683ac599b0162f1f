"""When to try again: fixed, rising or listed waits, spread by chance, and what a Retry-After header asks for. Pure."""

from __future__ import annotations

import math
from datetime import UTC
from email.utils import parsedate_to_datetime

import msgspec

from tidings.clock import SECOND, Instant
from tidings.delivery.push.policy.answers import Answers, answers_of

_ANSWERS = answers_of({"2xx": "delivered", "*": "wait"})


class RetryPolicy(msgspec.Struct, frozen=True, gc=False):
    """`first` seconds after the first try, `factor` times longer each time, never longer than `longest`; or the listed `waits`.

    `spread` is the share of the wait that chance decides, so that what failed together does not come back together.
    The whole is bounded by `tries`, by `lifetime` from the first try, by `age_limit` and `retention` from publishing. All seconds.
    Retry-After is honored up to `asked_longest`; `asked_alone`: even where the back-off would be longer.
    `parks`: when the retries are used up, the event waits behind the breaker instead of becoming a dead letter.
    """

    tries: int
    first: float
    longest: float
    factor: float = 2.0
    spread: float = 0.2
    waits: tuple[float, ...] = ()
    lifetime: float = math.inf
    age_limit: float = math.inf
    retention: float = math.inf
    asked_longest: float = 3600.0
    asked_alone: bool = False
    parks: bool = False
    answers: Answers = _ANSWERS

    @property
    def longest_wait(self) -> float:
        """No wait is longer than this, whatever the machine's clock says."""
        return max(self.longest, self.asked_longest, *self.waits) * (1 + self.spread)


def backoff(policy: RetryPolicy, tries: int, chance: float) -> float:
    """Seconds to wait after try number `tries`."""
    spread = 1 + policy.spread * (chance - 0.5)
    if policy.waits:
        return policy.waits[min(tries, len(policy.waits)) - 1] * spread
    # An exponent beyond 64 doublings is past every `longest` and would only overflow.
    plain = min(policy.first * policy.factor ** min(tries - 1, 64), policy.longest)
    return min(plain * spread, policy.longest)


def asked_wait(retry_after: str, now: Instant) -> float | None:
    """Seconds that a Retry-After header asks for, as a number or as a date; None when it asks nothing readable."""
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        return float(text[:12])
    try:
        date = parsedate_to_datetime(text)
        return max(0.0, (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now / SECOND)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
