"""Subscription policies (HER-49 to HER-61): fields with their defaults and ranges, and what they come to in the core. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tidings.doors.hermes.documents.fields import Fields
from tidings.registry.delivery_options import BatchForm, DeliveryOptions, Tracking

SERIAL, BATCH = "SERIAL", "BATCH"
TRACKING: Mapping[str, Tracking] = {
    "trackingAll": Tracking.ALL,
    "discardedOnly": Tracking.DISCARDED,
    "trackingOff": Tracking.OFF,
}

_MOST = (1 << 31) - 1
_SHORTEST_WAIT = 0.001
_MOST_RATE, _MOST_INFLIGHT, _LONGEST_TTL = 100_000, 10_000, 30 * 86_400


def serial_policy(fields: Fields) -> dict[str, Any]:
    """The policy of single messages."""
    policy = {
        "rate": fields.whole("rate", 1, _MOST, 400),
        "messageTtl": fields.whole("messageTtl", 0, 7200, 3600),
        "messageBackoff": fields.whole("messageBackoff", 0, _MOST, 100),
        "requestTimeout": fields.whole("requestTimeout", 100, 300_000, 1000),
        "socketTimeout": fields.whole("socketTimeout", 0, 300_000, 0),
        "sendingDelay": fields.whole("sendingDelay", 0, 5000, 0),
        "backoffMultiplier": fields.number("backoffMultiplier", 1, 10, 1.0),
        "backoffMaxIntervalInSec": fields.whole("backoffMaxIntervalInSec", 1, 600, 600),
        "retryClientErrors": fields.flag("retryClientErrors"),
    }
    # As seen (section 11): absent unless it was set.
    if fields.raw.get("inflightSize") is not None:
        policy["inflightSize"] = fields.whole("inflightSize", 1, _MOST, 100)
    return {**policy, "backoffMaxIntervalMillis": policy["backoffMaxIntervalInSec"] * 1000}


def batch_policy(fields: Fields) -> dict[str, Any]:
    """The policy of batches."""
    return {
        "messageTtl": fields.whole("messageTtl", 0, _MOST, 60),
        "retryClientErrors": fields.flag("retryClientErrors"),
        "messageBackoff": fields.whole("messageBackoff", 0, _MOST, 500),
        "requestTimeout": fields.whole("requestTimeout", 1, _MOST, 30_000),
        "batchSize": fields.whole("batchSize", 1, _MOST, 100),
        "batchTime": fields.whole("batchTime", 1, _MOST, 30_000),
        "batchVolume": fields.whole("batchVolume", 1, _MOST, 64_000),
        "batchFormat": fields.word("batchFormat", ("wrapped", "plain"), "wrapped"),
    }


def delivery_options(document: Mapping[str, Any]) -> dict[str, Any]:
    """The core's delivery options that a subscription's document asks for, as keyword arguments."""
    policy, options = document["subscriptionPolicy"], _batch if document["deliveryType"] == BATCH else _serial
    tracking = TRACKING[document["trackingMode"]]
    return {**msgspec.structs.asdict(options(policy)), "tracking": tracking}


def _serial(policy: Mapping[str, Any]) -> DeliveryOptions:
    longest = float(policy["backoffMaxIntervalInSec"])
    return DeliveryOptions(
        preset="hermes",
        attempt_timeout=policy["requestTimeout"] / 1000,
        # The first wait is capped too (HER-98).
        retry_first=min(longest, max(_SHORTEST_WAIT, policy["messageBackoff"] / 1000)),
        retry_max=longest,
        retry_factor=policy["backoffMultiplier"],
        retry_lifetime=float(policy["messageTtl"]),
        retry_client_errors=policy["retryClientErrors"],
        inflight=min(_MOST_INFLIGHT, policy.get("inflightSize", 100)),
        sending_delay=policy["sendingDelay"] / 1000,
        rate=float(min(_MOST_RATE, policy["rate"])),
    )


def _batch(policy: Mapping[str, Any]) -> DeliveryOptions:
    wait = min(7 * 86_400.0, max(_SHORTEST_WAIT, policy["messageBackoff"] / 1000))
    return DeliveryOptions(
        preset="hermes-batch",
        attempt_timeout=min(600.0, max(0.1, policy["requestTimeout"] / 1000)),
        retry_first=wait,
        retry_max=wait,
        retry_lifetime=float(min(_LONGEST_TTL, policy["messageTtl"])),
        retry_client_errors=policy["retryClientErrors"],
        batch_size=min(10_000, policy["batchSize"]),
        batch_time=min(3600.0, policy["batchTime"] / 1000),
        batch_bytes=min(16 << 20, policy["batchVolume"]),
        batch_form=BatchForm(policy["batchFormat"]),
    )
