"""What is looked at before FastAPI sees a management request: where it comes from, and a JSON body of a bounded size."""

from __future__ import annotations

from typing import Any

from tidings.access.cross_origin import refuse_strangers
from tidings.errors import TidingsError, UnsupportedFormat
from tidings.events import json_text
from tidings.events.content_types import JSON, essence_of
from tidings.events.headers import content_type_of
from tidings.problems import problem_of
from tidings.server.asgi import BodyBudget, ClientLeft, Message, Receive, Scope, Send, answer_problem, read_body

LARGEST = 4 << 20
_DEEPEST = json_text.MAX_DEPTH + 8
"""A payload of the greatest depth may stand somewhere in a request."""

_WITHOUT_BODY = ("GET", "HEAD", "DELETE", "OPTIONS")

_FORM = "application/x-www-form-urlencoded"
"""What curl says unless told otherwise; nobody sends forms here."""


class Doorstep:
    """Lets a request through once it is known to come from a proper place and its body, if any, is read and is JSON."""

    def __init__(self, app: Any, trusting: bool) -> None:
        self._app = app
        self._trusting = trusting
        self._bodies = BodyBudget(16 * LARGEST)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            if self._trusting:
                refuse_strangers(scope["headers"])
            if scope["method"] not in _WITHOUT_BODY:
                body = await read_body(scope["headers"], receive, LARGEST, self._bodies)
                scope, receive = {**scope, "headers": _as_json(scope["headers"])}, _once(body, receive)
                _check(body)
        except TidingsError as error:
            await answer_problem(send, problem_of(error, scope["path"]))
        except ClientLeft:
            return
        else:
            await self._app(scope, receive, send)


def _as_json(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    kind = essence_of(content_type_of(headers))
    if kind not in ("", _FORM) and not kind.endswith(("/json", "+json")):
        raise UnsupportedFormat("this is not JSON", at="content-type", found=kind, expected=JSON)
    return [*(header for header in headers if header[0] != b"content-type"), (b"content-type", JSON.encode())]


def _check(body: bytes) -> None:
    """Raise Malformed unless it is JSON that everybody behind this door can read."""
    if body.strip():
        json_text.parse(body, _DEEPEST)


def _once(body: bytes, receive: Receive) -> Receive:
    """Gives the body that was read, then whatever comes."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
