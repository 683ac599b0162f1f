"""The presets: delivery policies named after the documents that describe them. What a subscription wishes goes over them.

Fields that a preset leaves out are the hub's own settings, or off. Why the core has this table: docs/decisions/012.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidings.registry.delivery_options import BatchForm, DeliveryOptions, Ordering, ProbeMethod

HOUR = 3600.0
UNBOUNDED = 1_000_000_000
"""Tries where only time ends the retrying."""

_WEBHOOK = {
    "2xx": "delivered",
    "410": "disable",
    "413": "give-up",
    "415": "give-up",
    "429": "pause",
    "503": "pause",
    "*": "retry",
}
_HERMES = {"2xx": "delivered", "429": "wait", "503": "wait", "4xx": "give-up", "*": "retry"}

DEFAULT = DeliveryOptions(
    answers={"2xx": "delivered", "410": "disable", "429": "pause", "503": "pause", "*": "wait"},
)

HORIZON = DeliveryOptions(
    preset="horizon",
    answers={
        **dict.fromkeys(("200", "201", "202", "204"), "delivered"),
        **dict.fromkeys(("401", "429", "502", "503", "504", "none"), "wait"),
        "*": "give-up",
    },
    attempt_timeout=30.0,
    connect_timeout=30.0,
    tries=11,
    retry_first=0.1,
    retry_max=60.0,
    retry_factor=2.0,
    retry_jitter=0.0,
    inflight=50,
    breaker=True,
    probe_method=ProbeMethod.HEAD,
)

HERMES = DeliveryOptions(
    preset="hermes",
    answers=_HERMES,
    attempt_timeout=1.0,
    tries=UNBOUNDED,
    retry_first=0.1,
    retry_max=600.0,
    retry_factor=1.0,
    retry_jitter=0.0,
    retry_lifetime=HOUR,
    retry_after_max=24 * HOUR,
    retry_after_alone=True,
    inflight=100,
    rate=400.0,
    adaptive_rate=True,
)

HERMES_BATCH = DeliveryOptions(
    preset="hermes-batch",
    answers=_HERMES,
    attempt_timeout=30.0,
    tries=UNBOUNDED,
    retry_first=0.5,
    retry_max=0.5,
    retry_factor=1.0,
    retry_jitter=0.0,
    retry_lifetime=60.0,
    retry_after_max=24 * HOUR,
    retry_after_alone=True,
    ordering=Ordering.STRICT,
    batch_size=100,
    batch_time=30.0,
    batch_bytes=64_000,
    batch_form=BatchForm.WRAPPED,
)

VNG = DeliveryOptions(
    preset="vng",
    answers=_WEBHOOK,
    tries=UNBOUNDED,
    retry_first=1.0,
    retry_max=600.0,
    retry_factor=2.0,
    retry_jitter=0.2,
    retry_horizon=24 * HOUR,
    retry_after_max=24 * HOUR,
    ordering=Ordering.STRICT,
)

CLOUDEVENTS = DeliveryOptions(
    preset="cloudevents",
    answers=_WEBHOOK,
    attempt_timeout=20.0,
    tries=10,
    retry_waits=(5.0, 300.0, 0.5 * HOUR, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR),
    retry_jitter=0.2,
    retry_after_max=24 * HOUR,
    disable_after=120 * HOUR,
)

CLOUDEVENTS_ORDERED = DeliveryOptions(
    preset="cloudevents",
    answers=_WEBHOOK,
    attempt_timeout=20.0,
    tries=UNBOUNDED,
    retry_first=1.0,
    retry_max=600.0,
    retry_factor=2.0,
    retry_jitter=0.2,
    retry_horizon=24 * HOUR,
    retry_after_max=24 * HOUR,
    disable_after=120 * HOUR,
)
"""With an order to keep, the head of the line must not wait for a day (WH-23)."""

_BY_NAME: Mapping[str, DeliveryOptions] = {
    one.preset: one for one in (DEFAULT, HORIZON, HERMES, HERMES_BATCH, VNG, CLOUDEVENTS)
}


def opens_no_more_than_inflight(preset: DeliveryOptions) -> bool:
    """Whether `inflight` bounds what waits for its retry too: everything that was read and is not finished (HER-82)."""
    return preset is HERMES


def preset_of(wishes: DeliveryOptions) -> DeliveryOptions:
    """The preset that these wishes go over. An unknown one, which only a newer hub can have stored, is the default."""
    if wishes.preset == "cloudevents" and wishes.ordering in (Ordering.KEY, Ordering.STRICT):
        return CLOUDEVENTS_ORDERED
    return _BY_NAME.get(wishes.preset, DEFAULT)
