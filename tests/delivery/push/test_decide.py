"""What follows an attempt, as tables."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime

import msgspec
import pytest

from tidings.clock import SECOND, Instant
from tidings.delivery.push.policy.decision import DELIVERED, BecomeDeadLetter, Outcome, Park, RetryAt, Times, after
from tidings.delivery.push.policy.retries import RetryPolicy, asked_wait, backoff

NOW = Instant(1_700_000_000 * SECOND)
AT_ONCE = Times(NOW, NOW, NOW)
POLICY = RetryPolicy(tries=3, first=1.0, longest=10.0, spread=0.0, asked_longest=10.0)


def seconds_until(verdict: object) -> float:
    assert isinstance(verdict, RetryAt)
    return (verdict.at - NOW) / SECOND


@pytest.mark.parametrize("status", [200, 201, 202, 204, 226, 299])
def test_any_2xx_is_delivered(status: int) -> None:
    assert after(Outcome(status), POLICY, 1, AT_ONCE) is DELIVERED


@pytest.mark.parametrize("status", [101, 199, 300, 301, 302, 304, 307, 400, 401, 404, 410, 415, 429, 500, 503, 599])
def test_any_other_answer_is_tried_again(status: int) -> None:
    assert seconds_until(after(Outcome(status), POLICY, 1, AT_ONCE)) == 1.0


@pytest.mark.parametrize("cause", ["timeout", "connect-failed", "dns-failed", "tls-failed", "ssrf-blocked"])
def test_no_answer_is_tried_again(cause: str) -> None:
    assert seconds_until(after(Outcome(cause=cause), POLICY, 2, AT_ONCE)) == 2.0


def test_the_last_try_makes_a_dead_letter_that_says_why() -> None:
    assert after(Outcome(503), POLICY, 3, AT_ONCE) == BecomeDeadLetter("status-503 after 3 tries")
    assert after(Outcome(cause="timeout"), POLICY, 4, AT_ONCE) == BecomeDeadLetter("timeout after 4 tries")
    assert after(Outcome(500), RetryPolicy(1, 1, 1), 1, AT_ONCE) == BecomeDeadLetter("status-500 after 1 try")


def test_the_last_try_may_still_succeed() -> None:
    assert after(Outcome(200), POLICY, 3, AT_ONCE) is DELIVERED


@pytest.mark.parametrize(("tries", "wait"), [(1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (6, 10), (5000, 10)])
def test_the_wait_doubles_up_to_the_longest(tries: int, wait: float) -> None:
    assert backoff(POLICY, tries, 0.5) == wait


def test_chance_spreads_the_wait_but_never_beyond_the_longest() -> None:
    spread = RetryPolicy(tries=9, first=1.0, longest=10.0, spread=0.2)
    assert [backoff(spread, 1, chance) for chance in (0.0, 0.5, 1.0)] == pytest.approx([0.9, 1.0, 1.1])
    assert backoff(spread, 9, 1.0) == 10.0


@pytest.mark.parametrize(
    ("asked", "wait"),
    [
        ("", 1), ("0", 1), ("5", 5), (" 7 ", 7), ("86400", 10), ("9" * 400, 10),
        ("-3", 1), ("1.5", 1), ("soon", 1), ("٣", 1), ("Wed, 99 Foo", 1), ("\x00", 1),
    ],
)  # fmt: skip
def test_retry_after_is_honored_within_its_bound(asked: str, wait: float) -> None:
    assert seconds_until(after(Outcome(503, retry_after=asked), POLICY, 1, AT_ONCE)) == wait


@pytest.mark.parametrize(("ahead", "wait"), [(-60, 0), (0, 0), (4, 4), (3600, 3600)])
def test_retry_after_may_be_a_date(ahead: int, wait: float) -> None:
    date = datetime.fromtimestamp(NOW / SECOND + ahead, UTC)
    assert asked_wait(format_datetime(date, usegmt=True), NOW) == wait


def test_an_event_is_not_tried_beyond_its_lifetime() -> None:
    policy = RetryPolicy(tries=100, first=1.0, longest=10.0, spread=0.0, lifetime=60.0)
    since = Instant(NOW - 59 * SECOND)
    assert seconds_until(after(Outcome(500), policy, 1, Times(NOW, since, since))) == 1.0
    assert isinstance(after(Outcome(500), policy, 2, Times(NOW, since, since)), BecomeDeadLetter)


def test_an_address_that_cannot_be_read_is_not_tried_again() -> None:
    assert after(Outcome(cause="bad-url"), msgspec.structs.replace(POLICY, parks=True), 1, AT_ONCE) == BecomeDeadLetter(
        "bad-url"
    )


def test_behind_a_breaker_an_event_ends_with_its_retention_and_does_not_open_it() -> None:
    policy = msgspec.structs.replace(POLICY, retention=6.0, parks=True)
    assert seconds_until(after(Outcome(503, retry_after="9"), policy, 1, AT_ONCE)) == 6.0
    assert seconds_until(after(Outcome(503, retry_after="5"), policy, 1, AT_ONCE)) == 5.0
    assert after(Outcome(503, retry_after="9"), policy, 3, AT_ONCE) == Park("status-503 after 3 tries")
