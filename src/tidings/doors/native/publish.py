"""The native hot path: `POST /api/topics/{name}/events` as a bare ASGI application. 202 means that every event is durable.

Reads the body within its limit, hands the events to the intake, answers. Every refusal is problem+json. No framework stands in
between: each costs more than the whole rest.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from http import HTTPStatus

from tidings.access.authentication import address_of
from tidings.access.cross_origin import refuse_strangers
from tidings.doors.api_parts import ApiParts
from tidings.doors.requests.query_parameters import refuse_unknown
from tidings.errors import TidingsError
from tidings.ids import random_id
from tidings.ingest.admission import Admission, Arrival, check_publisher, events_of
from tidings.ingest.avro_payloads import version_in
from tidings.ingest.intake import Submission
from tidings.log.position import Position
from tidings.problems import problem_of, unexpected
from tidings.server.asgi import ClientLeft, Receive, Scope, Send, answer, answer_problem, read_body
from tidings.server.http_protocol import CYCLE, answer_at_once

_JSON = (b"content-type", b"application/json")
_ACCEPTED = b"HTTP/1.1 202 Accepted\r\ncontent-type: application/json\r\n"

logger = logging.getLogger("tidings.ingest")


class NativePublish:
    """Answers publish requests of the native door."""

    def __init__(self, parts: ApiParts) -> None:
        self._parts = parts
        self._intake = parts.intake

    async def __call__(self, scope: Scope, receive: Receive, send: Send, topic: str) -> None:
        """Answer one publish request."""
        began = self._parts.clock.monotonic()
        try:
            admission, count, positions = await self._published(scope, receive, topic)
        except TidingsError as error:
            self._intake.refuse(error.code)
            await answer_problem(send, problem_of(error, scope["path"]))
        except ClientLeft:
            self._intake.refuse("client-left")
        except Exception:
            logger.exception("publishing to %s failed", topic)
            self._intake.refuse("internal")
            await answer_problem(send, unexpected(scope["path"]))
        else:
            self._intake.count(admission, count, len(positions), self._parts.clock.monotonic() - began)
            receipt = _receipt(count, positions)
            cycle = scope.get(CYCLE)
            if cycle is None or not answer_at_once(cycle, _ACCEPTED, receipt):
                await answer(send, HTTPStatus.ACCEPTED, [_JSON], receipt)

    async def _published(self, scope: Scope, receive: Receive, topic: str) -> tuple[Admission, int, Sequence[Position]]:
        parts, headers = self._parts, scope["headers"]
        if parts.trusting:
            refuse_strangers(headers)
        by = parts.gate.identify_cached(headers) or await parts.gate.identify(headers, address_of(scope))
        if scope["query_string"]:
            refuse_unknown((scope["query_string"].decode("latin-1").partition("=")[0],), ())
        admission = self._intake.admission(topic)
        check_publisher(admission, by)
        body = await read_body(headers, receive, admission.largest_body, parts.body_budget)
        arrival = Arrival(by, parts.clock.now(), headers, body, random_id)
        events = events_of(admission, arrival)
        version = None if admission.avro is None else version_in(headers)
        submission = Submission(admission, events, arrival.at, schema_version=version)
        return admission, len(events), await self._intake.accept(submission)


def _receipt(count: int, positions: Sequence[Position]) -> bytes:
    if not positions:
        return b'{"accepted":%d}' % count
    first, last = positions[0], positions[-1]
    return b'{"accepted":%d,"first":"%d-%d","last":"%d-%d"}' % (count, *first, *last)
