"""Rover documents: the full wish of one application, what it exposes and what it subscribes to (HOR-12, HOR-19 to HOR-38)."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tidings.doors.horizon.documents.findings import DocumentPart, near_miss
from tidings.doors.horizon.documents.settings import DocumentSettings
from tidings.doors.horizon.documents.specifications import type_text, version_in
from tidings.doors.horizon.documents.subscriptions import RequestedSubscription, subscription_wish
from tidings.doors.horizon.documents.triggers import IN_TRIGGER, TRIGGER, scope_trigger
from tidings.doors.horizon.names import is_word
from tidings.registry.model import ApprovalMode, Scope
from tidings.registry.rules.names import name_fault

LISTS = ("exposures", "subscriptions")
EXPOSURE = ("eventType", "visibility", "additionalPublisherIds", "scopes", "approval", "trustedTeams")
_VISIBILITIES = {"world": "world", "zone": "zone", "enterprise": "enterprise"}
_APPROVALS = {"auto": ApprovalMode.AUTO, "simple": ApprovalMode.MANUAL, "foureyes": ApprovalMode.FOUR_EYES}
_STRATEGY = ("strategy", "trustedTeams")
_SCOPE = ("name", "trigger")
_OF_SCOPES = dict.fromkeys(TRIGGER, "the trigger of a scope") | {"trigger": "a scope"}
_TYPE_WORDS = ("type", "event", "events", "event-name", "eventName")
"""What people write for eventType."""

_UNVERSIONED = "names a type without a version such as v1; its specification would be refused"


class RequestedExposure(msgspec.Struct, frozen=True, kw_only=True):
    """What an application exposes. `path` is its place in the document."""

    path: str
    event_type: str
    visibility: str
    additional: tuple[str, ...] = ()
    scopes: Mapping[str, Scope] = {}
    approval: ApprovalMode = ApprovalMode.MANUAL
    trusted: tuple[str, ...] = ()


class Rover(msgspec.Struct, frozen=True, kw_only=True):
    """An application's whole wish."""

    application: str
    zone: str
    exposures: tuple[RequestedExposure, ...] = ()
    subscriptions: tuple[RequestedSubscription, ...] = ()


def rover(place: DocumentPart, ground: DocumentSettings) -> Rover | None:
    """The wish of this document; None when it has faults, which `place` then holds."""
    name, spec = place.member("metadata").member("name"), place.member("spec")
    application = name.text()
    if application is not None and not is_word(application):
        name.fault("must have letters, digits, dots, dashes and underscores, and begin with a letter or digit")
    if not spec.is_object():
        return None
    _check_lists(spec)
    zone = spec.member("zone").text()
    if zone is not None and not is_word(zone):
        spec.member("zone").fault("must be one word, such as caas")
    exposures = [exposure_wish(item, ground) for item in _events(spec.member("exposures"))]
    subscriptions = [subscription_wish(item, ground) for item in _events(spec.member("subscriptions"))]
    _check_once(spec.member("exposures"), [one.event_type for one in exposures if one])
    _check_once(spec.member("subscriptions"), [one.event_type for one in subscriptions if one])
    if place.findings.faults or application is None or zone is None:
        return None
    return Rover(
        application=application,
        zone=zone,
        exposures=tuple(one for one in exposures if one),
        subscriptions=tuple(one for one in subscriptions if one),
    )


def _check_lists(spec: DocumentPart) -> None:
    """A misspelled list must never mean that everything is to be removed (HOR-169)."""
    for name in spec.raw:
        near = [known for known in LISTS if name != known and _letters_apart(name.lower(), known) <= 2]
        if near and name not in LISTS:
            spec.member(name).fault(f"is not known; did you mean {near[0]}? Nothing was removed")
    spec.only((*LISTS, *(name for name in spec.raw if any(_letters_apart(name.lower(), one) <= 2 for one in LISTS)), "zone"))


def _letters_apart(one: str, other: str) -> int:
    """How many letters must be put in, left out or exchanged."""
    if abs(len(one) - len(other)) > 2:
        return 3
    row = list(range(len(other) + 1))
    for number, letter in enumerate(one, 1):
        before, row[0] = row[0], number
        for place, wanted in enumerate(other, 1):
            before, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, before + (letter != wanted))
    return row[-1]


def _events(entries: DocumentPart) -> list[DocumentPart]:
    """The entries that are about events; plain APIs have a `basePath`, and this hub knows nothing of them.

    Any other entry is refused: passed over as a plain API, it would end what stands.
    """
    found = []
    for item in entries.items():
        if not item.is_object():
            continue
        if "eventType" in item.raw:
            found.append(item)
            continue
        meant = [name for name in item.raw if name in _TYPE_WORDS or near_miss(name, ("eventType",))]
        if meant:
            item.member(meant[0]).slip("is not known here; did you mean eventType? Nothing was removed")
        elif "basePath" in item.raw:
            item.warn("has no eventType and is skipped")
        else:
            item.slip("has no eventType, and no basePath as a plain API has. Nothing was removed")
    return found


def _check_once(entries: DocumentPart, types: list[str]) -> None:
    for event_type in dict.fromkeys(one for one in types if types.count(one) > 1):
        entries.fault(f"names the event type {event_type} {types.count(event_type)} times")


def exposure_wish(place: DocumentPart, ground: DocumentSettings) -> RequestedExposure | None:
    """What one entry of `exposures` asks for."""
    place.only(EXPOSURE, EXPOSURE, _OF_SCOPES)
    event_type = type_text(place.member("eventType"))
    if event_type is not None and version_in(event_type) is None:
        place.member("eventType").warn(_UNVERSIONED)
    visibility: str = place.member("visibility").word(_VISIBILITIES, "enterprise")
    approval, trusted = _approval(place)
    scopes = _scopes(place.member("scopes"), ground, event_type)
    additional = place.member("additionalPublisherIds").texts()
    if any("*" in one for one in additional):
        place.member("additionalPublisherIds").fault("must be client ids, without *")
    if event_type is None:
        return None
    return RequestedExposure(
        path=place.path,
        event_type=event_type,
        visibility=visibility,
        additional=additional,
        scopes=scopes,
        approval=approval,
        trusted=trusted,
    )


def _approval(place: DocumentPart) -> tuple[ApprovalMode, tuple[str, ...]]:
    """`approval: FOUREYES` with `trustedTeams` beside it, or both in one object with `strategy` (HOR-23)."""
    approval = place.member("approval")
    if isinstance(approval.raw, Mapping):
        approval.only(_STRATEGY, _STRATEGY)
        mode: ApprovalMode = approval.member("strategy").word(_APPROVALS, ApprovalMode.MANUAL)
        return mode, (*approval.member("trustedTeams").texts(), *place.member("trustedTeams").texts())
    mode = approval.word(_APPROVALS, ApprovalMode.MANUAL)
    return mode, place.member("trustedTeams").texts()


def _scopes(place: DocumentPart, ground: DocumentSettings, event_type: str | None) -> Mapping[str, Scope]:
    found: dict[str, Scope] = {}
    for item in place.items():
        if not item.is_object():
            continue
        item.only(_SCOPE, _SCOPE, IN_TRIGGER)
        name, trigger = item.member("name"), item.member("trigger")
        text = name.text()
        fault = None if text is None else name_fault(text)
        if fault:
            name.fault(fault)
        if text in found:
            name.fault(f"names the scope {text} a second time")
        if not trigger.given and "trigger" not in item.raw:
            trigger.fault("is missing; a scope without filter has an empty one: {}")
        scope = scope_trigger(trigger, ground.regex, ground.syntax(event_type))
        if text is not None:
            found[text] = scope
    projections = [one.projection for one in found.values() if one.projection is not None]
    if len({(one.mode, one.syntax) for one in projections}) > 1:
        place.fault(
            "must all include or all exclude, with paths written in the same way: what one leaves out, another would add"
        )
    return found
