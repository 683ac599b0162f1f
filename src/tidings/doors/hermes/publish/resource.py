"""Publishing: `POST /topics/{group.topic}`, bare ASGI (HER-62 to HER-70). 201 means that the message is durable.

Checks run in the order of HER-64, and the first that fails answers. Every answer has a new `Hermes-Message-Id`.
"""

from __future__ import annotations

import logging
from http import HTTPStatus
from random import getrandbits
from typing import Any, NamedTuple
from uuid import UUID

from tidings.access.authentication import address_of
from tidings.access.cross_origin import refuse_strangers
from tidings.access.principals import Principal, Right
from tidings.clock import Instant, rfc3339
from tidings.doors.api_parts import ApiParts
from tidings.doors.hermes.documents.topics import MOST_BYTES
from tidings.doors.hermes.names import topic_name, topic_path, word_fault
from tidings.doors.hermes.publish.avro_messages import avro_payload, schema_for
from tidings.doors.hermes.publish.headers import MESSAGE_ID, partition_key, propagated
from tidings.doors.hermes.publish.rules import PublishRules, TopicRules
from tidings.doors.hermes.refusals import ErrorCode, HermesAnswer, HermesRefused, answer_of, mistake, refused
from tidings.errors import EventFault, InvalidEvent, LogUnavailable, Malformed, NotFound, TidingsError, TooLarge
from tidings.events import json_text
from tidings.events.avro.payloads import AVRO_BINARY
from tidings.events.avro.schema import AvroSchema, fault_of_event
from tidings.events.headers import RawHeaders
from tidings.events.model import Event
from tidings.ingest.admission import Admission
from tidings.ingest.intake import Submission
from tidings.registry.rules import may_publish
from tidings.server.asgi import ClientLeft, Receive, Scope, Send, read_body
from tidings.server.deadlines import Deadlines
from tidings.server.http_protocol import CYCLE, answer_at_once

TOO_LARGE = "Content-Length is larger than max on this topic [length:%d, max:%d]."
NOT_STORED = "Message not published. "

_CREATED = b"HTTP/1.1 201 Created\r\nhermes-message-id: %b\r\n"

logger = logging.getLogger("tidings.hermes")


class _Taken(NamedTuple):
    """A message that is durable."""

    admission: Admission
    warning: str


class HermesPublish:
    """Takes messages into the log."""

    def __init__(self, parts: ApiParts) -> None:
        self._parts = parts
        self._intake = parts.intake
        settings = parts.settings.hermes
        self._settings = settings
        self._allowed = frozenset(name.lower() for name in settings.propagated_headers)
        self._deadlines = Deadlines(settings.publish_timeout)
        self._topics = TopicRules()

    async def __call__(self, scope: Scope, receive: Receive, send: Send, topic: str) -> None:
        """Answer one publish request."""
        began, message_id = self._parts.clock.monotonic(), str(UUID(int=getrandbits(128), version=4))
        done = await self._tried(scope, receive, topic, message_id)
        if done is None:
            return
        shown = (MESSAGE_ID, message_id.encode())
        if isinstance(done, HermesAnswer):
            self._intake.refuse(f"hermes-{done.status}")
            await _answer(send, done.status, [*done.headers(), shown], done.body())
            return
        self._intake.count(done.admission, 1, 1, self._parts.clock.monotonic() - began)
        cycle = scope.get(CYCLE)
        if done.warning or cycle is None or not answer_at_once(cycle, _CREATED % shown[1], b""):
            told = [(b"tidings-warning", done.warning.encode("latin-1", "replace"))] if done.warning else []
            await _answer(send, HTTPStatus.CREATED, [shown, *told])

    async def _tried(self, scope: Scope, receive: Receive, topic: str, message_id: str) -> _Taken | HermesAnswer | None:
        """The outcome of a request; None: the client has left."""
        try:
            return await self._published(scope, receive, topic, message_id)
        except HermesRefused as error:
            return error.answer
        except LogUnavailable as error:
            answer = answer_of(error)
            return answer._replace(message=f"{NOT_STORED}{answer.message}", code=ErrorCode.SENDING_TO_KAFKA_TIMEOUT)
        except TidingsError as error:
            return answer_of(error)
        except ClientLeft:
            self._intake.refuse("client-left")
            return None
        except Exception:
            logger.exception("publishing to %s failed", topic)
            answer = mistake()
            return answer._replace(message=f"{NOT_STORED}{answer.message}")

    async def _published(self, scope: Scope, receive: Receive, topic: str, message_id: str) -> _Taken:
        """The steps of HER-64."""
        headers: RawHeaders = scope["headers"]
        if self._parts.trusting:
            refuse_strangers(headers)
        rules = self._rules(topic)
        gate = self._parts.gate
        by = gate.identify_cached(headers) or await gate.identify(headers, address_of(scope))
        self._check_publisher(rules.admission, by)
        body = await self._body(headers, receive)
        warning = self._check_size(rules, len(body), topic)
        at = self._parts.clock.now()
        try:
            event, payload = self._event(rules, headers, body, topic, message_id, at)
            accepting = self._intake.accept(Submission(rules.admission, [event], at, payload))
            await self._deadlines.within(accepting)
        except InvalidEvent as error:
            raise refused(ErrorCode.VALIDATION_ERROR, f"Invalid message: {_told(error)}") from error
        except TimeoutError:
            # It may be stored yet.
            told = f"{NOT_STORED}It was not stored within {self._settings.publish_timeout:g} s"
            raise refused(ErrorCode.SENDING_TO_KAFKA_TIMEOUT, told) from None
        return _Taken(rules.admission, warning)

    def _rules(self, topic: str) -> PublishRules:
        if topic_path(topic) is None or word_fault(topic) is not None:
            raise _not_found(topic)
        try:
            return self._topics.of(topic, self._intake.admission(topic_name(topic)))
        except NotFound:
            raise _not_found(topic) from None

    def _check_publisher(self, admission: Admission, by: Principal) -> None:
        allowed = self._parts.trusting or by.may(Right.PUBLISH, admission.name) or by.client_id
        if allowed and may_publish(admission.exposure, by.client_id or by.name):
            return
        raise refused(ErrorCode.AUTH_ERROR, f"{by.client_id or by.name} may not publish to {admission.name.name}")

    async def _body(self, headers: RawHeaders, receive: Receive) -> bytes:
        try:
            return await read_body(headers, receive, MOST_BYTES, self._parts.body_budget)
        except TooLarge as error:
            length = next((int(value) for name, value in headers if name == b"content-length"), MOST_BYTES + 1)
            raise refused(ErrorCode.VALIDATION_ERROR, TOO_LARGE % (length, MOST_BYTES)) from error

    def _check_size(self, rules: PublishRules, size: int, topic: str) -> str:
        """What is to be told of the size of a body (HER-33, HER-66)."""
        if size <= rules.largest:
            return ""
        told = TOO_LARGE % (size, rules.largest)
        if self._settings.force_max_message_size:
            raise refused(ErrorCode.VALIDATION_ERROR, told)
        logger.warning("publishing to %s: %s", topic, told)
        return told

    def _event(
        self, rules: PublishRules, headers: RawHeaders, body: bytes, topic: str, message_id: str, at: Instant
    ) -> tuple[Event, list[Any] | None]:
        """The message as an event with its exact bytes, and its payload as far as it was parsed."""
        attributes: dict[str, str | int | bool] = {
            "specversion": "1.0",
            "id": message_id,
            "source": rules.source,
            "type": topic,
            "time": rfc3339(at),
        }
        key = partition_key(headers)
        if key:
            attributes["partitionkey"] = key
        kept = propagated(headers, self._allowed) if self._settings.propagate_headers else {}
        avro = rules.admission.avro
        if avro is not None:
            schema = schema_for(avro, headers)
            attributes["datacontenttype"] = AVRO_BINARY
            data = _as_avro(schema, headers, body, message_id, at)
            return Event(attributes, data, False, kept, avro=schema.fingerprint), None
        if not rules.checked and not json_text.is_sound(body):
            # No other door may take these bytes for JSON.
            return Event(attributes, body, True, kept), None
        attributes["datacontenttype"] = "application/json"
        return Event(attributes, body, False, kept), [_parsed(body)] if rules.checked else None


def _as_avro(schema: AvroSchema, headers: RawHeaders, body: bytes, message_id: str, at: Instant) -> bytes:
    try:
        return avro_payload(schema, headers, body, message_id, at // 1000)
    except Malformed as error:
        raise InvalidEvent([fault_of_event(error, 0)]) from error


def _parsed(body: bytes) -> Any:
    try:
        return json_text.parse(body)
    except Malformed as error:
        raise InvalidEvent([EventFault(0, "data", "malformed", str(error))]) from error


def _told(error: InvalidEvent) -> str:
    return "; ".join(fault.sentence for fault in error.faults)


def _not_found(topic: str) -> HermesRefused:
    return refused(ErrorCode.TOPIC_NOT_EXISTS, f"Topic not found: {topic}")


async def _answer(send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes = b"") -> None:
    headers.append((b"content-length", b"%d" % len(body)))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
