"""May this event be published? What a type asks of its publishers, made once per revision of the registry (HOR-57 to HOR-62)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import msgspec

from tidings.access.principals import Principal, Right
from tidings.errors import Malformed
from tidings.events import jsontext
from tidings.events.horizon import is_json
from tidings.events.schema import Schema
from tidings.facades.horizon.fields import violations
from tidings.facades.horizon.names import SPECIFIED, topic_name
from tidings.facades.horizon.refusals import Refusal
from tidings.log.position import TopicNumber
from tidings.registry.model import Name, Snapshot
from tidings.registry.rules import listed

NOT_VALID = "Event did not pass the validation."
NOT_FOUND = "The event type {type} could not be found."
NOT_OWNED = "The event type does not belong to publisher with id '{client}'"
NOT_SCHEMA = "Event of type {type} with id {id} does not comply with the given schema."
TOO_LARGE = "The payload is too large to be published"
WRONG_REALM = "Realm {realm} does not match environment {environment}."


@dataclass(frozen=True, slots=True)
class Admitted:
    """A type that can be published to, and by whom."""

    name: Name
    label: str
    number: TopicNumber
    publishers: tuple[str, ...]
    schema: Schema | None


class Admissions:
    """The types of all environments, made when first asked for and kept until the registry has another revision."""

    def __init__(self, current: Callable[[], Snapshot]) -> None:
        self._current = current
        self._snapshot: Snapshot | None = None
        self._made: dict[tuple[str, str], Admitted | Refusal] = {}

    def of(self, environment: str, event_type: str) -> Admitted | Refusal:
        """The type, or why there is nothing to publish to (HOR-60, HOR-174)."""
        snapshot = self._current()
        if snapshot is not self._snapshot:
            self._snapshot, self._made = snapshot, {}
        found = self._made.get((environment, event_type))
        if found is None:
            found = _made(snapshot, topic_name(environment, event_type))
            if isinstance(found, Admitted):
                self._made[environment, event_type] = found
        return found


def _made(snapshot: Snapshot, name: Name) -> Admitted | Refusal:
    topic, exposure = snapshot.topics.get(name), snapshot.exposures.get(name)
    missing = NOT_FOUND.format(type=name.name)
    if topic is None or exposure is None or not exposure.owner:
        return Refusal(HTTPStatus.NOT_FOUND, missing, f"{missing} Nobody exposes it in this environment.")
    if SPECIFIED not in topic.labels:
        return Refusal(HTTPStatus.NOT_FOUND, missing, f"{missing} It is exposed, but there is no EventSpecification of it.")
    schema = None if topic.schema is None else Schema.compiled(topic.schema)
    return Admitted(topic.name, str(topic.name), topic.number, exposure.publishers, schema)


def invalid(members: Mapping[str, Any]) -> Refusal:
    """The refusal of an event whose fields break rules."""
    found = violations(members)
    detail = "; ".join(f"Violation: {field} {reason}" for field, reason in found)
    return Refusal(HTTPStatus.BAD_REQUEST, NOT_VALID, detail, [{"path": field, "reason": reason} for field, reason in found])


def may_publish(admitted: Admitted, by: Principal) -> bool:
    """Whether the type's document lists this client; a token that names no client needs the right as well (HOR-61)."""
    if Right.ADMIN in by.rights:
        return True
    if by.client_id:
        return listed(by.client_id, admitted.publishers)
    return by.may(Right.PUBLISH, admitted.name) and listed(by.name, admitted.publishers)


def not_owned(client: str) -> Refusal:
    """The refusal of a client that is neither owner nor additional publisher."""
    return Refusal(HTTPStatus.FORBIDDEN, "Forbidden", NOT_OWNED.format(client=client))


def schema_refusal(schema: Schema, members: Mapping[str, Any]) -> Refusal | None:
    """The refusal of `data` that the schema does not allow; None when it does, or when it is not checked (HOR-62)."""
    data, kind = members.get("data"), members.get("datacontenttype")
    if data is None or not is_json(kind):
        return None
    if isinstance(data, str):
        try:
            data = jsontext.parse(data.encode())
        except Malformed as error:
            return _against(members, [{"path": "", "reason": f"the text in data is no JSON: {error}"}])
    found = schema.places(data)
    return _against(members, [{"path": place or "", "reason": reason} for place, reason in found]) if found else None


def _against(members: Mapping[str, Any], found: list[dict[str, Any]]) -> Refusal:
    title = NOT_SCHEMA.format(type=members["type"], id=members["id"])
    detail = "; ".join(f"{one['path'] or 'data'}: {one['reason']}" for one in found)
    return Refusal(HTTPStatus.BAD_REQUEST, title, detail, found)


def size_of(data: Any, raw: bytes, limit: int) -> int:
    """Bytes of `data` as it is written without white space; counted only where that could matter."""
    return len(raw) if len(raw) <= limit else len(msgspec.json.encode(data))
