"""Topics as Hermes' documents describe them (HER-28 to HER-37): read, checked, and what each comes to in the core. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tidings.doors.hermes.documents.fields import Fields, fields_of, refuse_faults
from tidings.doors.hermes.documents.owners import owner
from tidings.doors.hermes.names import AVRO, CONTENT, JSON, LARGEST, UNCHECKED_BODY, topic_name, topic_path, word_fault
from tidings.doors.hermes.refusals import ErrorCode, refused
from tidings.errors import Malformed
from tidings.events import json_text
from tidings.events.avro.schema import compiled
from tidings.events.schema import Schema
from tidings.registry.avro import AvroPayload, AvroVersion
from tidings.registry.model import Exposure, Topic

MOST_BYTES = 2_097_152
SMALLEST_LIMIT, USUAL_LIMIT = 1024, 51_200
ANONYMOUS = "anonymous"
"""The name of whoever asks a hub with open access."""

UNITS: Mapping[str, float] = {"SECONDS": 1.0, "MINUTES": 60.0, "HOURS": 3600.0, "DAYS": 86400.0}
LONGEST_DAYS = 3650

_KEPT = (
    "labels",
    "chaos",
    "offlineStorage",
    "fallbackToRemoteDatacenterEnabled",
    "schemaIdAwareSerializationEnabled",
    "jsonToAvroDryRun",
)
"""Stored and returned, without effect (HER-35)."""


def topic_document(raw: object) -> dict[str, Any]:
    """A topic's document, checked, with every default; the schema is left out. Raises HermesRefused."""
    fields = fields_of(raw, "Topic")
    name = fields.text("name", needed=True)
    fault = name and (word_fault(name) or ("" if topic_path(name) else "must be group.topic"))
    if fault:
        fields.fault("name", fault)
    document = {
        "name": name,
        "description": fields.text("description", needed=True),
        "owner": owner(fields),
        "retentionTime": _retention(fields),
        "contentType": fields.word("contentType", (JSON, AVRO), ""),
        "ack": fields.word("ack", ("NONE", "LEADER", "ALL"), "LEADER"),
        "trackingEnabled": fields.flag("trackingEnabled"),
        "maxMessageSize": fields.whole("maxMessageSize", SMALLEST_LIMIT, MOST_BYTES, USUAL_LIMIT),
        "auth": _auth(fields.below("auth")),
        "subscribingRestricted": fields.flag("subscribingRestricted"),
        "migratedFromJsonType": fields.flag("migratedFromJsonType"),
        "validationEnabled": fields.flag("validationEnabled", True),
        "labels": [],
        **{kept: value for kept in _KEPT if (value := fields.raw.get(kept)) is not None},
    }
    if not document["contentType"]:
        fields.fault("contentType", "must not be null")
    refuse_faults(fields)
    return document


def _retention(fields: Fields) -> dict[str, Any]:
    member = fields.below("retentionTime", needed=True)
    unit = member.word("retentionUnit", tuple(UNITS), "DAYS")
    most = int(LONGEST_DAYS * UNITS["DAYS"] / UNITS[unit])
    needed = fields.raw.get("retentionTime") is not None and member.raw.get("duration") is None
    if needed:
        member.fault("duration", "must not be null")
    return {"duration": member.whole("duration", 0, most, 1), "retentionUnit": unit}


def _auth(fields: Fields) -> dict[str, Any]:
    return {
        "publishers": fields.texts("publishers"),
        "enabled": fields.flag("enabled"),
        "unauthenticatedAccessEnabled": fields.flag("unauthenticatedAccessEnabled", True),
    }


def schema_text(raw: object) -> str | None:
    """The schema that comes with a topic: a text, or JSON written plainly."""
    value = raw.get("schema") if isinstance(raw, dict) else None
    if value is None or isinstance(value, str):
        return value or None
    return msgspec.json.encode(value).decode()


def json_schema(text: str) -> Mapping[str, Any]:
    """The JSON schema that a text holds. Raises HermesRefused."""
    try:
        value = json_text.parse(text.encode())
        if isinstance(value, dict):
            Schema.compiled(value)
            return value
    except Malformed as error:
        raise refused(ErrorCode.SCHEMA_BAD_REQUEST, f"Topic.schema is not a JSON schema: {error}") from error
    raise refused(ErrorCode.SCHEMA_BAD_REQUEST, "Topic.schema must be a JSON schema: an object")


def avro_versions(text: str | None) -> AvroPayload:
    """The Avro schema of a topic, as the registry takes a new version. Raises HermesRefused (HER-30)."""
    if text is None:
        raise refused(ErrorCode.VALIDATION_ERROR, "Topic.schema must not be null: an Avro topic needs its schema")
    try:
        fault = compiled(text).metadata_fault
    except Malformed as error:
        raise refused(ErrorCode.SCHEMA_BAD_REQUEST, f"Topic.schema {error}") from error
    if fault:
        raise refused(ErrorCode.AVRO_SCHEMA_INVALID_METADATA, f"Topic.schema {fault}")
    return AvroPayload(versions=(AvroVersion(0, text),))


def core_topic(document: Mapping[str, Any], schema: str | None) -> Topic:
    """What a topic's document comes to, with the text of its schema. Raises HermesRefused where that is none."""
    avro = document["contentType"] == AVRO
    # A topic without validation keeps its schema, and it must be one all the same.
    checked = None if avro or schema is None else json_schema(schema)
    time = document["retentionTime"]
    labels = {CONTENT: document["contentType"], LARGEST: str(document["maxMessageSize"])}
    if not document["validationEnabled"]:
        labels[UNCHECKED_BODY] = "true"
    return Topic(
        name=topic_name(document["name"]),
        description=document["description"],
        retention=max(1.0, time["duration"] * UNITS[time["retentionUnit"]]),
        max_event_bytes=MOST_BYTES + (64 << 10),
        duplicates="off",
        schema=None if UNCHECKED_BODY in labels else checked,
        avro=avro_versions(schema) if avro else None,
        labels=labels,
    )


def core_exposure(document: Mapping[str, Any]) -> Exposure:
    """Who may publish to a topic (HER-34)."""
    auth, name = document["auth"], topic_name(document["name"])
    if not auth["enabled"]:
        return Exposure(topic=name)
    listed = [*auth["publishers"], *([ANONYMOUS] if auth["unauthenticatedAccessEnabled"] else [])]
    return Exposure(topic=name, publishers=tuple(dict.fromkeys(one for one in listed if one)))
