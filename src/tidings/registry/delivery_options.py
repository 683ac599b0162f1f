"""How a subscription wants to be delivered to: a named preset, and what it wants otherwise. None: as the preset has it.

Only what was asked for is kept. What it comes to is decided in delivery, from the preset and the hub's own settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec


class Ordering(StrEnum):
    """What a subscriber sees of the order of arrival."""

    PARALLEL = "parallel"
    KEY = "key"
    STRICT = "strict"


class BatchForm(StrEnum):
    """How the events of one request are laid out."""

    WRAPPED = "wrapped"
    PLAIN = "plain"
    CLOUDEVENTS = "cloudevents"


class ProbeMethod(StrEnum):
    """How an endpoint is asked whether it is well again."""

    HEAD = "HEAD"
    GET = "GET"


class Tracking(StrEnum):
    """Which attempts are kept as facts: all, only those that ended in a dead letter or expired, or none but the last state."""

    OFF = "off"
    DISCARDED = "discarded"
    ALL = "all"


PRESETS = ("default", "horizon", "hermes", "hermes-batch", "vng", "cloudevents")
BATCHING_PRESETS = ("hermes-batch",)
"""Those that ask for batches by themselves."""


class DeliveryOptions(msgspec.Struct, frozen=True, kw_only=True):
    """A delivery policy as its owner wrote it. Times are seconds.

    `answers` says what an answer means, over the preset's table: a status, a class such as 5xx, `none` (no answer came) or `*`
    → delivered, retry, wait, pause, give-up or disable.
    """

    preset: str = "default"
    answers: Mapping[str, str] = {}
    attempt_timeout: float | None = None
    connect_timeout: float | None = None

    tries: int | None = None
    retry_first: float | None = None
    retry_max: float | None = None
    retry_factor: float | None = None
    retry_jitter: float | None = None
    retry_waits: tuple[float, ...] | None = None
    retry_lifetime: float | None = None
    retry_horizon: float | None = None
    retry_after_max: float | None = None
    retry_after_alone: bool | None = None
    retry_client_errors: bool | None = None

    ordering: Ordering | None = None
    inflight: int | None = None
    sending_delay: float | None = None

    rate: float | None = None
    rate_per_minute: int | None = None
    adaptive_rate: bool | None = None

    breaker: bool | None = None
    probe_method: ProbeMethod | None = None
    probe_interval: float | None = None
    probe_answers: tuple[int, ...] | None = None
    republish_rate: float | None = None
    disable_after: float | None = None

    batch_size: int | None = None
    batch_time: float | None = None
    batch_bytes: int | None = None
    batch_form: BatchForm | None = None

    tracking: Tracking | None = None
