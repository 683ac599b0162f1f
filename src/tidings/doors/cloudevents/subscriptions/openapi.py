"""The door's OpenAPI document, publishing included."""

from __future__ import annotations

from typing import Any, TypeAlias

from tidings import __version__
from tidings.doors.cloudevents.subscriptions.configuration import LARGEST_BATCH

Json: TypeAlias = dict[str, Any]

_TEXT: Json = {"type": "string"}
_FILLED: Json = {"type": "string", "minLength": 1}
_PAIRS: Json = {
    "type": "object",
    "minProperties": 1,
    "propertyNames": {"pattern": "^[a-z0-9]{1,128}$", "not": {"const": "data"}},
    "additionalProperties": _FILLED,
}
_FILTER: Json = {"$ref": "#/components/schemas/Filter"}


def _only(name: str, schema: Json) -> Json:
    return {"type": "object", "required": [name], "properties": {name: schema}, "additionalProperties": False}


def _content(schema: Json, kind: str = "application/json") -> Json:
    return {kind: {"schema": schema}}


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


_PROBLEM: Json = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "code"],
    "properties": {
        **dict.fromkeys(("type", "title", "detail", "code", "instance"), _TEXT),
        "status": {"type": "integer"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["index", "attribute", "code", "detail"],
                "properties": {"index": {"type": "integer"}, **dict.fromkeys(("attribute", "code", "detail"), _TEXT)},
            },
        },
    },
}
_CREDENTIAL: Json = {
    "type": "object",
    "required": ["credentialtype"],
    "properties": {
        "credentialtype": {"enum": ["ACCESSTOKEN", "REFRESHTOKEN"]},
        "accesstoken": {**_FILLED, "writeOnly": True},
        "accesstokenexpiresutc": {"type": "string", "format": "date-time"},
        "accesstokentype": {**_TEXT, "default": "bearer"},
        "refreshtoken": {**_FILLED, "writeOnly": True},
        "refreshtokenendpoint": {"type": "string", "format": "uri"},
    },
}
_CONFIG: Json = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "topic": {**_TEXT, "description": "Without it, events of every topic of the default namespace are meant."},
        "contentmode": {"enum": ["structured", "binary", "batch"]},
        "batchsize": {"type": "integer", "minimum": 1, "maximum": LARGEST_BATCH, "description": "Only with contentmode batch."},
        "ordering": {"enum": ["parallel", "key", "strict"]},
        "rate": {"type": "integer", "minimum": 1, "description": "Requests a minute at the most."},
        "start": {**_TEXT, "description": "now, first, or a time."},
        "tokenplacement": {"enum": ["header", "query"]},
        "signing": {"enum": ["v1", "v1a", "none"]},
    },
}
_SIGNING: Json = {
    "type": "object",
    "required": ["version"],
    "properties": {
        "version": {"enum": ["v1", "v1a"]},
        "secret": {**_TEXT, "description": "Shown once, in the answer that made it."},
        "publickey": _TEXT,
        "oldkeyuntil": {"type": "string", "format": "date-time"},
    },
}
_WRITTEN: Json = {
    "sink": {"type": "string", "format": "uri", "maxLength": 2048},
    "protocol": {"const": "HTTP"},
    "protocolsettings": {
        "type": "object",
        "properties": {
            "headers": {"type": "object", "additionalProperties": _TEXT},
            "method": {"const": "POST"},
            "signing": {**_ref("Signing"), "readOnly": True},
        },
    },
    "sinkcredential": _ref("SinkCredential"),
    "source": _FILLED,
    "types": {"type": "array", "items": _FILLED, "maxItems": 400},
    "filters": {"type": "array", "items": _FILTER},
    "config": _ref("Config"),
}
_SCHEMAS: Json = {
    "Problem": _PROBLEM,
    "SinkCredential": _CREDENTIAL,
    "Config": _CONFIG,
    "Signing": _SIGNING,
    "Filter": {
        "oneOf": [
            *(_only(name, _PAIRS) for name in ("exact", "prefix", "suffix")),
            *(_only(name, {"type": "array", "minItems": 1, "items": _FILTER}) for name in ("all", "any")),
            _only("not", _FILTER),
            _only("sql", _FILLED),
        ]
    },
    "SubscriptionRequest": {"type": "object", "required": ["sink", "protocol"], "properties": _WRITTEN},
    "Subscription": {
        "type": "object",
        "required": ["id", "sink", "protocol", "protocolsettings", "status"],
        "properties": {
            "id": {"type": "string", "format": "uuid"},
            **_WRITTEN,
            "status": {"enum": ["active", "pending", "unverified", "disabled"]},
            "statusreason": _TEXT,
            "lint": {"type": "array", "items": _TEXT},
        },
    },
    "Event": {
        "type": "object",
        "required": ["specversion", "id", "source", "type"],
        "properties": {"specversion": {"const": "1.0"}, "id": _FILLED, "source": _FILLED, "type": _FILLED},
    },
}
_REFUSALS: Json = {
    status: {"description": about, "content": _content(_ref("Problem"), "application/problem+json")}
    for status, about in (
        ("4XX", "Refused: `errors` tells where and why."),
        ("503", "Not possible now; Retry-After says when."),
    )
}
_ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
_ONE = {"description": "The subscription.", "content": _content(_ref("Subscription"))}
_CREATED = {**_ONE, "headers": {"Location": {"schema": _TEXT}}}
_CONFIRMED: Json = {"type": "object", "required": ["subscription"], "properties": {"subscription": _TEXT}}
_ALLOW = {"200": {"description": "`Allow` lists the methods."}}


def _operation(id: str, summary: str, answers: Json, body: Json | None = None, *, required: bool = True) -> Json:
    given = {} if body is None else {"requestBody": {"required": required, "content": body}}
    return {"operationId": id, "summary": summary, "responses": {**answers, **_REFUSALS}, **given}


def _publishing(id: str, summary: str, *parameters: Json) -> Json:
    body = {
        **_content(_ref("Event"), "application/cloudevents+json"),
        **_content({"type": "array", "items": _ref("Event"), "maxItems": 1000}, "application/cloudevents-batch+json"),
    }
    return {
        "parameters": list(parameters),
        "post": _operation(id, summary, {"202": {"description": "Every event is durable."}}, body),
        "options": {"operationId": f"{id}-consent", "summary": "Ask for consent as another hub", "responses": _ALLOW},
    }


_WANTED = _content(_ref("SubscriptionRequest"))
_PATHS: Json = {
    "/topics/{topic}": _publishing(
        "publish", "Publish to a topic", {"name": "topic", "in": "path", "required": True, "schema": {"type": "string"}}
    ),
    "/events": _publishing("publish-by-type", "Publish to the topic that declares the type"),
    "/subscriptions": {
        "get": _operation(
            "list",
            "List subscriptions",
            {"200": {"description": "A bare array.", "content": _content({"type": "array", "items": _ref("Subscription")})}},
        ),
        "post": _operation("create", "Create a subscription", {"201": _CREATED}, _WANTED),
        "options": {"operationId": "discover", "summary": "Discover methods", "responses": _ALLOW},
    },
    "/subscriptions/{id}": {
        "parameters": [_ID],
        "get": _operation("retrieve", "Retrieve a subscription", {"200": _ONE}),
        "put": _operation("update", "Replace a subscription", {"200": _ONE}, _WANTED),
        "delete": _operation("delete", "Delete a subscription", {"200": _ONE}),
        "options": {"operationId": "discover-one", "summary": "Discover methods", "responses": _ALLOW},
    },
    "/subscriptions/{id}/secret/rotate": {
        "parameters": [_ID],
        "post": _operation(
            "rotate",
            "Make a new signing key",
            {"200": {"description": "The new key; both sign for the grace time.", "content": _content(_ref("Signing"))}},
            _content(
                {"type": "object", "properties": {"grace": {"type": ["string", "number"]}}, "additionalProperties": False}
            ),
            required=False,
        ),
    },
    "/subscriptions/{id}/enable": {
        "parameters": [_ID],
        "post": _operation(
            "enable",
            "Let a disabled subscription go on",
            {"200": _ONE, "202": _ONE},
            _content({"type": "object", "properties": {"from": {"enum": ["stop", "now"]}}, "additionalProperties": False}),
            required=False,
        ),
    },
    "/confirm/{secret}": {
        "parameters": [{"name": "secret", "in": "path", "required": True, "schema": {"type": "string"}}],
        **{
            method: _operation(
                f"confirm-by-{method}",
                "Consent to deliveries",
                {
                    "200": {
                        "description": "Deliveries begin.",
                        "content": _content(
                            {"type": "object", "required": ["subscription"], "properties": {"subscription": _TEXT}}
                        ),
                    }
                },
            )
            for method in ("get", "post")
        },
    },
}


def document(prefix: str) -> Json:
    """The document, with addresses that hold where it is asked: below the prefix, or at the root of the door's own port."""
    servers = {"servers": [{"url": prefix}]} if prefix else {}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Tidings: the CloudEvents door",
            "version": __version__,
            "description": "Publish CloudEvents, and subscribe as the CloudEvents Subscriptions API describes.",
        },
        **servers,
        "paths": _PATHS,
        "components": {"schemas": _SCHEMAS},
    }
