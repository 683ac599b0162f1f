"""Publishing: `POST /events`, bare ASGI (VNG-05, VNG-18, VNG-35, VNG-56, VNG-57). 200 means that the event is durable."""

from __future__ import annotations

from http import HTTPStatus
from typing import NamedTuple, TypeAlias

import msgspec

from tidings.access.authentication import address_of
from tidings.access.cross_origin import refuse_strangers
from tidings.access.principals import Right
from tidings.delivery.push.request.handshake import ORIGIN, consent_to
from tidings.doors.api_parts import ApiParts
from tidings.doors.requests.error_form import tried
from tidings.doors.vng.publish.domains import AdmittedDomain, DomainLookup
from tidings.doors.vng.publish.event_rules import REFERENCE, REFERENCE_KEY, EventChoices, faults_of, is_sound
from tidings.doors.vng.publish.stored_event import stored_event
from tidings.doors.vng.refusals import FORM, VERSION, VngRefusal, invalid, param
from tidings.doors.vng.resources.request import accepts
from tidings.errors import EventFault
from tidings.events import content_types, json_text
from tidings.events.headers import SortedHeaders, sorted_out
from tidings.ingest.admission import Admission, check_publisher
from tidings.ingest.intake import Submission
from tidings.server.asgi import ClientLeft, Receive, Scope, Send, answer, read_body
from tidings.server.http_protocol import CYCLE, answer_at_once

_DEPTH = json_text.MAX_DEPTH + 1
_CONTENT_TYPE = (b"content-type", content_types.STRUCTURED.encode())
_OK = b"HTTP/1.1 200 OK\r\n%b: %b\r\n%b: %b\r\n" % (*_CONTENT_TYPE, *VERSION)
_CLOUDEVENT = "application/cloudevents+json"
_USUAL = frozenset((content_types.STRUCTURED, _CLOUDEVENT, "application/cloudevents+json; charset=UTF-8"))


class PublishedEvent(NamedTuple):
    """Where an event went, whether it was new there, and what is answered."""

    admission: Admission
    stored: int
    body: bytes


Outcome: TypeAlias = PublishedEvent | VngRefusal


class VngPublish:
    """Takes events of the VNG door into the log."""

    def __init__(self, parts: ApiParts) -> None:
        self._parts = parts
        self._intake = parts.intake
        settings = parts.settings
        self._json = settings.vng.json_content_type
        self._choices = EventChoices(settings.vng.allow_dataref_only, settings.vng.source_must_be_urn)
        self._domains = DomainLookup(parts.intake, lambda: parts.snapshot, settings.vng.undeclared_attributes)
        self._largest = settings.topics.max_event_bytes
        self._transport = frozenset(name.lower().encode() for name in settings.ingest.transport_headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request to the publish path."""
        if scope["method"] == "OPTIONS":
            await self._consent(scope, send)
            return
        began = self._parts.clock.monotonic()
        try:
            done = await tried(self._published(scope, receive), FORM, scope["path"])
        except ClientLeft:
            self._intake.refuse("client-left")
            return
        if isinstance(done, VngRefusal):
            self._intake.refuse(f"vng-{done.status}")
            await answer(send, done.status, done.headers(), done.body())
            return
        self._intake.count(done.admission, 1, done.stored, self._parts.clock.monotonic() - began)
        cycle = scope.get(CYCLE)
        if cycle is None or not answer_at_once(cycle, _OK, done.body):
            await answer(send, HTTPStatus.OK, [_CONTENT_TYPE, VERSION], done.body)

    async def _published(self, scope: Scope, receive: Receive) -> Outcome:
        parts, headers = self._parts, scope["headers"]
        if parts.trusting:
            refuse_strangers(headers)
        by = parts.gate.identify_cached(headers) or await parts.gate.identify(headers, address_of(scope))
        if scope["method"] != "POST":
            return VngRefusal(HTTPStatus.METHOD_NOT_ALLOWED, "expected POST", allow="POST, OPTIONS")
        by.require(Right.PUBLISH)
        told = sorted_out(headers, self._transport)
        if (refused := self._refused(scope, told)) is not None:
            return refused
        body = await read_body(headers, receive, self._largest, parts.body_budget)
        members = json_text.parse(body, _DEPTH)
        if not isinstance(members, dict):
            return invalid([param("", "parse_error", f"expected one event, a JSON object; found {json_text.kind_of(members)}")])
        domain = self._domain(members.get("domain"))
        if domain is None:
            return invalid([*faults_of(members, None, self._choices), *_without_domain(members.get("domain"))])
        check_publisher(domain.admission, by)
        if not is_sound(members, domain.allowed, self._choices):
            faults = list(faults_of(members, domain.allowed, self._choices))
            if faults:
                return invalid(faults)
        domain.admission.limits.check_event(len(body))
        event = stored_event(members, body, told.transport)
        stored = await self._intake.accept(Submission(domain.admission, [event], parts.clock.now()))
        return PublishedEvent(domain.admission, len(stored), _answered(members, body))

    def _refused(self, scope: Scope, told: SortedHeaders) -> VngRefusal | None:
        """What of the headers stands against it (VNG-18, VNG-35)."""
        if not self._taken(told):
            wanted = f"{_CLOUDEVENT}{' or application/json' if self._json else ''}: one event as a JSON object in UTF-8"
            found = told.content_type or "no content type"
            return VngRefusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"expected {wanted}, found {found[:100]}")
        if not accepts(scope["headers"]):
            return VngRefusal(HTTPStatus.NOT_ACCEPTABLE, "answers are application/cloudevents+json or application/problem+json")
        return None

    def _taken(self, told: SortedHeaders) -> bool:
        if told.content_type in _USUAL:
            return True
        if content_types.charset_of(told.content_type) not in ("", "utf-8", "utf8"):
            return False
        essence = content_types.essence_of(told.content_type)
        # With ce- headers, a JSON body is the payload of an event in binary form.
        return essence == _CLOUDEVENT or (self._json and essence == content_types.JSON and not told.context)

    def _domain(self, name: object) -> AdmittedDomain | None:
        return self._domains.of(name) if isinstance(name, str) else None

    async def _consent(self, scope: Scope, send: Send) -> None:
        """We as the sink of another service: an origin that the operator lists may deliver here (WH-16)."""
        origin = next((value.decode("latin-1") for name, value in scope["headers"] if name == ORIGIN.encode()), "")
        consent = consent_to(origin, self._parts.settings.ingest.webhook_origins)
        more = [(name.encode(), value.encode()) for name, value in consent.items()]
        await answer(send, HTTPStatus.OK, [(b"allow", b"POST, OPTIONS"), VERSION, *more])


def _without_domain(name: object) -> list[EventFault]:
    """What is wrong with a domain that was not found, unless it was told already."""
    if not isinstance(name, str) or not name:
        return []
    return [param("domain", "does_not_exist", "there is no domain of this name")]


def _answered(members: dict[str, object], body: bytes) -> bytes:
    """The event as it came; only the other spelling of one attribute is put right (VNG-55)."""
    if REFERENCE_KEY not in members:
        return body
    return msgspec.json.encode({REFERENCE if name == REFERENCE_KEY else name: value for name, value in members.items()})
