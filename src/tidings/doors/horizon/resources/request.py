"""What the door's resources share: who asks, the body of a request, answers and refusals."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Annotated, Any, TypeVar

import msgspec
from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from tidings.access.cross_origin import refuse_strangers
from tidings.doors.allowed_methods import allowed_methods
from tidings.doors.api_parts import ApiParts
from tidings.doors.door import reserved_words
from tidings.doors.horizon.callers import Client, entered, identified
from tidings.doors.horizon.documents.apply_results import HubAddress
from tidings.doors.horizon.documents.environment import Shelf
from tidings.doors.horizon.documents.settings import DocumentSettings
from tidings.doors.horizon.refusals import Refusal, mistake, plain_refusal, refusal_of
from tidings.doors.shape_faults import decoded, faults_of
from tidings.errors import InvalidDocument, TidingsError, UnsupportedFormat
from tidings.events.content_types import essence_of
from tidings.events.headers import content_type_of
from tidings.server.asgi import BodyBudget, ClientLeft, read_body

LARGEST = 4 << 20
BODIES = BodyBudget(16 * LARGEST)
_FORM = "application/x-www-form-urlencoded"

_TEXT = {"type": "string"}
PROBLEM: dict[str, Any] = {
    "application/problem+json": {
        "schema": {
            "type": "object",
            "required": ["type", "title", "status", "detail"],
            "properties": {
                "type": {"const": "about:blank"},
                "title": _TEXT,
                "status": {"type": "integer"},
                "detail": _TEXT,
                "violations": {
                    "type": "array",
                    "items": {"type": "object", "required": ["path", "reason"], "properties": {"path": _TEXT, "reason": _TEXT}},
                },
            },
        }
    }
}
REFUSALS: dict[int | str, dict[str, Any]] = {
    "4XX": {"description": "Refused: `detail` says why, `violations` where.", "content": PROBLEM},
    "503": {"description": "Not possible now; Retry-After says when.", "content": PROBLEM},
}

logger = logging.getLogger("tidings.horizon")

T = TypeVar("T")


def hub_address(parts: ApiParts) -> HubAddress:
    """Where this hub is reached."""
    return HubAddress(parts.settings.hub_url, reserved_words(parts.doors))


class HorizonRequest(msgspec.Struct, frozen=True):
    """One request to the door: its parts, who asks, and the environment where the path names one."""

    parts: ApiParts
    client: Client
    environment: str
    shelf: Shelf
    ground: DocumentSettings


async def _asked(request: Request) -> HorizonRequest:
    parts: ApiParts = request.app.state.parts
    refuse_where_open(request)
    client = await identified(parts, request.scope)
    written = request.path_params.get("environment")
    environment = entered(client, written, parts.settings.horizon) if written is not None else ""
    return HorizonRequest(parts, client, environment, request.app.state.shelf, request.app.state.ground)


def refuse_where_open(request: Request) -> None:
    """With open access, pages from elsewhere are kept out."""
    parts: ApiParts = request.app.state.parts
    if parts.trusting:
        refuse_strangers(request.scope["headers"])


AskedBy = Annotated[HorizonRequest, Depends(_asked)]


async def body_of(request: Request) -> bytes:
    """The body, within its limit."""
    return await read_body(request.scope["headers"], request.receive, LARGEST, BODIES)


async def json_of(request: Request, kind: type[T]) -> T:
    """The JSON body as this kind of value. Raises Malformed or UnsupportedFormat."""
    named = essence_of(content_type_of(request.scope["headers"]))
    if named not in ("", _FORM, "application/json"):
        raise UnsupportedFormat("only JSON is read here", at="content-type", found=named, expected="application/json")
    return decoded(await body_of(request), kind)


def answer_refusal(refusal: Refusal) -> Response:
    """A refusal as a response."""
    headers = {name.decode(): value.decode() for name, value in refusal.headers()}
    return Response(refusal.body(), refusal.status, headers)


def install(app: FastAPI) -> None:
    """Answer every error of this application as Horizon does."""
    app.add_exception_handler(TidingsError, _ours)
    app.add_exception_handler(RequestValidationError, _shape)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(ClientLeft, _left)
    app.add_exception_handler(Exception, _mistake)


async def _ours(request: Request, error: Exception) -> Response:
    assert isinstance(error, TidingsError)
    return answer_refusal(refusal_of(error))


async def _shape(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return answer_refusal(refusal_of(InvalidDocument(faults_of(error.errors()))))


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    detail = f"there is nothing at {request.url.path}" if status is HTTPStatus.NOT_FOUND else str(error.detail)
    refused = answer_refusal(plain_refusal(status, detail))
    refused.headers.update(error.headers or {})
    if status is HTTPStatus.METHOD_NOT_ALLOWED:
        # The router names the methods of one route only.
        refused.headers["allow"] = allowed_methods(request)
    return refused


async def _left(request: Request, error: Exception) -> Response:
    """Whoever asked is gone; nobody reads this."""
    return Response(status_code=HTTPStatus.BAD_REQUEST)


async def _mistake(request: Request, error: Exception) -> Response:
    logger.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return answer_refusal(mistake())
