"""JSON Schemas of the documents' parts, for editors (HOR-166). The hub's own checks tell more; a test holds both together."""

from __future__ import annotations

from typing import Any

from tidings.doors.horizon.documents.specifications import LONGEST_TYPE
from tidings.doors.horizon.documents.subscriptions import RETENTIONS

DRAFT = "https://json-schema.org/draft/2019-09/schema"

_TYPE = {"type": "string", "pattern": r"^[a-zA-Z0-9][a-zA-Z0-9.-]*$", "maxLength": LONGEST_TYPE}
_VERSIONED = {**_TYPE, "pattern": r"^(?=[a-zA-Z0-9])(?:[a-zA-Z0-9-]*\.)*v[0-9]+(?:\.[a-zA-Z0-9-]*)*$"}
_CODES = {"type": "array", "items": {"type": "integer", "minimum": 100, "maximum": 599}}
_TEXTS = {"type": "array", "items": {"type": "string", "minLength": 1}, "uniqueItems": True}


def _words(*words: str) -> dict[str, Any]:
    """These words in any letter case."""
    letters = ("".join(f"[{c.lower()}{c.upper()}]" if c.isalpha() else c for c in word) for word in words)
    return {"type": "string", "pattern": f"^(?:{'|'.join(letters)})$"}


_TRIGGER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "responseFilter": {"type": "array", "items": {"type": "string", "minLength": 1}},
        "responseFilterMode": _words("include", "exclude"),
        "responseFilterSyntax": _words("dotted", "jsonpath"),
        "selectionFilter": {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}},
        "advancedSelectionFilter": {"$ref": "#/$defs/operator"},
    },
}
_OPERATOR = {"type": "object", "minProperties": 1}


def _number(low: float, high: float, kind: str = "integer") -> dict[str, Any]:
    return {"type": kind, "minimum": low, "maximum": high}


_POLICY: dict[str, Any] = {
    "type": "object",
    "properties": {
        "maxRetries": _number(0, 1000),
        "backoffMs": _number(1, 604_800_000),
        "backoffMultiplier": _number(1, 10, "number"),
        "backoffMaxMs": _number(1, 604_800_000),
        "connectTimeoutMs": _number(100, 600_000),
        "readTimeoutMs": _number(100, 600_000),
        "successStatusCodes": _CODES,
        "healthCheckSuccessStatusCodes": _CODES,
        "probeIntervalSeconds": _number(0.1, 86400, "number"),
    },
}

EXPOSURE: dict[str, Any] = {
    "$schema": DRAFT,
    "title": "An event exposure of a Rover",
    "type": "object",
    "required": ["eventType"],
    "properties": {
        "eventType": _TYPE,
        "visibility": _words("world", "zone", "enterprise"),
        "additionalPublisherIds": _TEXTS,
        "approval": {"anyOf": [_words("auto", "simple", "foureyes"), {"type": "object"}]},
        "trustedTeams": _TEXTS,
        "scopes": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name", "trigger"],
                "properties": {"name": {"type": "string", "minLength": 1}, "trigger": _TRIGGER},
            },
        },
    },
    "$defs": {"operator": _OPERATOR},
}

SUBSCRIPTION: dict[str, Any] = {
    "$schema": DRAFT,
    "title": "An event subscription of a Rover",
    "type": "object",
    "required": ["eventType", "deliveryType"],
    "properties": {
        "eventType": _TYPE,
        "deliveryType": _words("callback", "server_sent_event", "sse"),
        "payloadType": _words("data", "dataref", "data_ref"),
        "payload": _words("data", "dataref", "data_ref"),
        "callback": {"type": "string", "pattern": "^https?://"},
        "trigger": _TRIGGER,
        "scopes": _TEXTS,
        "eventRetentionTime": {"enum": list(RETENTIONS)},
        "circuitBreakerOptOut": {"type": "boolean"},
        "retryableStatusCodes": _CODES,
        "redeliveriesPerSecond": _number(1, 100_000),
        "enforceGetHttpRequestMethodForHealthCheck": {"type": "boolean"},
        "deliveryPolicy": _POLICY,
    },
    "if": {"properties": {"deliveryType": _words("callback")}},
    "then": {"required": ["callback"]},
    "else": {"not": {"required": ["callback"]}},
    "$defs": {"operator": _OPERATOR},
}

SPECIFICATION: dict[str, Any] = {
    "$schema": DRAFT,
    "title": "The spec of an EventSpecification",
    "type": "object",
    "required": ["type", "version", "description"],
    "properties": {
        "type": _VERSIONED,
        "version": {"type": "string", "pattern": "^[0-9]"},
        "description": {"type": "string", "minLength": 1},
        "category": {"type": "string", "pattern": "^[a-z]+$"},
        "specification": {"type": "object", "description": "A JSON Schema, draft 2019-09 unless it says otherwise."},
    },
}

SCHEMAS = {"exposure": EXPOSURE, "subscription": SUBSCRIPTION, "event-specification": SPECIFICATION}
