"""Figures of subscriptions (HER-140 to HER-142): counted by delivery since a subscription exists; rates over the last minute."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

from tidings.clock import Clock
from tidings.delivery.push.reader import DeliveryReader, LaneView
from tidings.errors import Unavailable, tolerating
from tidings.log.position import LaneNumber

INTERVAL = 5.0
WINDOW = 13
"""Samples that are kept: a minute."""

HEALTHY, UNHEALTHY, NO_DATA = "HEALTHY", "UNHEALTHY", "NO_DATA"
_BUSY = 2.0
_LAGGING_SECONDS = 600.0


class Totals(NamedTuple):
    """What a lane has counted; the same names serve for how much of it comes in a second."""

    delivered: float = 0.0
    discarded: float = 0.0
    bytes: float = 0.0
    timeouts: float = 0.0
    other: float = 0.0
    client: float = 0.0
    server: float = 0.0
    failed: float = 0.0

    @property
    def attempts(self) -> float:
        return self.delivered + self.failed


def totals_of(view: LaneView) -> Totals:
    """The counts of a lane."""
    counts = view.counts
    return Totals(
        view.delivered,
        counts.dead,
        counts.bytes,
        counts.timeouts,
        counts.other_errors,
        counts.client_errors,
        counts.server_errors,
        view.failed_attempts,
    )


class DeliveryRates:
    """How much a second: samples of all lanes, taken now and then while somebody uses the door."""

    def __init__(self, delivery: DeliveryReader, clock: Clock) -> None:
        self._delivery = delivery
        self._clock = clock
        self._samples: deque[tuple[float, Mapping[LaneNumber, Totals]]] = deque(maxlen=WINDOW)
        self._sampling: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Take samples from now on, if nobody does. Belongs to one event loop."""
        if self._sampling is None or self._sampling.done():
            self._sampling = asyncio.ensure_future(self._sample())

    async def _sample(self) -> None:
        while True:
            with tolerating(Unavailable, OSError, doing="sampling deliveries"):
                views = await asyncio.to_thread(self._delivery.lanes)
                self._samples.append((self._clock.monotonic(), {lane: totals_of(view) for lane, view in views.items()}))
            await asyncio.sleep(INTERVAL)

    def of(self, view: LaneView) -> Totals:
        """Each count a second, from the oldest sample until now."""
        if not self._samples:
            return Totals()
        began, first = self._samples[0]
        seconds = self._clock.monotonic() - began
        before = first.get(view.lane, Totals())
        if seconds <= 0:
            return Totals()
        return Totals(*(max(0.0, now - then) / seconds for now, then in zip(totals_of(view), before, strict=True)))


def metrics_shown(view: LaneView, rates: Totals, lag: int, batch_rate: float) -> dict[str, Any]:
    """`S/metrics`: totals as numbers, what is by the second as text."""
    return {
        "delivered": view.delivered,
        "discarded": view.counts.dead,
        "inflight": view.open_items,
        "volume": view.counts.bytes,
        "timeouts": _text(rates.timeouts),
        "otherErrors": _text(rates.other),
        "codes2xx": _text(rates.delivered),
        "codes4xx": _text(rates.client),
        "codes5xx": _text(rates.server),
        "retries": _text(max(0.0, rates.failed - rates.discarded)),
        "lag": str(lag),
        "rate": _text(0.0 if view.detail.rate is None else view.detail.rate),
        "rateMode": view.detail.mode,
        "throughput": _text(rates.bytes),
        "batchRate": _text(batch_rate),
    }


def _text(value: float) -> str:
    return str(round(value, 3))


def health_shown(rates: Totals, lag: int, topic_rate: float, *, suspended: bool, retries_client_errors: bool) -> dict[str, Any]:
    """`S/health` (HER-142)."""
    if suspended:
        return {"status": HEALTHY, "problems": []}
    rate = rates.attempts
    problems = []
    if lag > _LAGGING_SECONDS * topic_rate and lag:
        problems.append(_problem("LAGGING", f"Lag is growing, got {lag} messages that are not delivered yet"))
    if rate > _BUSY:
        problems += [
            _problem(code, f"{words}: {share:.2f} a second of {rate:.2f} attempts")
            for code, words, share in (
                ("UNREACHABLE", "Attempts that reach nobody", rates.other if rates.other > 0.5 * rate else 0.0),
                ("TIMING_OUT", "Attempts without an answer in time", rates.timeouts if rates.timeouts > 0.1 * rate else 0.0),
                ("MALFUNCTIONING", "Answers with 5xx", rates.server if rates.server > 0.1 * rate else 0.0),
                (
                    "RECEIVING_MALFORMED_MESSAGES",
                    "Answers with 4xx",
                    rates.client if retries_client_errors and rates.client > 0.1 * rate else 0.0,
                ),
            )
            if share
        ]
    if problems:
        return {"status": UNHEALTHY, "problems": problems}
    return {"status": HEALTHY if rate or topic_rate else NO_DATA, "problems": []}


def _problem(code: str, description: str) -> dict[str, str]:
    return {"code": code, "description": description}
