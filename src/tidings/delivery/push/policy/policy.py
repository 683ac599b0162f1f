"""How one subscription is delivered: its wishes over its preset over the hub's settings, as one value.

A change of any of the three holds for the next attempt.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeVar

import msgspec

from tidings.config import PushSettings
from tidings.delivery.push.policy.answers import answers_of
from tidings.delivery.push.policy.presets import opens_no_more_than_inflight, preset_of
from tidings.delivery.push.policy.retries import RetryPolicy
from tidings.delivery.push.request.credentials import Access
from tidings.delivery.push.request.formats import LaneFormat
from tidings.delivery.push.request.hub_formats import BY_MODE, STREAMED
from tidings.registry.credentials import is_sealed
from tidings.registry.delivery_options import BatchForm, DeliveryOptions, Ordering, ProbeMethod, Tracking
from tidings.registry.model import ContentMode, Push
from tidings.registry.rules.callbacks import is_reserved
from tidings.registry.rules.retention import FOREVER, RetentionPeriod

T = TypeVar("T")

_MODES = {
    BatchForm.CLOUDEVENTS: ContentMode.STRUCTURED,
    BatchForm.PLAIN: ContentMode.BINARY,
    BatchForm.WRAPPED: ContentMode.BINARY,
}

STREAM_ITEMS = 1000

KEYS_AHEAD = 4
"""With order per key, entries are opened for this many times as many keys as may be on their way."""


class PacePolicy(msgspec.Struct, frozen=True):
    """How fast: requests a second and a minute at the most, and whether failures slow it down. None: no bound."""

    second: float | None = None
    minute: int | None = None
    adaptive: bool = False


WELL = (200, 201, 202, 204)
"""Answers to a probe that mean: well again (HOR-125)."""


class BreakerPolicy(msgspec.Struct, frozen=True):
    """How an endpoint that failed is asked whether it is well, and how fast what waited is sent then.

    Who fails again within `loop_window` seconds is left alone longer each time, up to `loop_max`.
    """

    method: ProbeMethod = ProbeMethod.HEAD
    interval: float = 30.0
    republish: float | None = None
    well_at: tuple[int, ...] = WELL
    loop_window: float = 4500.0
    loop_max: float = 3600.0


class BatchPolicy(msgspec.Struct, frozen=True):
    """When a batch goes out: at `size` events, `time` seconds after its first, or when the next does not fit `bytes`."""

    size: int = 100
    time: float = 1.0
    bytes: int = 64_000
    form: BatchForm = BatchForm.PLAIN


class Policy(msgspec.Struct, frozen=True):
    """Everything an attempt for one subscription needs to know. `open_items`: how many may be begun and not final."""

    url: str
    format: LaneFormat
    headers: Mapping[str, str]
    inflight: int
    open_items: int
    attempt_timeout: float
    retry: RetryPolicy
    ordering: Ordering = Ordering.PARALLEL
    sending_delay: float = 0.0
    pace: PacePolicy = PacePolicy()
    breaker: BreakerPolicy | None = None
    batch: BatchPolicy | None = None
    disable_after: float = math.inf
    preset: str = "default"
    access: Access | None = None
    tracking: Tracking = Tracking.ALL
    kept: RetentionPeriod = FOREVER
    streamed: bool = False
    connect_timeout: float | None = None

    @property
    def patience(self) -> tuple[float, float | None]:
        """The seconds of one attempt, and those for connecting where they count apart."""
        return self.attempt_timeout, self.connect_timeout


def _is_theirs(name: str, value: str) -> bool:
    """Sealed headers are opened only when they are sent; see `credentials`."""
    return not is_reserved(name) and not is_sealed(value)


def _format(push: Push, batch: BatchPolicy | None, own: LaneFormat | None) -> LaneFormat:
    """A list of payloads is made of payloads; a list of events of events."""
    if batch is None:
        return own or BY_MODE[push.mode]
    return own if own is not None and own.has_batch else BY_MODE[_MODES[batch.form]]


def _headers(push: Push, own: LaneFormat | None) -> dict[str, str]:
    theirs = {name.lower(): value for name, value in push.headers.items() if _is_theirs(name, value)}
    return theirs if own is None else {**theirs, **own.headers}


def policy_of(push: Push, defaults: PushSettings, kept: RetentionPeriod = FOREVER, own: LaneFormat | None = None) -> Policy:
    """What a push comes to. `kept`: how long its events count. `own`: the format of its layout, if it has one."""
    preset = preset_of(push)
    ordering = _first(push.ordering, preset.ordering, Ordering.PARALLEL)
    batch = _batch(push, preset)
    inflight = 1 if ordering is Ordering.STRICT or batch else max(1, _first(push.inflight, preset.inflight, defaults.inflight))
    breaker = _breaker(push, preset, defaults)
    return Policy(
        url=push.url,
        format=_format(push, batch, own),
        headers=_headers(push, own),
        inflight=inflight,
        open_items=_open_items(preset, ordering, batch, inflight, defaults.open_items),
        attempt_timeout=_first(push.attempt_timeout, preset.attempt_timeout, defaults.attempt_timeout),
        retry=_retry(push, preset, defaults, parks=breaker is not None, retention=kept.longest),
        ordering=ordering,
        sending_delay=_first(push.sending_delay, preset.sending_delay, 0.0),
        pace=PacePolicy(
            _either(push.rate, preset.rate),
            _least(_either(push.rate_per_minute, preset.rate_per_minute), push.webhook.rate if push.webhook else None),
            _first(push.adaptive_rate, preset.adaptive_rate, False),
        ),
        breaker=breaker,
        batch=batch,
        disable_after=_first(push.disable_after, preset.disable_after, math.inf),
        preset=push.preset,
        tracking=_first(push.tracking, preset.tracking, Tracking.ALL),
        kept=kept,
        connect_timeout=_either(push.connect_timeout, preset.connect_timeout),
    )


def stream_policy(kept: RetentionPeriod) -> Policy:
    """What a stream comes to: whatever its reader takes is delivered, and nothing is tried by itself."""
    return Policy(
        url="",
        format=STREAMED,
        headers={},
        # How much is read ahead: there may be thousands of streams.
        inflight=4,
        open_items=STREAM_ITEMS,
        attempt_timeout=0.0,
        retry=RetryPolicy(tries=1, first=1.0, longest=1.0, answers=answers_of({"*": "delivered"})),
        kept=kept,
        streamed=True,
    )


def _retry(push: Push, preset: DeliveryOptions, defaults: PushSettings, *, parks: bool, retention: float) -> RetryPolicy:
    first = _first(push.retry_first, preset.retry_first, defaults.retry_first)
    client_errors = {"4xx": "retry"} if push.retry_client_errors else {}
    # Waits of one's own, listed or not, take the place of the preset's.
    listed = push.retry_waits if push.retry_waits is not None else () if push.retry_first is not None else preset.retry_waits
    return RetryPolicy(
        tries=max(1, _first(push.tries, preset.tries, defaults.tries)),
        first=first,
        longest=max(first, _first(push.retry_max, preset.retry_max, defaults.retry_max)),
        factor=_first(push.retry_factor, preset.retry_factor, 2.0),
        spread=2 * _first(push.retry_jitter, preset.retry_jitter, 0.1),
        waits=listed or (),
        lifetime=_first(push.retry_lifetime, preset.retry_lifetime, math.inf),
        age_limit=_first(push.retry_horizon, preset.retry_horizon, math.inf),
        retention=retention,
        asked_longest=_first(push.retry_after_max, preset.retry_after_max, defaults.retry_after_max),
        asked_alone=_first(push.retry_after_alone, preset.retry_after_alone, False),
        parks=parks,
        answers=answers_of(preset.answers, client_errors, push.answers),
    )


def _breaker(push: Push, preset: DeliveryOptions, defaults: PushSettings) -> BreakerPolicy | None:
    if not _first(push.breaker, preset.breaker, False):
        return None
    return BreakerPolicy(
        _first(push.probe_method, preset.probe_method, ProbeMethod.HEAD),
        _first(push.probe_interval, preset.probe_interval, defaults.probe_interval),
        _either(push.republish_rate, preset.republish_rate),
        _first(push.probe_answers, preset.probe_answers, WELL),
        defaults.loop_window,
        defaults.loop_max,
    )


def _batch(push: Push, preset: DeliveryOptions) -> BatchPolicy | None:
    size, time, volume, form = (
        _either(push.batch_size, preset.batch_size),
        _either(push.batch_time, preset.batch_time),
        _either(push.batch_bytes, preset.batch_bytes),
        _either(push.batch_form, preset.batch_form),
    )
    if size is None and time is None and volume is None and form is None:
        return None
    cloudevents = BatchForm.CLOUDEVENTS if push.mode is ContentMode.STRUCTURED else BatchForm.PLAIN
    return BatchPolicy(size or 100, time or 1.0, volume or 64_000, form or cloudevents)


def _open_items(preset: DeliveryOptions, ordering: Ordering, batch: BatchPolicy | None, inflight: int, most: int) -> int:
    """How many entries are taken from the lane and not final at the most."""
    if batch is not None:
        # The one that does not fit is open already: it starts the next batch.
        return min(most, batch.size + 1)
    if ordering is Ordering.STRICT:
        return 1
    if ordering is Ordering.KEY:
        return min(most, inflight * KEYS_AHEAD)
    return min(most, inflight) if opens_no_more_than_inflight(preset) else most


def _least(wish: int | None, allowed: int | None) -> int | None:
    """What a callback allows bounds what was wished for (WH-11)."""
    return min((rate for rate in (wish, allowed) if rate is not None), default=None)


def _either(wish: T | None, preset: T | None) -> T | None:
    return preset if wish is None else wish


def _first(wish: T | None, preset: T | None, otherwise: T) -> T:
    return wish if wish is not None else preset if preset is not None else otherwise
