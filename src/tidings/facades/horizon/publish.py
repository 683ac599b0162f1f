"""Publishing: `POST /v1/{environment}/events`, bare ASGI (HOR-46 to HOR-63). 201 means that the event is durable.

Checks run in the order of the documents, and the first that fails answers. Every answer carries the trace id (HOR-10).
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec

from tidings.access.browsers import refuse_strangers
from tidings.access.principals import Principal
from tidings.clock import Instant, rfc3339
from tidings.errors import Malformed, TidingsError, Unavailable
from tidings.events import jsontext, media
from tidings.events.headers import RawHeaders
from tidings.events.model import key_hash
from tidings.events.stored import BY, HEADERS
from tidings.events.structured import payload_of
from tidings.facades.horizon import admission
from tidings.facades.horizon.admission import Admissions, Admitted
from tidings.facades.horizon.fields import is_sound
from tidings.facades.horizon.kept_headers import KeptHeaders
from tidings.facades.horizon.names import environment_of
from tidings.facades.horizon.refusals import Refusal, mistake, plain_refusal, refusal_of
from tidings.facades.parts import Parts
from tidings.ingest.asgi import ClientLeft, Receive, Scope, Send, read_body
from tidings.ingest.protocol import CYCLE, answer_at_once
from tidings.log.port import Draft

MEMBERS = ("specversion", "id", "source", "type", "time", "datacontenttype", "dataref")
"""What is kept of an event besides its data; anything else is accepted and not delivered (HOR-50)."""

TRACE = b"x-b3-traceid"
LARGE = 16 << 20
FAILED = "Failed to publish event"

_DEPTH = jsontext.MAX_DEPTH + 1
_ENVELOPE = 256 << 10
_CREATED = b"HTTP/1.1 201 Created\r\nx-b3-traceid: %b\r\n"
_TAKEN = ("application/json", "application/*", "*/*", "application/problem+json")
_encode = msgspec.json.Encoder().encode

logger = logging.getLogger("tidings.horizon")


class Publish:
    """Takes events of one door into the log."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._ingest = parts.publishing.parts
        self._admissions = Admissions(lambda: parts.current.snapshot)
        settings = parts.settings.horizon
        self._settings = settings
        self._headers = KeptHeaders(settings.dropped_headers)
        self._large = frozenset(settings.large_types)
        self._largest_body = 2 * (LARGE if self._large else settings.data_bytes) + _ENVELOPE

    async def __call__(self, scope: Scope, receive: Receive, send: Send, environment: str) -> None:
        """Answer one request to a publish path."""
        if scope["method"] == "HEAD":
            await _answer(send, HTTPStatus.NO_CONTENT, [(b"x-health-check-timestamp", _now(self._parts.clock.now()))])
            return
        began = self._parts.clock.monotonic()
        trace = next((value for name, value in scope["headers"] if name == TRACE), None) or os.urandom(8).hex().encode()
        done = await self._tried(scope, receive, environment)
        if done is None:
            return
        if isinstance(done, Refusal):
            self._ingest.tally.refused(f"horizon-{done.status}")
            more = [(b"allow", b"POST, HEAD")] if done.status == HTTPStatus.METHOD_NOT_ALLOWED else []
            await _answer(send, done.status, [*done.headers(), *more, (TRACE, trace)], done.body())
            return
        self._ingest.tally.published(done.label, 1, self._parts.clock.monotonic() - began)
        cycle = scope.get(CYCLE)
        if cycle is None or not answer_at_once(cycle, _CREATED % trace, b""):
            await _answer(send, HTTPStatus.CREATED, [(TRACE, trace)])

    async def _tried(self, scope: Scope, receive: Receive, environment: str) -> Admitted | Refusal | None:
        """What became of a request; None: whoever asked is gone."""
        try:
            return await self._published(scope, receive, environment)
        except Unavailable as error:
            return Refusal(HTTPStatus.SERVICE_UNAVAILABLE, FAILED, str(error), retry_after=error.retry_after)
        except TidingsError as error:
            return refusal_of(error)
        except ClientLeft:
            self._ingest.tally.refused("client-left")
            return None
        except Exception:
            logger.exception("publishing to %s failed", environment)
            return mistake()

    async def _published(self, scope: Scope, receive: Receive, written: str) -> Admitted | Refusal:
        """The steps of HOR-55 to HOR-63."""
        headers: RawHeaders = scope["headers"]
        if self._ingest.trusting:
            refuse_strangers(headers)
        by = self._parts.gate.identify_cached(headers) or await self._parts.gate.identify(headers)
        refused = _kind_refusal(scope["method"], headers)
        if refused is not None:
            return refused
        body = await read_body(headers, receive, self._largest_body, self._ingest.room)
        members = _members(body)
        environment = environment_of(written, self._settings.environment)
        if by.realm and by.realm != environment:
            told = admission.WRONG_REALM.format(realm=by.realm, environment=written)
            return Refusal(HTTPStatus.UNAUTHORIZED, "Unauthorized", told)
        if not is_sound(members):
            return admission.invalid(members)
        return await self._stored(members, body, environment, by, headers)

    async def _stored(
        self, members: Mapping[str, Any], body: bytes, environment: str, by: Principal, headers: RawHeaders
    ) -> Admitted | Refusal:
        event_type, raw = members["type"], payload_of(body) if "data" in members else b""
        limit = LARGE if event_type in self._large else self._settings.data_bytes
        if admission.size_of(members.get("data"), raw, limit) > limit:
            told = f"data has more than {limit} bytes"
            return Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, admission.TOO_LARGE, told)
        admitted = self._admissions.of(environment, event_type)
        if isinstance(admitted, Refusal):
            return admitted
        if not self._ingest.trusting and not admission.may_publish(admitted, by):
            return admission.not_owned(by.client_id or by.name)
        refused = None if admitted.schema is None else admission.schema_refusal(admitted.schema, members)
        if refused is not None:
            return refused
        now = self._parts.clock.now()
        draft = _draft(admitted, members, raw, now, self._beside(headers, by))
        return admitted if await self._appended(draft) else Refusal(HTTPStatus.GATEWAY_TIMEOUT, FAILED, FAILED)

    def _beside(self, headers: RawHeaders, by: Principal) -> dict[str, Any]:
        """What is stored beside the event: the headers that go on, and who published it (HOR-161)."""
        kept = self._headers.of(headers)
        beside: dict[str, Any] = {HEADERS: kept} if kept else {}
        if not self._ingest.trusting:
            beside[BY] = by.client_id or by.name
        return beside

    async def _appended(self, draft: Draft) -> bool:
        """Whether the event is durable within the time; if not, it may be yet (HOR-63)."""
        try:
            async with asyncio.timeout(self._settings.publish_timeout):
                await self._parts.log.append([draft])
        except TimeoutError:
            return False
        return True


def _kind_refusal(method: str, headers: RawHeaders) -> Refusal | None:
    """Whether method, content type and Accept are ours (HOR-56)."""
    if method != "POST":
        return plain_refusal(
            HTTPStatus.METHOD_NOT_ALLOWED, f"{method} is not possible here; POST publishes, HEAD asks for health"
        )
    content_type = b""
    for name, value in headers:
        if name == b"content-type":
            content_type = value
        elif name == b"accept" and value != b"*/*" and not _takes_json(value):
            return plain_refusal(HTTPStatus.NOT_ACCEPTABLE, "answers are JSON")
    if content_type != b"application/json" and media.essence_of(content_type.decode("latin-1")) != media.JSON:
        return plain_refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "the content type must be application/json")
    return None


def _takes_json(accept: bytes) -> bool:
    kinds = [part.partition(";")[0].strip().lower() for part in accept.decode("latin-1").split(",")]
    return any(kind in _TAKEN for kind in kinds)


def _members(body: bytes) -> dict[str, Any]:
    value = jsontext.parse(body, _DEPTH)
    if not isinstance(value, dict):
        raise Malformed("an event is a JSON object", found=type(value).__name__)
    return value


def _draft(admitted: Admitted, members: Mapping[str, Any], raw: bytes, now: Instant, beside: dict[str, Any]) -> Draft:
    head = {name: value for name in MEMBERS if (value := members.get(name)) is not None}
    if "time" not in head:
        head["time"] = _now(now).decode()
    data = None if members.get("data") is None else _payload(members, raw)
    return Draft(admitted.number, now, key_hash(members["id"]), _encode({**head, **beside} if beside else head), data)


def _payload(members: Mapping[str, Any], raw: bytes) -> bytes:
    """The bytes of the payload: JSON as it was written; text of another type as that text."""
    data, kind = members["data"], members.get("datacontenttype")
    if not isinstance(data, str) or media.is_json(kind):
        return raw
    return data.encode(media.codec_of(kind or "") or "utf-8", "replace")


def _now(now: Instant) -> bytes:
    """The time in UTC with milliseconds."""
    return b"%bZ" % rfc3339(now)[:-4].encode()


async def _answer(send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes = b"") -> None:
    if status != HTTPStatus.NO_CONTENT:
        headers = [*headers, (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
