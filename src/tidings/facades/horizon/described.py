"""The door's OpenAPI document: what the framework knows, and the hot path that it does not see."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from tidings.facades.horizon.asking import REFUSALS

_ENVIRONMENT = {"name": "environment", "in": "path", "required": True, "schema": {"type": "string"}}
_EVENT: dict[str, Any] = {
    "type": "object",
    "required": ["id", "type", "source", "specversion"],
    "properties": {
        "id": {"type": "string", "format": "uuid"},
        "type": {"type": "string", "pattern": r"^[a-zA-Z0-9.-]+$"},
        "source": {"type": "string", "minLength": 1},
        "specversion": {"type": "string", "minLength": 1},
        "time": {"type": "string", "format": "date-time"},
        "datacontenttype": {"type": "string"},
        "dataref": {"type": "string"},
        "data": {},
    },
}
PUBLISH: dict[str, Any] = {
    "post": {
        "tags": ["publishing"],
        "summary": "Publish an event",
        "description": "201 with an empty body: the event is durable.",
        "operationId": "publish",
        "parameters": [_ENVIRONMENT],
        "requestBody": {"required": True, "content": {"application/json": {"schema": _EVENT}}},
        "responses": {
            "201": {"description": "Stored."},
            **REFUSALS,
            "504": {"description": "Not stored in time; it may be yet.", "content": {"application/problem+json": {}}},
        },
    },
    "head": {
        "tags": ["publishing"],
        "summary": "Ask for health",
        "operationId": "health",
        "parameters": [_ENVIRONMENT],
        "responses": {"204": {"description": "Well; the header X-Health-Check-Timestamp tells the hub's time."}},
    },
}


def describe(app: FastAPI) -> None:
    """Have the application's OpenAPI document tell of publishing too."""
    plain = app.openapi

    def whole() -> dict[str, Any]:
        document = plain()
        document["paths"].setdefault("/v1/{environment}/events", PUBLISH)
        return document

    app.openapi = whole  # type: ignore[method-assign]
