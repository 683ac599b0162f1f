"""What the door's resources share: who asks and may change what, the body of a request, answers and refusals."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from http import HTTPStatus
from typing import Annotated, Any

import msgspec
from fastapi import Depends, Request
from starlette.responses import Response

from tidings.access.authentication import address_of
from tidings.access.cross_origin import refuse_strangers
from tidings.access.principals import Principal, Right
from tidings.doors import registry_changes
from tidings.doors.api_parts import ApiParts
from tidings.doors.hermes.documents import stored
from tidings.doors.hermes.names import topic_name
from tidings.doors.hermes.refusals import ErrorCode, HermesAnswer, HermesRefused, answer_of, mistake, refused
from tidings.doors.requests.error_form import ErrorForm
from tidings.errors import Malformed
from tidings.events import json_text
from tidings.events.content_types import essence_of
from tidings.events.headers import content_type_of
from tidings.registry.model import Snapshot
from tidings.registry.port import Document, DocumentEnd
from tidings.server.asgi import BodyBudget, read_body

LARGEST = 4 << 20
BODIES = BodyBudget(16 * LARGEST)
READING_ONLY = "the hub's Hermes management is read-only; POST /mode?mode=readWrite ends that"

_TEXT = {"type": "string"}
ERROR: dict[str, Any] = {
    "application/json": {
        "schema": {"type": "object", "required": ["message", "code"], "properties": {"message": _TEXT, "code": _TEXT}}
    }
}
REFUSALS: dict[int | str, dict[str, Any]] = {
    "4XX": {"description": "Refused: `code` is for programs, `message` for people.", "content": ERROR},
    "503": {"description": "Read-only, or not possible now.", "content": ERROR},
}

logger = logging.getLogger("tidings.hermes")


class HermesRequest(msgspec.Struct, frozen=True):
    """One request to the management: the hub's parts, who asks, and the lock of whoever changes documents."""

    parts: ApiParts
    caller: Principal
    changing: asyncio.Lock

    @property
    def snapshot(self) -> Snapshot:
        return self.parts.snapshot

    def require_reading(self) -> None:
        """Raise Forbidden unless the caller may look at documents."""
        if not any(self.caller.may(right) for right in (Right.READ, Right.SUBSCRIBE, Right.PUBLISH)):
            self.caller.require(Right.READ)

    def require_changing(self, topic: str = "") -> None:
        """Raise unless documents can be changed now, by this caller: administrators all, subscribers those of their topics."""
        if topic:
            self.caller.require(Right.SUBSCRIBE, topic_name(topic))
        else:
            self.caller.require(Right.ADMIN)
        if stored.mode(self.snapshot) == stored.READ_ONLY:
            raise refused(ErrorCode.OPERATION_DISABLED, READING_ONLY, HTTPStatus.SERVICE_UNAVAILABLE)

    async def change(self, puts: Sequence[Document], endings: Sequence[DocumentEnd] = ()) -> None:
        """Put documents into force and end others, all or nothing. Called while `changing` is held."""
        await registry_changes.change(self.parts, puts, endings, self.caller.name)


async def _asked(request: Request) -> HermesRequest:
    parts: ApiParts = request.app.state.parts
    if parts.trusting:
        refuse_strangers(request.scope["headers"])
    caller = await parts.gate.identify(request.scope["headers"], address_of(request.scope))
    asked = HermesRequest(parts, caller, request.app.state.changing)
    asked.require_reading()
    return asked


HermesCaller = Annotated[HermesRequest, Depends(_asked)]


async def body_of(request: Request) -> bytes:
    """The body, within its limit."""
    return await read_body(request.scope["headers"], request.receive, LARGEST, BODIES)


async def document_of(request: Request) -> Any:
    """The JSON body. Raises HermesRefused for another content type (HER-04), and for what is not JSON."""
    named = essence_of(content_type_of(request.scope["headers"]))
    if named != "application/json":
        told = f"the content type must be application/json, not {named or 'absent'}"
        raise refused(ErrorCode.OTHER, told, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
    return json_of(await body_of(request))


def json_of(body: bytes) -> Any:
    """The value of a JSON text. Raises FORMAT_ERROR."""
    try:
        return json_text.parse(body)
    except Malformed as error:
        raise refused(ErrorCode.FORMAT_ERROR, str(error)) from error


def told(value: Any, status: HTTPStatus = HTTPStatus.OK, warnings: Sequence[str] = ()) -> Response:
    """An answer in JSON; each warning is a header and a line of the log (HER-08)."""
    return _warned(Response(msgspec.json.encode(value), status, media_type="application/json"), warnings)


def done(status: HTTPStatus = HTTPStatus.OK, warnings: Sequence[str] = ()) -> Response:
    """An answer without a body."""
    return _warned(Response(status_code=status), warnings)


def _warned(response: Response, warnings: Sequence[str]) -> Response:
    for warning in warnings:
        logger.warning("%s", warning)
        response.headers.append("tidings-warning", warning.encode("ascii", "backslashreplace").decode())
    return response


def body_schema(*required: str, **properties: Any) -> dict[str, Any]:
    """What the OpenAPI document says of a body that the door reads itself."""
    known = {name: {"type": "string"} for name in required}
    schema = {"type": "object", "required": list(required), "properties": {**known, **properties}}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def _plain(status: HTTPStatus, detail: str, path: str) -> HermesAnswer:
    """As a running Hermes tells of paths and methods that it does not know."""
    return HermesAnswer(status, f"HTTP {status.value} {status.phrase}", ErrorCode.OTHER)


FORM = ErrorForm(
    logger,
    of=lambda error, path: answer_of(error),
    plain=_plain,
    mistake=lambda path: mistake(),
    own={HermesRefused: lambda error: error.answer},
)
