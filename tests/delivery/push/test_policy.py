"""The presets as tables: what each answer means, when the next try is, and what a subscription's own wishes change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.delivery.worlds import quick_settings
from tidings.clock import SECOND, Instant
from tidings.delivery.push.policy.decision import (
    DELIVERED,
    BecomeDeadLetter,
    DisableLane,
    Outcome,
    Park,
    RetryAt,
    Times,
    Verdict,
    after,
)
from tidings.delivery.push.policy.policy import Policy, policy_of
from tidings.delivery.push.request.hub_formats import BINARY, STRUCTURED
from tidings.registry.delivery_options import BatchForm, Ordering
from tidings.registry.model import Push
from tidings.registry.rules.retention import RetentionPeriod

NOW = Instant(1_700_000_000 * SECOND)
HOUR = 3600.0


def a_policy(tmp_path: Path, preset: str = "default", retention: float = 7 * 24 * HOUR, **wishes: Any) -> Policy:
    return policy_of(
        Push(url="http://a.example/", preset=preset, **wishes), quick_settings(tmp_path).push, RetentionPeriod(retention)
    )


def judged(policy: Policy, status: int | None, tries: int = 1, asked: str = "", age: float = 0.0) -> Verdict:
    outcome = Outcome(status, "" if status else "timeout", retry_after=asked)
    began = Instant(NOW - round(age * SECOND))
    return after(outcome, policy.retry, tries, Times(NOW, began, began))


def word(verdict: Verdict) -> str:
    if verdict is DELIVERED:
        return "delivered"
    match verdict:
        case RetryAt(pause=True):
            return "pause"
        case RetryAt():
            return "retry"
        case BecomeDeadLetter():
            return "dead"
        case Park():
            return "park"
        case DisableLane(reason):
            return f"disable {reason}"
    raise AssertionError(verdict)


ROWS: list[tuple[int | None, str, str, str, str]] = [
    # status, horizon, hermes, vng, cloudevents; each with a Retry-After of two seconds
    (100, "dead", "retry", "retry", "retry"),
    (200, "delivered", "delivered", "delivered", "delivered"),
    (201, "delivered", "delivered", "delivered", "delivered"),
    (202, "delivered", "delivered", "delivered", "delivered"),
    (203, "dead", "delivered", "delivered", "delivered"),
    (204, "delivered", "delivered", "delivered", "delivered"),
    (302, "dead", "retry", "retry", "retry"),
    (400, "dead", "dead", "retry", "retry"),
    (401, "retry", "dead", "retry", "retry"),
    (404, "dead", "dead", "retry", "retry"),
    (410, "dead", "dead", "disable gone", "disable gone"),
    (413, "dead", "dead", "dead", "dead"),
    (415, "dead", "dead", "dead", "dead"),
    (429, "retry", "retry", "pause", "pause"),
    (500, "dead", "retry", "retry", "retry"),
    (502, "retry", "retry", "retry", "retry"),
    (503, "retry", "retry", "pause", "pause"),
    (504, "retry", "retry", "retry", "retry"),
    (None, "retry", "retry", "retry", "retry"),
]


@pytest.mark.parametrize(("status", "horizon", "hermes", "vng", "cloudevents"), ROWS)
def test_what_an_answer_means(
    tmp_path: Path, status: int | None, horizon: str, hermes: str, vng: str, cloudevents: str
) -> None:
    found = [word(judged(a_policy(tmp_path, name), status, asked="2")) for name in ("horizon", "hermes", "vng", "cloudevents")]
    assert found == [horizon, hermes, vng, cloudevents]


def waits(policy: Policy, tries: int, status: int = 503) -> list[float]:
    verdicts = [judged(policy, status, n) for n in range(1, tries + 1)]
    return [round((verdict.at - NOW) / SECOND, 3) for verdict in verdicts if isinstance(verdict, RetryAt)]


def test_the_waits_of_the_presets(tmp_path: Path) -> None:
    assert waits(a_policy(tmp_path, "horizon"), 12) == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2]
    assert waits(a_policy(tmp_path, "hermes"), 4) == [0.1] * 4
    assert waits(a_policy(tmp_path, "vng"), 12) == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]
    listed = [5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400]
    assert waits(a_policy(tmp_path, "cloudevents", retention=30 * 24 * HOUR), 10) == listed
    assert waits(a_policy(tmp_path, "cloudevents", ordering=Ordering.KEY), 3) == [1, 2, 4]


def test_retries_used_up_are_parked_where_there_is_a_breaker_and_dead_letters_elsewhere(tmp_path: Path) -> None:
    assert word(judged(a_policy(tmp_path, "horizon"), 503, tries=11)) == "park"
    assert word(judged(a_policy(tmp_path, "horizon", breaker=False), 503, tries=11)) == "dead"
    assert word(judged(a_policy(tmp_path, "cloudevents"), 500, tries=10)) == "dead"


@pytest.mark.parametrize(
    ("preset", "wishes", "asked", "age", "expected"),
    [
        ("hermes", {}, "", 3599.8, "retry"),
        ("hermes", {}, "", 3599.95, "dead"),
        ("hermes", {}, "3601", 0, "dead"),
        ("hermes", {"retry_lifetime": 0.0}, "", 0, "dead"),
        ("vng", {}, "", 24 * HOUR - 1, "retry"),
        ("vng", {}, "", 24 * HOUR, "dead"),
        ("vng", {}, "7200", 23 * HOUR, "dead"),
        ("vng", {"retry_horizon": HOUR}, "", HOUR, "dead"),
    ],
)
def test_retrying_ends_in_time(
    tmp_path: Path, preset: str, wishes: dict[str, Any], asked: str, age: float, expected: str
) -> None:
    assert word(judged(a_policy(tmp_path, preset, **wishes), 503, asked=asked, age=age)) == expected


def test_nothing_is_tried_after_its_retention(tmp_path: Path) -> None:
    kept_short = a_policy(tmp_path, "cloudevents", retention=60.0)
    assert word(judged(kept_short, 500, tries=1, age=10)) == "retry"
    assert word(judged(kept_short, 500, tries=2, age=10)) == "dead"


def wait(policy: Policy, asked: str, tries: int = 1) -> float:
    verdict = judged(policy, 503, tries, asked)
    assert isinstance(verdict, RetryAt)
    return (verdict.at - NOW) / SECOND


def test_retry_after_is_honored_up_to_its_bound(tmp_path: Path) -> None:
    horizon, hermes = a_policy(tmp_path, "horizon"), a_policy(tmp_path, "hermes")
    assert [wait(horizon, asked) for asked in ("7", "99999", "-1", "x")] == [7, 3600, 0.1, 0.1]
    # The back-off that has grown longer: Horizon waits for the later one, Hermes for what was asked.
    assert (wait(horizon, "7", tries=9), wait(a_policy(tmp_path, "hermes", retry_first=9.0), "7")) == (25.6, 7)
    assert (wait(hermes, "0"), wait(a_policy(tmp_path, "horizon", retry_after_max=5.0), "7")) == (0, 5)


def test_own_wishes_go_over_the_preset(tmp_path: Path) -> None:
    assert word(judged(a_policy(tmp_path, "hermes", retry_client_errors=True), 404)) == "retry"
    assert word(judged(a_policy(tmp_path, "horizon", answers={"404": "retry", "5xx": "disable"}), 404)) == "retry"
    assert word(judged(a_policy(tmp_path, "horizon", answers={"5xx": "disable"}), 500)) == "disable status-500"
    assert word(judged(a_policy(tmp_path, "horizon", answers={"none": "give-up"}), None)) == "dead"
    assert waits(a_policy(tmp_path, "cloudevents", retry_first=2.0, retry_factor=3.0, retry_max=60.0), 3) == [2, 6, 18]
    assert waits(a_policy(tmp_path, retry_waits=(1.0, 4.0), retry_jitter=0.0), 4) == [1, 4, 4, 4]


def test_order_and_batches_settle_how_many_are_open(tmp_path: Path) -> None:
    def shape(policy: Policy) -> tuple[int, int]:
        return policy.inflight, policy.open_items

    assert shape(a_policy(tmp_path)) == (100, 10_000)
    assert shape(a_policy(tmp_path, "vng", inflight=50)) == (1, 1)
    assert shape(a_policy(tmp_path, ordering=Ordering.KEY)) == (100, 400)
    assert shape(a_policy(tmp_path, "hermes", inflight=7)) == (7, 7)
    batch = a_policy(tmp_path, "hermes-batch")
    assert shape(batch) == (1, 101)
    assert (batch.format, batch.batch and batch.batch.form) == (BINARY, BatchForm.WRAPPED)
    assert a_policy(tmp_path, batch_size=10).format == STRUCTURED
