"""The hot path: `POST /api/topics/{name}/events` as a bare ASGI application. 202 means that every event is durable.

Reads the body within its limit, admits, appends, answers. Every refusal is problem+json. No framework stands in between: each
costs more than the whole rest.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeAlias

from tidings.access.browsers import refuse_strangers
from tidings.access.tokens import Gate, address_of
from tidings.clock import Clock
from tidings.errors import Overloaded, TidingsError, TooLarge, UnsupportedFormat
from tidings.events.headers import RawHeaders
from tidings.ids import NewId
from tidings.ingest.admit import Admission, Admissions, Arrival, check_publisher, drafts_of, events_of
from tidings.ingest.duplicates import Checked, DuplicateCheck
from tidings.ingest.protocol import CYCLE, answer_at_once
from tidings.ingest.tally import Tally
from tidings.log.port import LogWriter
from tidings.log.position import Position
from tidings.problems import Problem, problem_of, unexpected

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

_JSON = (b"content-type", b"application/json")
_ACCEPTED = b"HTTP/1.1 202 Accepted\r\ncontent-type: application/json\r\n"

logger = logging.getLogger("tidings.ingest")


class Room:
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
    """Whoever asked is gone; nobody is left to answer."""


@dataclass(frozen=True, slots=True)
class IngestParts:
    """What the hot path works with. `trusting`: access is open, so pages from elsewhere are kept out."""

    admissions: Admissions
    gate: Gate
    log: LogWriter
    duplicates: DuplicateCheck
    clock: Clock
    new_id: NewId
    tally: Tally
    room: Room
    trusting: bool


class Publishing:
    """Takes events into the log. One for all doors: each hands over the name of the topic."""

    def __init__(self, parts: IngestParts) -> None:
        self.parts = parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send, topic: str) -> None:
        """Answer one publish request."""
        began = self.parts.clock.monotonic()
        try:
            admission, count, positions = await self._publish(scope, receive, topic)
        except TidingsError as error:
            self.parts.tally.refused(error.code)
            await answer_problem(send, problem_of(error, scope["path"]))
        except ClientLeft:
            self.parts.tally.refused("client-left")
        except Exception:
            logger.exception("publishing to %s failed", topic)
            self.parts.tally.refused("internal")
            await answer_problem(send, unexpected(scope["path"]))
        else:
            self.parts.tally.published(admission.label, count, self.parts.clock.monotonic() - began)
            if len(positions) < count:
                self.parts.tally.repeated(admission.label, count - len(positions))
            receipt = _receipt(count, positions)
            cycle = scope.get(CYCLE)
            if cycle is None or not answer_at_once(cycle, _ACCEPTED, receipt):
                await _answer(send, HTTPStatus.ACCEPTED, [_JSON], receipt)

    async def _publish(self, scope: Scope, receive: Receive, topic: str) -> tuple[Admission, int, Sequence[Position]]:
        parts, headers = self.parts, scope["headers"]
        if parts.trusting:
            refuse_strangers(headers)
        by = parts.gate.identify_cached(headers) or await parts.gate.identify(headers, address_of(scope))
        admission = parts.admissions.of(topic)
        check_publisher(admission, by)
        body = await read_body(headers, receive, admission.largest_body, parts.room)
        arrival = Arrival(by, parts.clock.now(), headers, body, parts.new_id)
        events = events_of(admission, arrival)
        drafts = drafts_of(admission, events, arrival.at)
        if not drafts:
            return admission, 0, ()
        if admission.window is None:
            return admission, len(events), await parts.log.append(drafts)
        checked = Checked(admission.number, admission.window, events, drafts)
        return admission, len(events), await parts.duplicates.append(checked)


async def read_body(headers: RawHeaders, receive: Receive, limit: int, room: Room) -> bytes:
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
        return await _joined(message, receive, limit, room, pieces)
    finally:
        room.give_back(sum(map(len, pieces)))


async def _joined(message: Message, receive: Receive, limit: int, room: Room, pieces: list[bytes]) -> bytes:
    left = limit
    while message["type"] == "http.request":
        piece = message.get("body", b"")
        left -= len(piece)
        if left < 0:
            raise TooLarge("the body is too large", expected=f"at most {limit} bytes")
        room.take(len(piece))
        pieces.append(piece)
        if not message.get("more_body", False):
            return b"".join(pieces)
        message = await receive()
    raise ClientLeft


def _receipt(count: int, positions: Sequence[Position]) -> bytes:
    if not positions:
        return b'{"accepted":%d}' % count
    first, last = positions[0], positions[-1]
    return b'{"accepted":%d,"first":"%d-%d","last":"%d-%d"}' % (count, *first, *last)


async def answer_problem(send: Send, problem: Problem) -> None:
    """Answer with a refusal."""
    await _answer(send, problem.status, problem.headers(), problem.body())


async def _answer(send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    headers.append((b"content-length", b"%d" % len(body)))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
