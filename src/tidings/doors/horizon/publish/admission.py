"""May this event be published? Horizon's rules over the core's admission of a topic, and their refusals (HOR-57 to HOR-62)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import msgspec

from tidings.access.principals import Principal, Right
from tidings.doors.horizon.event_json import is_json
from tidings.doors.horizon.names import PREFIX, ROVER, SPECIFIED, paper_name, topic_name
from tidings.doors.horizon.publish.event_fields import violations
from tidings.doors.horizon.refusals import Refusal
from tidings.errors import EventFault, InvalidEvent, Malformed, NotFound
from tidings.events import json_text
from tidings.ingest.admission import UNCHECKED, Admission
from tidings.ingest.intake import Intake
from tidings.registry.model import Name, Paper
from tidings.registry.rules import listed

NOT_VALID = "Event did not pass the validation."
NOT_FOUND = "The event type {type} could not be found."
NOT_OWNED = "The event type does not belong to publisher with id '{client}'"
OTHER_ZONE = "{client} is listed as additional publisher, but it is in the zone {zone}, and the type is exposed in {wanted}"
NOT_SCHEMA = "Event of type {type} with id {id} does not comply with the given schema."
TOO_LARGE = "The payload is too large to be published"
WRONG_REALM = "Realm {realm} does not match environment {environment}."


def admission_to(intake: Intake, environment: str, event_type: str) -> Admission | Refusal:
    """What a type asks of its publishers, or why there is nothing to publish to (HOR-60, HOR-174)."""
    missing = NOT_FOUND.format(type=event_type)
    try:
        found = intake.admission(topic_name(environment, event_type))
    except NotFound:
        found = None
    if found is None or found.exposure is None or not found.exposure.owner:
        return Refusal(HTTPStatus.NOT_FOUND, missing, f"{missing} Nobody exposes it in this environment.")
    if SPECIFIED not in found.labels:
        return Refusal(HTTPStatus.NOT_FOUND, missing, f"{missing} It is exposed, but there is no EventSpecification of it.")
    return found


def invalid(members: Mapping[str, Any]) -> Refusal:
    """The refusal of an event whose fields break rules."""
    found = violations(members)
    detail = "; ".join(f"Violation: {field} {reason}" for field, reason in found)
    return Refusal(HTTPStatus.BAD_REQUEST, NOT_VALID, detail, [{"path": field, "reason": reason} for field, reason in found])


def may_publish(admission: Admission, by: Principal) -> bool:
    """Whether the type's document lists this client; a token that names no client needs the right as well (HOR-61)."""
    if Right.ADMIN in by.rights:
        return True
    publishers = () if admission.exposure is None else admission.exposure.publishers
    if by.client_id:
        return listed(by.client_id, publishers)
    return by.may(Right.PUBLISH, admission.name) and listed(by.name, publishers)


def not_owned(client: str, found: Admission, papers: Mapping[Name, Paper]) -> Refusal:
    """The refusal of a client that is neither owner nor additional publisher, or is one of another zone (HOR-21)."""
    told = NOT_OWNED.format(client=client)
    zones = _zones(client, found, papers)
    return Refusal(HTTPStatus.FORBIDDEN, "Forbidden", told if zones is None else f"{told}: {zones}")


def _zones(client: str, found: Admission, papers: Mapping[Name, Paper]) -> str | None:
    """That the client is listed by who exposes the type, but is in another zone; None where it is not so."""
    environment = found.name.namespace.removeprefix(PREFIX)
    owner = "" if found.exposure is None else found.exposure.owner
    own, exposing = (papers.get(paper_name(environment, ROVER, one)) for one in (client, owner))
    if own is None or exposing is None:
        return None
    entries = exposing.text["spec"].get("exposures") or ()
    entry: Mapping[str, Any] = next((one for one in entries if one.get("eventType") == found.name.name), {})
    if client not in (entry.get("additionalPublisherIds") or ()):
        return None
    return OTHER_ZONE.format(client=client, zone=own.text["spec"].get("zone"), wanted=exposing.text["spec"].get("zone"))


def checked_payload(members: Mapping[str, Any]) -> Any:
    """The payload as the type's schema sees it: a text is the JSON in it. UNCHECKED where no schema applies (HOR-62).

    Raises InvalidEvent for a text that holds no JSON.
    """
    data, kind = members.get("data"), members.get("datacontenttype")
    if data is None or not is_json(kind):
        return UNCHECKED
    if not isinstance(data, str):
        return data
    try:
        return json_text.parse(data.encode())
    except Malformed as error:
        raise InvalidEvent([EventFault(0, "data", "schema", f"the text in data is no JSON: {error}", "")]) from error


def against_schema(members: Mapping[str, Any], faults: Sequence[EventFault]) -> Refusal:
    """The refusal of `data` that the type's schema does not allow."""
    title = NOT_SCHEMA.format(type=members["type"], id=members["id"])
    found = [{"path": fault.pointer or "", "reason": fault.detail} for fault in faults]
    detail = "; ".join(f"{one['path'] or 'data'}: {one['reason']}" for one in found)
    return Refusal(HTTPStatus.BAD_REQUEST, title, detail, found)


def size_of(data: Any, raw: bytes, limit: int) -> int:
    """Bytes of `data` as it is written without white space; counted only where that could matter."""
    return len(raw) if len(raw) <= limit else len(msgspec.json.encode(data))
