"""Refusals as VNG writes them: problem+json with `code`, and with `invalidParams` for every 400 (VNG-E1 to VNG-E8)."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, NamedTuple

import msgspec

from tidings.doors.requests.error_form import ErrorForm
from tidings.errors import EventFault, FilterSyntaxError, HandshakeRefused, Rejected, SinkForbidden, TidingsError, Unavailable
from tidings.ids import random_id
from tidings.problems import CONTENT_TYPE, status_of

VERSION = (b"api-version", b"0.1.5")
CHALLENGE = (b"www-authenticate", b'Bearer realm="vng"')

MANY = "nonFieldErrors"
"""What a rule over several members is about."""

PARAMS_SHOWN = 100

CODES: Mapping[HTTPStatus, tuple[str, str]] = {
    HTTPStatus.BAD_REQUEST: ("invalid", "Invalid input."),
    HTTPStatus.UNAUTHORIZED: ("not_authenticated", "Authentication credentials were not provided or are not valid."),
    HTTPStatus.FORBIDDEN: ("permission_denied", "You do not have permission to do this."),
    HTTPStatus.NOT_FOUND: ("not_found", "Not found."),
    HTTPStatus.METHOD_NOT_ALLOWED: ("method_not_allowed", "Method not allowed."),
    HTTPStatus.NOT_ACCEPTABLE: ("not_acceptable", "Not acceptable."),
    HTTPStatus.CONFLICT: ("conflict", "Conflict."),
    HTTPStatus.GONE: ("gone", "Gone."),
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: ("too_large", "Content too large."),
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: ("unsupported_media_type", "Unsupported media type."),
    HTTPStatus.TOO_MANY_REQUESTS: ("throttled", "Too many requests."),
    HTTPStatus.SERVICE_UNAVAILABLE: ("service_unavailable", "Not possible now, try again later."),
}
_MISTAKE = ("error", "Internal server error.")

_STEP = re.compile(r"\[(\d+)\]")


class VngRefusal(NamedTuple):
    """A refusal as it is answered. `params` says what is wrong where; `allow` goes with 405."""

    status: HTTPStatus
    detail: str
    params: Sequence[EventFault] = ()
    retry_after: int | None = None
    allow: str = ""

    def body(self) -> bytes:
        code, title = CODES.get(self.status, _MISTAKE)
        members: dict[str, Any] = {
            "type": f"urn:tidings:problem:vng:{code}",
            "code": code,
            "title": title,
            "status": self.status,
            "detail": self.detail or title,
            "instance": f"urn:uuid:{random_id()}",
        }
        if self.status is HTTPStatus.BAD_REQUEST:
            members["invalidParams"] = [
                {"name": one.attribute or "body", "code": one.code, "reason": one.sentence}
                for one in self.params[:PARAMS_SHOWN]
            ]
        return msgspec.json.encode(members)

    def headers(self) -> list[tuple[bytes, bytes]]:
        """What goes with the body, its length left out."""
        headers = [(b"content-type", CONTENT_TYPE), VERSION]
        if self.retry_after is not None:
            headers.append((b"retry-after", b"%d" % self.retry_after))
        if self.status is HTTPStatus.UNAUTHORIZED:
            headers.append(CHALLENGE)
        if self.allow:
            headers.append((b"allow", self.allow.encode()))
        return headers


def invalid(params: Sequence[EventFault]) -> VngRefusal:
    """The refusal of what breaks rules: all of them at once."""
    told = "; ".join(f"{one.attribute or 'body'}: {one.sentence}" for one in params[:3])
    more = f"; and {len(params) - 3} more" if len(params) > 3 else ""
    return VngRefusal(HTTPStatus.BAD_REQUEST, told + more, params)


def param(name: str, code: str, reason: str) -> EventFault:
    """One thing that is wrong."""
    return EventFault(0, name, code, reason)


def refusal_of(error: TidingsError) -> VngRefusal:
    """An error of the hub as this door tells it."""
    status = status_of(error)
    if status is HTTPStatus.BAD_REQUEST:
        return invalid(_params_of(error))
    return VngRefusal(status, str(error), retry_after=error.retry_after if isinstance(error, Unavailable) else None)


def mistake() -> VngRefusal:
    """What is told when the hub itself made a mistake; its log has the rest."""
    return VngRefusal(HTTPStatus.INTERNAL_SERVER_ERROR, "the hub made a mistake; its log has the details")


FORM = ErrorForm(
    logging.getLogger("tidings.vng"),
    of=lambda error, path: refusal_of(error),
    plain=lambda status, detail, path: VngRefusal(status, detail),
    mistake=lambda path: mistake(),
)


def _params_of(error: TidingsError) -> Sequence[EventFault]:
    if isinstance(error, Rejected) and error.faults:
        return [EventFault(one.index, dotted(one.attribute), one.code, one.detail, one.pointer) for one in error.faults]
    match error:
        case HandshakeRefused():
            return [param("sink", "invalid-callback-url", str(error))]
        case SinkForbidden():
            return [param("sink", "sink-forbidden", str(error))]
        case FilterSyntaxError():
            return [filter_param(error)]
    return [param(dotted(error.at) if error.at in _OUTSIDE else "body", "parse_error", str(error))]


_OUTSIDE = ("sink", "page", "query")


def filter_param(error: FilterSyntaxError) -> EventFault:
    """What is wrong with a filter, at its place."""
    code = "too-complex" if "too complex" in error.what else "invalid-value"
    place = dotted(error.at.partition(", ")[0]) or "filters"
    return param(place, code, str(FilterSyntaxError(error.what, found=error.found, expected=error.expected)))


def dotted(path: str) -> str:
    """`filters[0].any[1]` as `filters.0.any.1` (VNG-E8)."""
    return _STEP.sub(r".\1", path)


def translated(faults: Iterable[EventFault], names: Mapping[str, str]) -> list[EventFault]:
    """Faults of the core model with the names that their members have here; the longest beginning that is known decides."""
    known = sorted(names, key=len, reverse=True)
    found = []
    for one in faults:
        beginning = next((word for word in known if one.attribute.startswith(word)), None)
        path = one.attribute if beginning is None else names[beginning] + one.attribute[len(beginning) :]
        found.append(param(dotted(path), "invalid", one.sentence))
    return found
