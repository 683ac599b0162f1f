"""Errors as HTTP answers: the one table from the error tree to status codes, and problem+json (RFC 9457) bodies.

The hot path, the HTTP protocol and every door use it, so the same mistake looks the same wherever it is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus

import msgspec

from tidings import errors
from tidings.errors import EventFault, Rejected, TidingsError, Unavailable

CONTENT_TYPE = b"application/problem+json"

STATUS: Mapping[type[TidingsError], HTTPStatus] = {
    errors.Rejected: HTTPStatus.BAD_REQUEST,
    errors.Unauthenticated: HTTPStatus.UNAUTHORIZED,
    errors.Forbidden: HTTPStatus.FORBIDDEN,
    errors.NotFound: HTTPStatus.NOT_FOUND,
    errors.Conflict: HTTPStatus.CONFLICT,
    errors.Expired: HTTPStatus.GONE,
    errors.TooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    errors.UnsupportedFormat: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    errors.Unavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.StreamIdle: HTTPStatus.GATEWAY_TIMEOUT,
    errors.TidingsError: HTTPStatus.INTERNAL_SERVER_ERROR,
}
"""An error has the status of its nearest ancestor in this table."""

TITLES: Mapping[str, str] = {
    "rejected": "The request was refused",
    "malformed": "The request cannot be read",
    "invalid-event": "An event breaks the rules",
    "invalid-avro": "The payload is not what its Avro schema describes",
    "invalid-document": "What is described breaks the rules",
    "invalid-filter": "The filter cannot be evaluated",
    "unauthenticated": "The caller is not known",
    "forbidden": "The caller may not do this",
    "not-found": "There is nothing of that name",
    "conflict": "The request contradicts what is there",
    "duplicate-event": "The same source and id were published before with other content",
    "repartition-running": "The partitions are being changed already",
    "expired": "It was removed after its retention",
    "too-large": "Too large",
    "unsupported-format": "This content type is not read here",
    "sink-forbidden": "The callback may not be reached",
    "handshake-refused": "The callback does not consent",
    "unavailable": "Not possible now, try again later",
    "log-unavailable": "The log cannot take or give events now",
    "overloaded": "More is waiting than the hub holds in memory",
    "hub-unreachable": "No hub answers",
    "not-ready": "A part of the hub is not ready",
    "stream-idle": "Nothing came while the stream waited",
    "clock-leapt": "The hub's clock cannot be believed now",
}


class Fault(msgspec.Struct, frozen=True):
    """One thing wrong with one event of a request, as it is shown."""

    index: int
    attribute: str
    code: str
    detail: str


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """A refusal as it is shown. `code` is stable and meant for programs, `detail` for people."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    instance: str | None = None
    errors: Sequence[Fault] = ()
    retry_after: int | None = msgspec.field(default=None, name="retryAfter")

    def body(self) -> bytes:
        return msgspec.json.encode(self)

    def headers(self) -> list[tuple[bytes, bytes]]:
        """What goes with the body, its length left out."""
        headers = [(b"content-type", CONTENT_TYPE)]
        if self.retry_after is not None:
            headers.append((b"retry-after", b"%d" % self.retry_after))
        if self.status == HTTPStatus.UNAUTHORIZED:
            headers.append((b"www-authenticate", b'Bearer realm="tidings"'))
        return headers


def status_of(error: TidingsError) -> HTTPStatus:
    """The status of an error: that of its nearest ancestor in the table."""
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


def problem_of(error: TidingsError, instance: str | None = None) -> Problem:
    """The error as it is shown to the caller of `instance` (the path asked for)."""
    return Problem(
        type=f"urn:tidings:problem:{error.code}",
        title=TITLES.get(error.code, "Something is wrong"),
        status=status_of(error),
        detail=str(error),
        code=error.code,
        instance=instance,
        errors=_faults(error.faults) if isinstance(error, Rejected) and error.faults else (),
        retry_after=error.retry_after if isinstance(error, Unavailable) else None,
    )


def _faults(faults: Sequence[EventFault]) -> Sequence[Fault]:
    return [Fault(fault.index, fault.attribute, fault.code, fault.sentence) for fault in faults]


def transport_problem(status: HTTPStatus, code: str, detail: str, retry_after: int | None = None) -> Problem:
    """A refusal of the HTTP layer itself, before anybody knows what is asked for."""
    return Problem(
        type=f"urn:tidings:problem:{code}",
        title=status.phrase,
        status=status,
        detail=detail,
        code=code,
        retry_after=retry_after,
    )


def unexpected(instance: str | None = None) -> Problem:
    """What the caller is told when the hub itself made a mistake; the log has the rest."""
    return msgspec.structs.replace(
        transport_problem(HTTPStatus.INTERNAL_SERVER_ERROR, "internal", "the hub made a mistake; its log has the details"),
        instance=instance,
    )


BAD_HTTP = transport_problem(HTTPStatus.BAD_REQUEST, "malformed-http", "what came is no HTTP/1.1 request")
NO_HOST = transport_problem(
    HTTPStatus.BAD_REQUEST,
    "host-missing",
    "an HTTP/1.1 request has exactly one Host header, with the name and port that are asked",
)
HEAD_TOO_LARGE = transport_problem(
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    "head-too-large",
    "the request line and headers are longer than server.header_bytes",
)
HEAD_TOO_SLOW = transport_problem(
    HTTPStatus.REQUEST_TIMEOUT, "head-too-slow", "the request head did not arrive within server.header_timeout"
)
BODY_TOO_SLOW = transport_problem(
    HTTPStatus.REQUEST_TIMEOUT, "body-too-slow", "the request body did not arrive within server.body_timeout"
)
TOO_MANY_CONNECTIONS = transport_problem(
    HTTPStatus.SERVICE_UNAVAILABLE, "too-many-connections", "server.max_connections are open already", retry_after=1
)
TOO_MANY_OF_ONE_CLIENT = transport_problem(
    HTTPStatus.TOO_MANY_REQUESTS,
    "too-many-connections-of-client",
    "server.max_connections_per_client are open from your address already; close some, or use those that are open again",
    retry_after=1,
)
