"""The wire shape of a delivery policy: a preset, and what is wanted otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec
from pydantic import Field

from tidings.doors.native.bodies.wire import Duration, Size, Wire
from tidings.registry.delivery_options import PRESETS, BatchForm, DeliveryOptions, Ordering, ProbeMethod, Tracking

if TYPE_CHECKING:
    PresetName = str
else:
    PresetName = Literal[PRESETS]

Meaning = Literal["delivered", "retry", "wait", "pause", "give-up", "disable"]


class PolicyBody(Wire):
    """Members that are left out are as the preset has them."""

    preset: PresetName = Field(default="default", description="The policy that the other members go over.")
    answers: dict[str, Meaning] = Field(
        default_factory=dict, description="What an answer means: a status, a class such as 5xx, none (no answer), or *."
    )
    attempt_timeout: Duration | None = Field(default=None, description="How long one attempt may take as a whole.")
    connect_timeout: Duration | None = Field(
        default=None, description="How long connecting may take; where it is given, attemptTimeout begins once connected."
    )

    tries: int | None = Field(default=None, description="Attempts before an event becomes a dead letter.")
    retry_first: Duration | None = Field(default=None, description="Wait before the second attempt.")
    retry_max: Duration | None = Field(default=None, description="Longest wait between two attempts.")
    retry_factor: float | None = Field(default=None, description="How much longer each wait is than the one before; 1: fixed.")
    retry_jitter: float | None = Field(default=None, description="Share by which chance makes a wait longer or shorter.")
    retry_waits: list[Duration] | None = Field(default=None, description="The waits themselves, instead of first and factor.")
    retry_lifetime: Duration | None = Field(default=None, description="No attempt is made later than this after the first.")
    retry_horizon: Duration | None = Field(default=None, description="No retry once the event is this old.")
    retry_after_max: Duration | None = Field(default=None, description="How far a Retry-After is honored.")
    retry_after_alone: bool | None = Field(default=None, description="Retry-After counts even where the back-off is longer.")
    retry_client_errors: bool | None = Field(default=None, description="Whether 4xx answers are tried again.")

    ordering: Ordering | None = Field(default=None, description="What the subscriber sees of the order of arrival.")
    inflight: int | None = Field(default=None, description="Requests on their way at the same time at the most.")
    sending_delay: Duration | None = Field(default=None, description="No first attempt sooner than this after publishing.")

    rate: float | None = Field(default=None, description="Requests a second at the most, retries included.")
    rate_per_minute: int | None = Field(default=None, description="Requests a minute at the most, retries included.")
    adaptive_rate: bool | None = Field(default=None, description="Whether failures lower the rate.")

    breaker: bool | None = Field(default=None, description="When the retries of an event are used up, all wait for a probe.")
    probe_method: ProbeMethod | None = None
    probe_interval: Duration | None = None
    probe_answers: list[int] | None = Field(default=None, description="Statuses of a probe that mean: well again.")
    republish_rate: float | None = Field(default=None, description="Requests a second while what waited is sent.")
    disable_after: Duration | None = Field(default=None, description="Only failures for so long disable the subscription.")

    batch_size: int | None = Field(default=None, description="Events of one request at the most.")
    batch_time: Duration | None = Field(default=None, description="A batch goes out this long after its first event.")
    batch_bytes: Size | None = Field(
        default=None, description="Bytes of events in one request at the most; a larger event goes alone."
    )
    batch_form: BatchForm | None = Field(default=None, description="How a batch is laid out; any batch member asks for one.")

    tracking: Tracking | None = Field(
        default=None, description="Attempts kept as facts: all, those of discarded events, or (off) only the last state."
    )


_FIELDS = [field.name for field in msgspec.structs.fields(DeliveryOptions)]


def wishes_from(body: PolicyBody) -> dict[str, Any]:
    """The fields of the wishes that a body states."""
    stated = {name: getattr(body, name) for name in _FIELDS}
    answers = None if body.probe_answers is None else tuple(body.probe_answers)
    return stated | {"retry_waits": None if body.retry_waits is None else tuple(body.retry_waits), "probe_answers": answers}


def shown_wishes(wishes: DeliveryOptions) -> dict[str, Any]:
    """The members of the body that shows these wishes."""
    stated = {name: getattr(wishes, name) for name in _FIELDS}
    waits = None if wishes.retry_waits is None else list(wishes.retry_waits)
    well = None if wishes.probe_answers is None else list(wishes.probe_answers)
    return stated | {"answers": dict(wishes.answers), "retry_waits": waits, "probe_answers": well}
