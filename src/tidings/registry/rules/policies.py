"""What a delivery policy may say: known words, and bounds of its numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tidings.registry.delivery_options import BATCHING_PRESETS, PRESETS, BatchForm, DeliveryOptions, Ordering
from tidings.registry.rules.faults import Fault, between

DAY = 86400.0
DELIVERED = "delivered"
MEANINGS = (DELIVERED, "retry", "wait", "pause", "give-up", "disable")
ANSWERS = 64
WAITS = 100

BOUNDS: Mapping[str, tuple[float, float, str]] = {
    "inflight": (1, 10_000, "requests"),
    "tries": (1, 1_000_000, "attempts"),
    "retry_first": (0.001, 7 * DAY, "seconds"),
    "retry_max": (0.001, 7 * DAY, "seconds"),
    "retry_factor": (1, 10, "times"),
    "retry_jitter": (0, 1, "of the wait"),
    "retry_lifetime": (0, 30 * DAY, "seconds"),
    "retry_horizon": (0, 30 * DAY, "seconds"),
    "retry_after_max": (0, 7 * DAY, "seconds"),
    "attempt_timeout": (0.1, 600, "seconds"),
    "connect_timeout": (0.1, 600, "seconds"),
    "sending_delay": (0, 3600, "seconds"),
    "rate": (0.001, 100_000, "requests a second"),
    "rate_per_minute": (1, 6_000_000, "requests a minute"),
    "probe_interval": (0.1, DAY, "seconds"),
    "republish_rate": (0.001, 100_000, "requests a second"),
    "disable_after": (1, 365 * DAY, "seconds"),
    "batch_size": (1, 10_000, "events"),
    "batch_time": (0.001, 3600, "seconds"),
    "batch_bytes": (1, 16 << 20, "bytes"),
}

_ANSWER = re.compile(r"[1-5][0-9][0-9]|[1-5]xx|none|\*")


def policy_faults(wishes: DeliveryOptions) -> Iterator[Fault]:
    """Everything wrong with a delivery policy."""
    if wishes.preset not in PRESETS:
        yield "delivery.preset", f"{wishes.preset[:50]!r} is no preset; known are {', '.join(PRESETS)}"
    for field, (low, high, unit) in BOUNDS.items():
        yield from between(f"delivery.{field}", getattr(wishes, field), (low, high), unit)
    yield from _answers(wishes.answers)
    if wishes.retry_first is not None and wishes.retry_max is not None and wishes.retry_first > wishes.retry_max:
        yield "delivery.retry_first", "the first wait is longer than the longest one (retryMax)"
    if wishes.retry_waits is not None:
        yield from _waits(wishes.retry_waits)
    if wishes.probe_answers is not None:
        yield from _probe_answers(wishes.probe_answers)
    if wishes.ordering is Ordering.KEY and _batches(wishes):
        yield "delivery.ordering", "a batch holds events of many keys: parallel or strict"


def _answers(answers: Mapping[str, str]) -> Iterator[Fault]:
    if len(answers) > ANSWERS:
        yield "delivery.answers", f"at most {ANSWERS} rules"
    for answer, meaning in answers.items():
        path = f"delivery.answers.{answer[:20]}"
        if not _ANSWER.fullmatch(answer):
            yield path, "expected a status such as 404, a class such as 5xx, none, or *"
        if meaning not in MEANINGS:
            yield path, f"{meaning[:50]!r} is no meaning; known are {', '.join(MEANINGS)}"
    if answers.get("2xx", DELIVERED) != DELIVERED and DELIVERED not in answers.values():
        yield "delivery.answers.2xx", "no answer would mean delivered: let at least one status do so, such as 200"


def _probe_answers(codes: tuple[int, ...]) -> Iterator[Fault]:
    if not 1 <= len(codes) <= ANSWERS or not all(100 <= code <= 599 for code in codes):
        yield "delivery.probe_answers", f"1 to {ANSWERS} statuses such as 200"


def _waits(waits: tuple[float, ...]) -> Iterator[Fault]:
    if not 1 <= len(waits) <= WAITS:
        yield "delivery.retry_waits", f"1 to {WAITS} waits"
    for n, wait in enumerate(waits):
        yield from between(f"delivery.retry_waits[{n}]", wait, (0.001, 7 * DAY), "seconds")


def _batches(wishes: DeliveryOptions) -> bool:
    stated = any((wishes.batch_size, wishes.batch_time, wishes.batch_bytes)) or wishes.batch_form in tuple(BatchForm)
    return stated or wishes.preset in BATCHING_PRESETS
