"""What the door's resources share: who asks, the body of a request, answers and refusals."""

from __future__ import annotations

import logging
from typing import Annotated, Any, TypeVar

import msgspec
from fastapi import Depends, Request

from tidings.access.cross_origin import refuse_strangers
from tidings.doors.api_parts import ApiParts
from tidings.doors.door import reserved_words
from tidings.doors.horizon.callers import Client, entered, identified
from tidings.doors.horizon.documents.apply_results import HubAddress
from tidings.doors.horizon.documents.environment import Shelf
from tidings.doors.horizon.documents.settings import DocumentSettings
from tidings.doors.horizon.refusals import mistake, plain_refusal, refusal_of
from tidings.doors.requests.error_form import ErrorForm
from tidings.doors.requests.shape_faults import decoded
from tidings.errors import UnsupportedFormat
from tidings.events.content_types import essence_of
from tidings.events.headers import content_type_of
from tidings.server.asgi import BodyBudget, read_body

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


FORM = ErrorForm(
    logging.getLogger("tidings.horizon"),
    of=lambda error, path: refusal_of(error),
    plain=lambda status, detail, path: plain_refusal(status, detail),
    mistake=lambda path: mistake(),
)
