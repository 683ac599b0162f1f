"""Publishing: `POST /v1/{environment}/events`, bare ASGI (HOR-46 to HOR-63). 201 means that the event is durable.

Checks run in the order of the documents, and the first that fails answers. Every answer carries the trace id (HOR-10).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from random import getrandbits
from typing import Any, TypeAlias

from tidings.access.authentication import address_of
from tidings.access.cross_origin import refuse_strangers
from tidings.access.principals import Principal
from tidings.clock import Instant, rfc3339
from tidings.doors.api_parts import ApiParts
from tidings.doors.horizon.event_json import is_json
from tidings.doors.horizon.names import ENVIRONMENT, PUBLISHER, environment_of
from tidings.doors.horizon.publish import admission
from tidings.doors.horizon.publish.event_fields import is_sound
from tidings.doors.horizon.publish.headers import TRACE, KeptHeaders, Told
from tidings.doors.horizon.refusals import Refusal, mistake, plain_refusal, refusal_of
from tidings.errors import InvalidEvent, Malformed, TidingsError, Unavailable
from tidings.events import content_types, json_text
from tidings.events.headers import RawHeaders
from tidings.events.model import PLAIN, TEXT, VALUE, Event
from tidings.events.structured import payload_of
from tidings.ingest.admission import Admission
from tidings.ingest.intake import Submission
from tidings.server.asgi import ClientLeft, Receive, Scope, Send, read_body
from tidings.server.deadlines import Deadlines
from tidings.server.http_protocol import CYCLE, answer_at_once

MEMBERS = ("specversion", "id", "source", "type", "time", "datacontenttype", "dataref")
"""What is kept of an event besides its data; anything else is accepted and not delivered (HOR-50)."""

LARGE = 16 << 20
FAILED = "Failed to publish event"

_DEPTH = json_text.MAX_DEPTH + 1
_ENVELOPE = 256 << 10
_CREATED = b"HTTP/1.1 201 Created\r\nx-b3-traceid: %b\r\n"

logger = logging.getLogger("tidings.horizon")

Stored: TypeAlias = tuple[Admission, int]
"""Where an event was published to, and how many entries that made: none for an event that the topic had already."""


class Publish:
    """Takes events of one door into the log."""

    def __init__(self, parts: ApiParts) -> None:
        self._parts = parts
        self._intake = parts.intake
        settings = parts.settings.horizon
        self._settings = settings
        self._headers = KeptHeaders(settings.dropped_headers)
        self._deadlines = Deadlines(settings.publish_timeout)
        self._stamp = (0, "")
        self._large = frozenset(settings.large_types)
        self._largest_body = 2 * (LARGE if self._large else settings.data_bytes) + _ENVELOPE

    async def __call__(self, scope: Scope, receive: Receive, send: Send, environment: str) -> None:
        """Answer one request to a publish path."""
        if scope["method"] == "HEAD":
            now = self._now(self._parts.clock.now()).encode()
            await _answer(send, HTTPStatus.NO_CONTENT, [(b"x-health-check-timestamp", now)])
            return
        began, told = self._parts.clock.monotonic(), self._headers.of(scope["headers"])
        trace = told.kept[TRACE].encode() if TRACE in told.kept else b"%016x" % getrandbits(64)
        done = await self._tried(scope, receive, environment, told)
        if done is None:
            return
        if isinstance(done, Refusal):
            self._intake.refuse(f"horizon-{done.status}")
            more = [(b"allow", b"POST, HEAD")] if done.status == HTTPStatus.METHOD_NOT_ALLOWED else []
            await _answer(send, done.status, [*done.headers(), *more, (TRACE.encode(), trace)], done.body())
            return
        admission, stored = done
        self._intake.count(admission, 1, stored, self._parts.clock.monotonic() - began)
        cycle = scope.get(CYCLE)
        if cycle is None or not answer_at_once(cycle, _CREATED % trace, b""):
            await _answer(send, HTTPStatus.CREATED, [(TRACE.encode(), trace)])

    async def _tried(self, scope: Scope, receive: Receive, environment: str, told: Told) -> Stored | Refusal | None:
        """The outcome of a request; None: the client has left."""
        try:
            return await self._published(scope, receive, environment, told)
        except Unavailable as error:
            return Refusal(HTTPStatus.SERVICE_UNAVAILABLE, FAILED, str(error), retry_after=error.retry_after)
        except TidingsError as error:
            return refusal_of(error)
        except ClientLeft:
            self._intake.refuse("client-left")
            return None
        except Exception:
            logger.exception("publishing to %s failed", environment)
            return mistake()

    async def _published(self, scope: Scope, receive: Receive, written: str, told: Told) -> Stored | Refusal:
        """The steps of HOR-55 to HOR-63."""
        headers: RawHeaders = scope["headers"]
        if self._parts.trusting:
            refuse_strangers(headers)
        gate = self._parts.gate
        by = gate.identify_cached(headers) or await gate.identify(headers, address_of(scope))
        if scope["method"] != "POST":
            return plain_refusal(
                HTTPStatus.METHOD_NOT_ALLOWED, "POST publishes, HEAD asks for health; nothing else is possible"
            )
        if told.refusal is not None:
            return told.refusal
        body = await read_body(headers, receive, self._largest_body, self._parts.body_budget)
        members = _members(body)
        environment = environment_of(written, self._settings.environment)
        if by.realm and environment_of(by.realm, self._settings.environment) != environment:
            wrong = admission.WRONG_REALM.format(realm=by.realm, environment=written)
            return Refusal(HTTPStatus.UNAUTHORIZED, "Unauthorized", wrong)
        if not is_sound(members):
            return admission.invalid(members)
        return await self._stored(members, body, written, by, told.kept)

    async def _stored(
        self, members: Mapping[str, Any], body: bytes, written: str, by: Principal, kept: dict[str, str]
    ) -> Stored | Refusal:
        environment = environment_of(written, self._settings.environment)
        event_type, raw = members["type"], payload_of(body) if "data" in members else b""
        limit = LARGE if event_type in self._large else self._settings.data_bytes
        if admission.size_of(members.get("data"), raw, limit) > limit:
            told = f"data has more than {limit} bytes"
            return Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, admission.TOO_LARGE, told)
        found = admission.admission_to(self._intake, environment, event_type)
        if isinstance(found, Refusal):
            return found
        if not self._parts.trusting and not admission.may_publish(found, by):
            return admission.not_owned(by.client_id or by.name, found, self._parts.snapshot.papers)
        at = self._parts.clock.now()
        event = self._event(members, raw, at, kept, self._notes(by, "" if environment == written else written))
        try:
            payloads = None if found.schema is None else [admission.checked_payload(members)]
            accepting = self._intake.accept(Submission(found, [event], at, payloads))
            return found, len(await self._deadlines.within(accepting))
        except InvalidEvent as error:
            return admission.against_schema(members, error.faults)
        except TimeoutError:
            # It may be stored yet.
            return Refusal(HTTPStatus.GATEWAY_TIMEOUT, FAILED, FAILED)

    def _event(self, members: Mapping[str, Any], raw: bytes, at: Instant, kept: dict[str, str], notes: dict[str, str]) -> Event:
        """What is stored: the event's members, its payload, the headers that go on, and the door's notes."""
        attributes = {name: value for name in MEMBERS if (value := members.get(name)) is not None}
        if "time" not in attributes:
            attributes["time"] = self._now(at)
        data, form = _payload(members, raw)
        return Event(attributes, data, False, kept, form, notes)

    def _notes(self, by: Principal, environment: str) -> dict[str, str]:
        """Who published it (HOR-161), and the environment where the publisher named it otherwise."""
        notes = {} if self._parts.trusting else {PUBLISHER: by.client_id or by.name}
        if environment:
            notes[ENVIRONMENT] = environment
        return notes

    def _now(self, now: Instant) -> str:
        """The time in UTC with milliseconds, written once in each of them."""
        moment = now // 1000
        if moment != self._stamp[0]:
            self._stamp = (moment, f"{rfc3339(now)[:-4]}Z")
        return self._stamp[1]


def _members(body: bytes) -> dict[str, Any]:
    value = json_text.parse(body, _DEPTH)
    if not isinstance(value, dict):
        raise Malformed(f"an event is a JSON object, not {json_text.kind_of(value)}")
    return value


def _payload(members: Mapping[str, Any], raw: bytes) -> tuple[bytes | None, str]:
    """The bytes of the payload, and how it came where its type does not tell.

    JSON stays as it was written; a text is kept as itself, so that filters see the JSON that it holds, if any (HOR-65).
    """
    data, kind = members.get("data"), members.get("datacontenttype")
    if data is None:
        return None, ""
    if is_json(kind):
        return (data.encode(), TEXT) if isinstance(data, str) else (raw, "")
    if not isinstance(data, str):
        return raw, VALUE
    return data.encode(content_types.codec_of(kind or "") or "utf-8", "replace"), PLAIN if content_types.is_json(kind) else ""


async def _answer(send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes = b"") -> None:
    if status != HTTPStatus.NO_CONTENT:
        headers = [*headers, (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
