"""What follows an attempt. Pure: the outcome, the policy, the times and the chance come in, the verdict goes out."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from tidings.clock import SECOND, Instant
from tidings.delivery.push.policy.answers import Meaning
from tidings.delivery.push.policy.retries import RetryPolicy, asked_wait, backoff


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """What came of one attempt. `status` None: no answer came, and `cause` says why (timeout, connect-failed, …)."""

    status: int | None = None
    cause: str = ""
    duration: float = 0.0
    retry_after: str = ""

    @property
    def reason(self) -> str:
        """The cause as records show it; an answer is its own cause."""
        return self.cause or f"status-{self.status}"


class Times(msgspec.Struct, frozen=True, gc=False):
    """The time now, when the event was first tried, and when it was published."""

    now: Instant
    since: Instant
    published: Instant


class Delivered(msgspec.Struct, frozen=True, gc=False):
    """Done: the subscriber has it."""


class RetryAt(msgspec.Struct, frozen=True, gc=False):
    """Try again then. `pause`: send nothing else of the lane before that time. `asked`: the endpoint itself named the time."""

    at: Instant
    pause: bool = False
    asked: bool = False


class BecomeDeadLetter(msgspec.Struct, frozen=True, gc=False):
    """Not tried again unless asked."""

    reason: str


class Park(msgspec.Struct, frozen=True, gc=False):
    """The retries are used up: the breaker opens, and the event waits with the rest of its lane."""

    reason: str


class DisableLane(msgspec.Struct, frozen=True, gc=False):
    """Nothing more is sent to this subscription until it is enabled; the event waits with the rest of its lane."""

    reason: str


Verdict: TypeAlias = Delivered | RetryAt | BecomeDeadLetter | Park | DisableLane

DELIVERED = Delivered()

BAD_URL = "bad-url"
"""The address cannot be read, so that no attempt was made and none would be (HOR-119)."""


def after(outcome: Outcome, policy: RetryPolicy, tries: int, times: Times, chance: float = 0.5) -> Verdict:
    """The verdict after try number `tries`; `chance` is in [0, 1).

    what the table says           verdict
    (an address that is none)     dead letter
    delivered                     delivered
    disable                       disable (410: gone)
    give-up                       dead letter
    retry, wait, pause            retry after the back-off; wait and pause not before the time that Retry-After names
      no tries left               dead letter, or park where the policy has a breaker
      beyond a bound of time      the same
    """
    if outcome.cause == BAD_URL:
        return BecomeDeadLetter(BAD_URL)
    match policy.answers.meaning(outcome.status):
        case Meaning.DELIVERED:
            return DELIVERED
        case Meaning.DISABLE:
            return DisableLane("gone" if outcome.status == 410 else outcome.reason)
        case Meaning.GIVE_UP:
            return BecomeDeadLetter(f"{outcome.reason} after {_counted(tries)}")
        case meaning:
            return _again(outcome, policy, tries, times, meaning, chance)


def _again(outcome: Outcome, policy: RetryPolicy, tries: int, times: Times, meaning: Meaning, chance: float) -> Verdict:
    if tries >= policy.tries:
        return _used_up(policy, f"{outcome.reason} after {_counted(tries)}")
    asked = None if meaning is Meaning.RETRY else asked_wait(outcome.retry_after, times.now)
    wait = backoff(policy, tries, chance)
    if asked is not None:
        bounded = min(asked, policy.asked_longest)
        wait = bounded if policy.asked_alone else max(wait, bounded)
    due = Instant(times.now + round(wait * SECOND))
    if policy.parks and due - times.published > policy.retention * SECOND:
        # It ends before that, which says nothing about the endpoint: no reason to open the breaker (HOR-116).
        due = max(times.now, Instant(times.published + round(policy.retention * SECOND)))
    late = _too_late(policy, due, times, asked is not None)
    if late:
        return _used_up(policy, f"{outcome.reason}; {late}")
    return RetryAt(due, pause=meaning is Meaning.PAUSE and asked is not None, asked=asked is not None)


def _too_late(policy: RetryPolicy, due: Instant, times: Times, asked: bool) -> str:
    """Which bound of time ends the retrying; "" for none."""
    if due - times.since > policy.lifetime * SECOND:
        return f"the next try would be later than {policy.lifetime:g} s after the first"
    # Past the horizon one more attempt is made, unless the endpoint itself asked for a later one (VNG-92, WH-05).
    if (due if asked else times.now) - times.published >= policy.age_limit * SECOND:
        return f"it was accepted more than {policy.age_limit:g} s ago"
    if due - times.published > policy.retention * SECOND:
        return "its retention ends before the next try"
    return ""


def _used_up(policy: RetryPolicy, reason: str) -> BecomeDeadLetter | Park:
    return Park(reason) if policy.parks else BecomeDeadLetter(reason)


def _counted(tries: int) -> str:
    return f"{tries} {'try' if tries == 1 else 'tries'}"
