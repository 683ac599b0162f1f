"""One entry of a Rover's `subscriptions` (HOR-24 to HOR-38, HOR-171), read into what is to be delivered, and how."""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec

from tidings.doors.horizon.documents.findings import DocumentPart
from tidings.doors.horizon.documents.settings import DocumentSettings
from tidings.doors.horizon.documents.specifications import type_text, version_in
from tidings.doors.horizon.documents.triggers import IN_TRIGGER, consumer_trigger
from tidings.doors.horizon.layout import PayloadForm
from tidings.registry.delivery_options import DeliveryOptions, ProbeMethod
from tidings.registry.model import Scope
from tidings.registry.rules.callback_addresses import SinkRules, sink_fault

MEMBERS = (
    "eventType",
    "deliveryType",
    "payloadType",
    "payload",
    "callback",
    "trigger",
    "scopes",
    "eventRetentionTime",
    "circuitBreakerOptOut",
    "retryableStatusCodes",
    "redeliveriesPerSecond",
    "enforceGetHttpRequestMethodForHealthCheck",
    "deliveryPolicy",
)
POLICY = (
    "maxRetries",
    "backoffMs",
    "backoffMultiplier",
    "backoffMaxMs",
    "connectTimeoutMs",
    "readTimeoutMs",
    "successStatusCodes",
    "healthCheckSuccessStatusCodes",
    "probeIntervalSeconds",
)
RETENTIONS = {"1h": 3600.0, "1d": 86400.0, "3d": 3 * 86400.0, "5d": 5 * 86400.0, "7d": 7 * 86400.0}
SUCCESS = ("200", "201", "202", "204")
RETRYABLE = ("401", "429", "502", "503", "504")

_WAYS = {"callback": "callback", "server_sent_event": "sse", "sse": "sse"}
_PAYLOADS = {"data": PayloadForm.DATA, "dataref": PayloadForm.DATAREF, "data_ref": PayloadForm.DATAREF}
_GUARDED = ("trigger", "scopes")
_UNVERSIONED = "names a type without a version such as v1"


class RequestedSubscription(msgspec.Struct, frozen=True, kw_only=True):
    """What an application subscribes to, and how it wants it. `callback` None: streamed."""

    path: str
    event_type: str
    callback: str | None
    payload: PayloadForm
    trigger: Scope
    scopes: tuple[str, ...]
    retention: float
    wishes: DeliveryOptions


def subscription_wish(place: DocumentPart, ground: DocumentSettings) -> RequestedSubscription | None:
    """What one entry asks for."""
    place.only(MEMBERS, _GUARDED, IN_TRIGGER)
    event_type = type_text(place.member("eventType"))
    if event_type is not None and version_in(event_type) is None:
        place.member("eventType").warn(_UNVERSIONED)
    if not place.member("deliveryType").given:
        place.member("deliveryType").fault("is missing; it is callback or server_sent_event")
    way = place.member("deliveryType").word(_WAYS)
    callback = _callback(place.member("callback"), way, ground.own_urls)
    payload = _payload(place)
    trigger = consumer_trigger(place.member("trigger"), ground.regex, ground.syntax(event_type))
    scopes = place.member("scopes").texts()
    retention: float = place.member("eventRetentionTime").word(RETENTIONS, RETENTIONS["7d"])
    wishes = _wishes(place)
    if event_type is None or way is None:
        return None
    return RequestedSubscription(
        path=place.path,
        event_type=event_type,
        callback=callback if way == "callback" else None,
        payload=payload,
        trigger=trigger,
        scopes=scopes,
        retention=retention,
        wishes=wishes,
    )


def _callback(place: DocumentPart, way: str | None, own_urls: tuple[str, ...]) -> str | None:
    if way == "sse" and place.given:
        place.fault("is only for deliveryType callback")
    if way != "callback":
        return None
    url = place.text()
    if url is None:
        return None
    fault = sink_fault(url, SinkRules(), lambda host: True)
    if fault:
        place.fault(fault)
    elif urlsplit(url).netloc.lower() in own_urls:
        place.fault("is an address of the hub itself")
    return url


def _payload(place: DocumentPart) -> PayloadForm:
    """`payloadType`, which the handbook's table calls `payload` (HOR-26, HOR-171)."""
    named, other = place.member("payloadType"), place.member("payload")
    if not named.given and not other.given:
        named.warn("is missing: data is taken")
    first: PayloadForm | None = named.word(_PAYLOADS)
    second: PayloadForm | None = other.word(_PAYLOADS)
    if first is not None and second is not None and first is not second:
        other.fault("says something else than payloadType")
    return first or second or PayloadForm.DATA


def _wishes(place: DocumentPart) -> DeliveryOptions:
    """The delivery policy: the preset of the documents, with what this subscription wants otherwise."""
    policy = place.member("deliveryPolicy")
    if policy.given and policy.is_object():
        policy.only(POLICY)
    retries = policy.member("maxRetries").number(0, 1000)
    rate = place.member("redeliveriesPerSecond").number(1, 100_000)
    first, longest = _seconds(policy.member("backoffMs"), 1), _seconds(policy.member("backoffMaxMs"), 1)
    if first is not None and longest is not None and first > longest:
        policy.member("backoffMs").fault("is longer than backoffMaxMs")
    get = place.member("enforceGetHttpRequestMethodForHealthCheck").flag()
    well = policy.member("healthCheckSuccessStatusCodes")
    _check_some(well)
    return DeliveryOptions(
        preset="horizon",
        answers=_answers(place, policy),
        tries=None if retries is None else int(retries) + 1,
        retry_first=first,
        retry_max=longest,
        retry_factor=policy.member("backoffMultiplier").number(1, 10, whole=False),
        attempt_timeout=_seconds(policy.member("readTimeoutMs"), 100, 600_000),
        connect_timeout=_seconds(policy.member("connectTimeoutMs"), 100, 600_000),
        breaker=False if place.member("circuitBreakerOptOut").flag() else None,
        probe_method=ProbeMethod.GET if get else None,
        probe_interval=policy.member("probeIntervalSeconds").number(0.1, 86400, whole=False),
        probe_answers=tuple(map(int, _codes(well))) if well.given else None,
        republish_rate=rate,
    )


def _seconds(place: DocumentPart, low: float, high: float = 7 * 86400_000) -> float | None:
    found = place.number(low, high)
    return None if found is None else found / 1000


def _answers(place: DocumentPart, policy: DocumentPart) -> dict[str, str]:
    """What answers mean where it differs from the preset: lists replace the whole list (HOR-35)."""
    answers: dict[str, str] = {}
    retryable, success = place.member("retryableStatusCodes"), policy.member("successStatusCodes")
    _check_some(success)
    again, well = _codes(retryable), _codes(success) if success.given else list(SUCCESS)
    both = [code for code in again if code in well]
    if both:
        retryable.slip(f"lists {', '.join(both)}, which {'are' if len(both) > 1 else 'is'} a success (successStatusCodes)")
    if retryable.given:
        answers |= dict.fromkeys(RETRYABLE, "give-up")
        answers |= dict.fromkeys(again, "wait")
    if success.given:
        answers |= dict.fromkeys(SUCCESS, "give-up")
        answers |= dict.fromkeys(well, "delivered")
    return answers


def _check_some(codes: DocumentPart) -> None:
    """An empty list would mean that no answer is ever right."""
    if codes.given and not codes.raw:
        codes.slip("must list at least one status, such as 200")


def _codes(place: DocumentPart) -> list[str]:
    return [str(int(code)) for item in place.items() if (code := item.number(100, 599)) is not None]
