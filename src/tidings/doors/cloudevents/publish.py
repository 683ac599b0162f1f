"""The door's hot path: events of the HTTP binding into a topic, as a bare ASGI application.

`POST /topics/{topic}` and `POST /events`; 202 with an empty body when every event is durable. Nothing is added to an event and
nothing changed (CE-08). OPTIONS answers hubs that want to deliver here (WH-16).
"""

from __future__ import annotations

import logging
from http import HTTPStatus

from tidings.access.authentication import address_of
from tidings.access.cross_origin import refuse_strangers
from tidings.delivery.push.request.handshake import ORIGIN, consent_to
from tidings.doors.api_parts import ApiParts
from tidings.doors.cloudevents.event_types import EventTypes
from tidings.doors.requests.query_parameters import refuse_unknown
from tidings.errors import TidingsError
from tidings.events.headers import RawHeaders
from tidings.events.http_binding import decode
from tidings.ingest.admission import Admission, check_publisher
from tidings.ingest.intake import Submission
from tidings.problems import problem_of, transport_problem, unexpected
from tidings.server.asgi import ClientLeft, Receive, Scope, Send, answer, answer_problem, read_body
from tidings.server.http_protocol import CYCLE, answer_at_once

BY_TYPE = ""
"""Stands for the topic that the type of the events says."""

_ACCEPTED = b"HTTP/1.1 202 Accepted\r\n"
_ALLOWED = (b"allow", b"POST, OPTIONS")

logger = logging.getLogger("tidings.cloudevents")


class CloudEventsPublish:
    """Answers the requests to publish paths."""

    def __init__(self, parts: ApiParts) -> None:
        self._parts = parts
        self._intake = parts.intake
        self._types = EventTypes(parts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send, topic: str) -> None:
        """Answer one request."""
        if scope["method"] != "POST":
            await self._without_events(scope, send)
            return
        began = self._parts.clock.monotonic()
        try:
            admission, count, stored = await self._published(scope, receive, topic)
        except TidingsError as error:
            self._intake.refuse(error.code)
            await answer_problem(send, problem_of(error, scope["path"]))
        except ClientLeft:
            self._intake.refuse("client-left")
        except Exception:
            logger.exception("publishing to %s failed", topic or "the topic of a type")
            self._intake.refuse("internal")
            await answer_problem(send, unexpected(scope["path"]))
        else:
            if admission is not None:
                self._intake.count(admission, count, stored, self._parts.clock.monotonic() - began)
            cycle = scope.get(CYCLE)
            if cycle is None or not answer_at_once(cycle, _ACCEPTED, b""):
                await answer(send, HTTPStatus.ACCEPTED, [])

    async def _published(self, scope: Scope, receive: Receive, topic: str) -> tuple[Admission | None, int, int]:
        """Where the events went, how many there were, and how many of them were new; None for an empty batch to no topic."""
        parts, headers = self._parts, scope["headers"]
        if parts.trusting:
            refuse_strangers(headers)
        by = parts.gate.identify_cached(headers) or await parts.gate.identify(headers, address_of(scope))
        if scope["query_string"]:
            refuse_unknown((scope["query_string"].decode("latin-1").partition("=")[0],), ())
        if topic != BY_TYPE:
            admission = self._intake.admission(topic)
            check_publisher(admission, by)
            body = await read_body(headers, receive, admission.largest_body, parts.body_budget)
            events = decode(headers, body, admission.limits)
        else:
            limits = self._types.limits
            largest = max(limits.max_event_bytes, limits.batch_bytes)
            body = await read_body(headers, receive, largest, parts.body_budget)
            events = decode(headers, body, limits)
            if not events:
                return None, 0, 0
            admission = self._intake.admission(self._types.topic_of(events))
            check_publisher(admission, by)
            if _may_exceed(admission.limits.max_event_bytes, headers, body):
                events = decode(headers, body, admission.limits)
        return admission, len(events), len(await self._intake.accept(Submission(admission, events, parts.clock.now())))

    async def _without_events(self, scope: Scope, send: Send) -> None:
        """OPTIONS tells which hubs may deliver here; every other method is refused."""
        if scope["method"] != "OPTIONS":
            problem = transport_problem(HTTPStatus.METHOD_NOT_ALLOWED, "method-not-allowed", "POST publishes events")
            await answer(send, problem.status, [*problem.headers(), _ALLOWED], problem.body())
            return
        origin = next((value.decode("latin-1") for name, value in scope["headers"] if name == ORIGIN.encode()), "")
        consent = consent_to(origin, self._parts.settings.ingest.webhook_origins)
        more = [(name.encode(), value.encode("latin-1")) for name, value in consent.items()]
        await answer(send, HTTPStatus.OK, [_ALLOWED, *more])


def _may_exceed(most: int, headers: RawHeaders, body: bytes) -> bool:
    """Whether some event of the request may be larger than this, as it was received (CE-06)."""
    return len(body) + sum(len(name) + len(value) for name, value in headers) > most
