"""What an apply came to, part by part, and documents as they are shown (HOR-13, HOR-167)."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from tidings.doors.horizon.documents.apply_plan import Given
from tidings.doors.horizon.documents.environment import Environment
from tidings.doors.horizon.documents.findings import Finding
from tidings.doors.horizon.documents.rovers import RequestedExposure, Rover
from tidings.doors.horizon.documents.subscriptions import RequestedSubscription
from tidings.doors.horizon.names import ROVER, subscription_id, subscription_name, topic_name
from tidings.doors.horizon.views.states import exposure_state, shown_state, state_of
from tidings.registry.model import Snapshot, Subscription
from tidings.registry.rules.keys import canonical

CREATED, UPDATED, UNCHANGED, DELETED = "created", "updated", "unchanged", "deleted"


def _no_warnings(subscription: Subscription) -> Sequence[str]:
    return ()


class HubAddress(NamedTuple):
    """Where the hub is reached, and the words that begin paths of its own: no environment can stand there."""

    url: str
    taken: Container[str]


class Telling(msgspec.Struct, frozen=True):
    """What results are told from: the documents before and after, the core after, and where the hub is reached.

    `warnings_about` tells what will keep a subscription's deliveries from arriving. `was` is the core before.
    """

    before: Environment
    after: Environment
    now: Snapshot
    hub: HubAddress
    warnings_about: Callable[[Subscription], Sequence[str]] = _no_warnings
    was: Snapshot | None = None


def sse_url(hub: HubAddress, environment: str, event_type: str, subscription: str) -> str:
    """Where a subscription is streamed (HOR-03)."""
    url = hub.url
    if environment in hub.taken:
        return f"{url}/horizon/v1/{environment}/sse/{subscription}"
    virtual = "" if environment == "default" else f"/{environment}"
    return f"{url}{virtual}/horizon/sse/v1/{event_type}/{subscription}"


def document_result(one: Given, standing: bool, same: bool, telling: Telling) -> dict[str, Any]:
    """What became of one document, and of each of its parts."""
    result = UNCHANGED if same else UPDATED if standing else CREATED
    shown: dict[str, Any] = {"kind": one.kind, "name": one.name, "result": result}
    parts: list[dict[str, Any]] = []
    if one.kind == ROVER:
        assert isinstance(one.wish, Rover)
        shown["clientId"] = one.key
        parts = [*_exposures(one, one.wish, telling), *_subscriptions(one, one.wish, telling), *_gone(one, telling)]
    if result == UNCHANGED and any(part["result"] != UNCHANGED for part in parts):
        # The same words, and yet something else stands now: others have changed what it rests on.
        shown["result"] = UPDATED
    told = {place for part in parts for place in part.get("warnings", ())}
    warnings = [sentence for place in one.findings.warnings if (sentence := _sentence(place)) not in told]
    return {**shown, "parts": parts, "warnings": warnings}


def _exposures(one: Given, wish: Rover, telling: Telling) -> Iterator[dict[str, Any]]:
    for exposure in wish.exposures:
        was = telling.before.exposure(one.key, exposure.event_type)
        topic = topic_name(telling.after.environment, exposure.event_type)
        state = exposure_state(telling.now, telling.now.exposures[topic])
        offered = telling.was.exposures.get(topic) if telling.was is not None else None
        flipped = telling.was is not None and offered is not None and exposure_state(telling.was, offered) != state
        result = _compared(was, exposure, flipped)
        part = {"kind": "exposure", "path": exposure.path, "eventType": exposure.event_type, "result": result}
        yield {**part, **shown_state(state), "warnings": _below(exposure.path, one.findings.warnings)}


def _subscriptions(one: Given, wish: Rover, telling: Telling) -> Iterator[dict[str, Any]]:
    for subscription in wish.subscriptions:
        was = telling.before.subscription(one.key, subscription.event_type)
        shown = _subscription(one.key, subscription, telling)
        stored = telling.now.subscriptions[subscription_name(telling.after.environment, shown["subscriptionId"])]
        part = {
            "kind": "subscription",
            "path": subscription.path,
            "eventType": subscription.event_type,
            "result": _compared(was, subscription, _flipped(stored, telling)),
            **shown,
        }
        unreachable = [f"{subscription.path}.callback: {sentence}" for sentence in telling.warnings_about(stored)]
        yield {**part, "warnings": [*_below(subscription.path, one.findings.warnings), *unreachable]}


def _subscription(client: str, wish: RequestedSubscription, telling: Telling) -> dict[str, Any]:
    environment = telling.after.environment
    name = subscription_id(environment, wish.event_type, client)
    state = state_of(telling.now, telling.now.subscriptions[subscription_name(environment, name)])
    streamed = {"sseUrl": sse_url(telling.hub, environment, wish.event_type, name)} if wish.callback is None else {}
    return {"subscriptionId": name, **shown_state(state), **streamed}


def _gone(one: Given, telling: Telling) -> Iterator[dict[str, Any]]:
    was = telling.before.rovers.get(one.key)
    for exposure in was.exposures if was else ():
        if telling.after.exposure(one.key, exposure.event_type) is None:
            yield {"kind": "exposure", "eventType": exposure.event_type, "result": DELETED}
    for subscription in was.subscriptions if was else ():
        if telling.after.subscription(one.key, subscription.event_type) is None:
            name = subscription_id(telling.after.environment, subscription.event_type, one.key)
            yield {
                "kind": "subscription",
                "eventType": subscription.event_type,
                "result": DELETED,
                "subscriptionId": name,
            }


def shown_rover(client: str, raw: dict[str, Any], telling: Telling) -> dict[str, Any]:
    """A Rover as it was written, with what the hub knows of it."""
    return {**raw, "status": rover_status(client, telling)}


def rover_status(client: str, telling: Telling) -> dict[str, Any]:
    """Where an application's exposures and subscriptions stand."""
    # What was taken under other settings may not be readable now.
    wish = telling.after.rovers.get(client, Rover(application="", zone=""))
    return {
        "clientId": client,
        "exposures": [_exposure_status(one, telling) for one in wish.exposures],
        "subscriptions": [{"eventType": one.event_type, **_subscription(client, one, telling)} for one in wish.subscriptions],
    }


def _exposure_status(wish: RequestedExposure, telling: Telling) -> dict[str, Any]:
    topic = topic_name(telling.after.environment, wish.event_type)
    return {"eventType": wish.event_type, **shown_state(exposure_state(telling.now, telling.now.exposures[topic]))}


def _flipped(subscription: Subscription, telling: Telling) -> bool:
    """Whether the state of a subscription is another than before."""
    former = telling.was.subscriptions.get(subscription.name) if telling.was is not None else None
    if former is None or telling.was is None:
        return False
    return state_of(telling.was, former).word != state_of(telling.now, subscription).word


def _compared(was: msgspec.Struct | None, now: RequestedExposure | RequestedSubscription, flipped: bool) -> str:
    if was is None:
        return CREATED
    same = not flipped and canonical(msgspec.structs.replace(was, path="")) == canonical(msgspec.structs.replace(now, path=""))
    return UNCHANGED if same else UPDATED


def _below(path: str, warnings: Sequence[Finding]) -> list[str]:
    return [_sentence(one) for one in warnings if one.path == path or one.path.startswith((f"{path}.", f"{path}["))]


def _sentence(place: Finding) -> str:
    return f"{place.path} {place.reason}" if place.path else place.reason
