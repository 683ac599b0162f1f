"""The door's OpenAPI document: what the framework knows, the hot path and streams that it does not see, and where all stand."""

from __future__ import annotations

from typing import Any, TypeAlias

from fastapi import FastAPI, Request
from starlette.responses import JSONResponse

from tidings.doors.api_parts import ApiParts
from tidings.doors.horizon.resources.request import PROBLEM, REFUSALS
from tidings.doors.horizon.stream.frames import PLAIN
from tidings.doors.sse.response import W3C

Answers: TypeAlias = dict[int | str, dict[str, Any]]

PREFIX = "/horizon"
AS_WRITTEN = (f"{PREFIX}/", "/.well-known/")
"""Paths that stand at the root on every port."""


def _path(name: str, **schema: Any) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", **schema}}


def _query(name: str, about: str, **schema: Any) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": about, "schema": schema}


def _operation(tag: str, id: str, summary: str, parameters: list[Any], answers: Answers, **more: Any) -> dict[str, Any]:
    return {"tags": [tag], "operationId": id, "summary": summary, "parameters": parameters, "responses": answers, **more}


_ENVIRONMENT = _path("environment")
_SUBSCRIPTION = _path("subscription", pattern="^[0-9a-f]{40}$")
_TYPE = _path("eventType", pattern="^[a-zA-Z0-9.-]+$")
_HEALTHY: Answers = {"204": {"description": "Well; the header X-Health-Check-Timestamp tells the hub's time."}}
_EVENT: dict[str, Any] = {
    "type": "object",
    "required": ["id", "type", "source", "specversion"],
    "anyOf": [{"required": ["data"]}, {"required": ["dataref"]}],
    "properties": {
        "id": {
            "type": "string",
            "pattern": "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}$",
        },
        "type": {"type": "string", "pattern": "^[a-zA-Z0-9.-]+$"},
        "source": {"type": "string", "pattern": "[!-~]"},
        "specversion": {"type": "string", "pattern": "[!-~]"},
        "time": {"type": "string", "format": "date-time"},
        "datacontenttype": {"type": "string"},
        "dataref": {"type": "string", "pattern": "[!-~]"},
        "data": {"type": ["object", "array", "string", "number", "boolean"]},
    },
}
_LIMITS = [
    _query("maxNumber", "End after so many events; 0: never.", type="integer", minimum=0, maximum=10**15 - 1),
    _query("maxBytes", "End after so many bytes; 0: never.", type="integer", minimum=0, maximum=10**15 - 1),
    _query("maxMinutes", "End after so many minutes; 0: never.", type="number", minimum=0, maximum=10**9 - 1),
    _query("includeHttpHeaders", "Show the publisher's headers.", type="boolean"),
    _query("lastEventId", "As the header Last-Event-ID, for pages that cannot send one.", type="string"),
    _query("ticket", "Stands for a token, once.", type="string"),
    {"name": "Last-Event-ID", "in": "header", "description": "Go on after this message.", "schema": {"type": "string"}},
]
_STREAMED: Answers = {
    "200": {"description": "Events as they come.", "content": {W3C: {}, PLAIN: {}}},
    **REFUSALS,
    "504": {"description": "Nothing came for sse.idle.", "content": PROBLEM},
}


def _publishing(id: str, *parameters: dict[str, Any]) -> dict[str, Any]:
    body = {"required": True, "content": {"application/json": {"schema": _EVENT}}}
    answers: Answers = {
        "201": {"description": "Stored."},
        **REFUSALS,
        "504": {"description": "Not stored in time; it may be yet.", "content": PROBLEM},
    }
    about = "201 with an empty body: the event is durable."
    summary, given = "Publish an event", list(parameters)
    return {
        "post": _operation("publishing", id, summary, given, answers, description=about, requestBody=body),
        "head": _operation("publishing", f"{id}-health", "Ask for health", given, _HEALTHY),
    }


def _streaming(id: str, *parameters: dict[str, Any]) -> dict[str, Any]:
    return {"get": _operation("streams", id, "Read events as they come", [*parameters, *_LIMITS], _STREAMED)}


def _done(about: str, *required: str) -> Answers:
    schema = {"type": "object", "required": list(required)}
    return {"200": {"description": about, "content": {"application/json": {"schema": schema}}}, **REFUSALS}


_STREAM = "/v1/{environment}/sse/{subscription}"
_NAMED = [_ENVIRONMENT, _SUBSCRIPTION]
BARE: dict[str, Any] = {
    "/v1/{environment}/events": _publishing("publish", _ENVIRONMENT),
    "/horizon/events/v1": _publishing("publish-default"),
    "/{environment}/horizon/events/v1": _publishing("publish-public", _ENVIRONMENT),
    "/v1/{environment}/sse": {"head": _operation("streams", "streams-health", "Ask for health", [_ENVIRONMENT], _HEALTHY)},
    _STREAM: _streaming("stream", *_NAMED),
    "/horizon/sse/v1/{eventType}/{subscription}": _streaming("stream-default", _TYPE, _SUBSCRIPTION),
    "/{environment}/horizon/sse/v1/{eventType}/{subscription}": _streaming("stream-public", _ENVIRONMENT, _TYPE, _SUBSCRIPTION),
    f"{_STREAM}/terminate": {
        "post": _operation("streams", "terminate", "End the stream, if one is open", _NAMED, _done("Ended.", "terminated"))
    },
    f"{_STREAM}/ticket": {
        "post": _operation("streams", "ticket", "Get a ticket for a page", _NAMED, _done("Good once.", "ticket", "expiresIn"))
    },
}
"""What is answered without the framework."""


def describe(app: FastAPI) -> None:
    """Have the application tell of everything, with addresses that hold on the port where it is asked."""

    @app.get("/openapi.json", include_in_schema=False)
    async def document(request: Request) -> JSONResponse:
        parts: ApiParts = request.app.state.parts
        own = (request.scope.get("server") or ("", 0))[1] == parts.settings.horizon.port
        return JSONResponse(_document(app, own=own))


def _document(app: FastAPI, *, own: bool) -> dict[str, Any]:
    plain = app.openapi()
    paths = {**{path: _whole(path, item) for path, item in plain["paths"].items()}, **BARE}
    if own:
        return {**plain, "paths": paths}
    here = [{"url": "/"}]
    placed = {path: {**item, "servers": here} if _as_written(path) else item for path, item in paths.items()}
    return {**plain, "paths": placed, "servers": [{"url": PREFIX}]}


def _whole(path: str, item: dict[str, Any]) -> dict[str, Any]:
    """With the environment, which is looked up for all operations in one place and thus no parameter of theirs."""
    return {**item, "parameters": [_ENVIRONMENT]} if "{environment}" in path else item


def _as_written(path: str) -> bool:
    return path.startswith((*AS_WRITTEN, f"/{{environment}}{PREFIX}/"))
