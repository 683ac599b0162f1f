"""What follows an attempt. Pure: the outcome, the policy, the time and the chance come in, the verdict goes out."""

from __future__ import annotations

import math
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TypeAlias

import msgspec

from tidings.clock import SECOND, Instant


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """What came of one attempt. `status` None: no answer came, and `cause` says why (timeout, connect-failed, …)."""

    status: int | None = None
    cause: str = ""
    duration: float = 0.0
    retry_after: str = ""

    @property
    def delivered(self) -> bool:
        return self.status is not None and 200 <= self.status < 300

    @property
    def reason(self) -> str:
        """The cause as records show it; an answer is its own cause."""
        return self.cause or f"status-{self.status}"


class RetryPolicy(msgspec.Struct, frozen=True, gc=False):
    """When to try again: `first` seconds after the first try, `factor` times longer each time, never longer than `longest`.

    `spread` is the share of the wait that chance decides, so that what failed together does not come back together.
    `lifetime` bounds the whole from the first try, in seconds.
    """

    tries: int
    first: float
    longest: float
    factor: float = 2.0
    spread: float = 0.2
    lifetime: float = math.inf


class Delivered(msgspec.Struct, frozen=True, gc=False):
    """Done: the subscriber has it."""


class RetryAt(msgspec.Struct, frozen=True, gc=False):
    """Try again then."""

    at: Instant


class DeadLetter(msgspec.Struct, frozen=True, gc=False):
    """Not tried again unless asked."""

    reason: str


Verdict: TypeAlias = Delivered | RetryAt | DeadLetter

DELIVERED = Delivered()


def after(outcome: Outcome, policy: RetryPolicy, tries: int, now: Instant, since: Instant, chance: float = 0.5) -> Verdict:
    """The verdict after try number `tries` of an event first tried at `since`; `chance` is in [0, 1).

    outcome                            verdict
    2xx                                delivered
    anything else, tries left          retry after the back-off, or what Retry-After asks if that is longer
    anything else, no tries left       dead letter
    the next try would be too late     dead letter
    """
    if outcome.delivered:
        return DELIVERED
    if tries >= policy.tries:
        return DeadLetter(f"{outcome.reason} after {tries} {'try' if tries == 1 else 'tries'}")
    wait = max(backoff(policy, tries, chance), min(asked_wait(outcome.retry_after, now), policy.longest))
    due = now + round(wait * SECOND)
    if due - since > policy.lifetime * SECOND:
        return DeadLetter(f"{outcome.reason}; the next try would be later than {policy.lifetime:g} s after the first")
    return RetryAt(Instant(due))


def backoff(policy: RetryPolicy, tries: int, chance: float) -> float:
    """Seconds to wait after try number `tries`."""
    # An exponent beyond 64 doublings is past every `longest` and would only overflow.
    plain = min(policy.first * policy.factor ** min(tries - 1, 64), policy.longest)
    return min(plain * (1 + policy.spread * (chance - 0.5)), policy.longest)


def asked_wait(retry_after: str, now: Instant) -> float:
    """Seconds that a Retry-After header asks for, as a number or as a date; 0 when it asks nothing readable."""
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        return float(text[:12])
    try:
        date = parsedate_to_datetime(text)
        return max(0.0, (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now / SECOND)
    except (ValueError, TypeError, OverflowError, IndexError):
        return 0.0
