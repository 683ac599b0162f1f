"""The door's OpenAPI document: what the framework knows, the hot path that it does not see, and where both stand."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from starlette.responses import JSONResponse

from tidings.doors.api_parts import ApiParts
from tidings.doors.hermes.door import PREFIX
from tidings.doors.hermes.resources.request import REFUSALS

_ID = {"Hermes-Message-Id": {"description": "The message's id, new with every request.", "schema": {"type": "string"}}}
_KEY = {
    "name": "Partition-Key",
    "in": "header",
    "description": "Messages of one key keep their order.",
    "schema": {"type": "string", "pattern": "^[!-~]*$"},
}
_TOPIC = {
    "name": "topic",
    "in": "path",
    "required": True,
    "description": "Its full name, group.topic.",
    "schema": {"type": "string", "pattern": r"^[a-zA-Z0-9_-]+\.[a-zA-Z0-9_-]+$"},
}
_HEALTH = {
    "200": {"description": "It is.", "content": {"text/plain": {"schema": {"type": "string"}}}},
    "503": {"description": "It is not, or not any more.", "content": {"text/plain": {"schema": {"type": "string"}}}},
}

PUBLISH: dict[str, Any] = {
    "tags": ["publishing"],
    "operationId": "publish",
    "summary": "Publish a message",
    "description": "201 with an empty body: the message is durable.",
    "parameters": [_TOPIC, _KEY],
    "requestBody": {"required": True, "content": {"application/json": {"schema": {}}}},
    "responses": {"201": {"description": "Stored.", "headers": _ID}, **REFUSALS},
}


def _health(id: str, about: str) -> dict[str, Any]:
    return {"get": {"tags": ["settings"], "operationId": id, "summary": about, "responses": _HEALTH}}


BARE: dict[str, Any] = {
    "/status/ping": _health("ping", "Is it up?"),
    "/status/health": _health("health", "Is it up?"),
    "/status/ready": _health("ready", "Does it take messages?"),
}
"""What is answered without the framework, publishing aside."""


def describe(app: FastAPI) -> None:
    """Have the application tell of everything, with addresses that hold on the port where it is asked."""

    @app.get("/openapi.json", include_in_schema=False)
    async def document(request: Request) -> JSONResponse:
        parts: ApiParts = request.app.state.parts
        own = (request.scope.get("server") or ("", 0))[1] == parts.settings.hermes.port
        return JSONResponse(_document(app, own=own))


def _document(app: FastAPI, *, own: bool) -> dict[str, Any]:
    plain = app.openapi()
    paths = {**plain["paths"], **BARE}
    paths["/topics/{topic}"] = {**paths["/topics/{topic}"], "post": PUBLISH}
    return {**plain, "paths": paths, **({} if own else {"servers": [{"url": PREFIX}]})}
