"""ASGI without a framework: the types, bodies read within their limits, plain answers. For the hot paths of all doors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from tidings.errors import Overloaded, TooLarge, UnsupportedFormat
from tidings.events.headers import RawHeaders
from tidings.problems import Problem

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


class BodyBudget:
    """Bounds the memory for bodies that arrive in pieces, over all requests. Belongs to one event loop."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = 0

    def take(self, size: int) -> None:
        """Raises Overloaded when there is no room for so many more bytes."""
        if self._held + size > self._limit:
            raise Overloaded("too many bodies are being read", expected=f"at most {self._limit} bytes at the same time")
        self._held += size

    def give_back(self, size: int) -> None:
        self._held -= size


class ClientLeft(Exception):
    """The client has closed the connection; nobody is left to answer."""


async def read_body(headers: RawHeaders, receive: Receive, limit: int, budget: BodyBudget) -> bytes:
    """The whole body. Raises TooLarge before more than `limit` bytes are held, UnsupportedFormat for a packed body."""
    for name, value in headers:
        if name == b"content-length" and int(value) > limit:
            raise TooLarge(f"a body of {int(value)} bytes is too large", expected=f"at most {limit}")
        if name == b"content-encoding" and value.lower() != b"identity":
            raise UnsupportedFormat("packed bodies are not read", at="content-encoding", found=value.decode("latin-1"))
    message = await receive()
    body: bytes = message.get("body", b"")
    if message["type"] == "http.request" and not message.get("more_body", False):
        return body
    pieces: list[bytes] = []
    try:
        return await _joined(message, receive, limit, budget, pieces)
    finally:
        budget.give_back(sum(map(len, pieces)))


async def _joined(message: Message, receive: Receive, limit: int, budget: BodyBudget, pieces: list[bytes]) -> bytes:
    left = limit
    while message["type"] == "http.request":
        piece = message.get("body", b"")
        left -= len(piece)
        if left < 0:
            raise TooLarge("the body is too large", expected=f"at most {limit} bytes")
        budget.take(len(piece))
        pieces.append(piece)
        if not message.get("more_body", False):
            return b"".join(pieces)
        message = await receive()
    raise ClientLeft


async def answer(send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes = b"") -> None:
    """Answer with this body; its length is added to the headers."""
    headers.append((b"content-length", b"%d" % len(body)))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def answer_problem(send: Send, problem: Problem) -> None:
    """Answer with a refusal."""
    await answer(send, problem.status, problem.headers(), problem.body())
