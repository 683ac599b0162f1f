"""One request to `/domains` or `/subscriptions`: who asks, what comes with it, and answers as VNG writes them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import msgspec

from tidings.access.principals import Principal, Right
from tidings.doors.api_parts import ApiParts
from tidings.doors.requests.merge_patch import MERGE_PATCH
from tidings.doors.vng.documents.members import object_in
from tidings.doors.vng.names import NAMESPACE
from tidings.doors.vng.refusals import VERSION
from tidings.errors import Forbidden, UnsupportedFormat
from tidings.events import content_types
from tidings.events.headers import RawHeaders, content_type_of
from tidings.registry.model import Name
from tidings.server.asgi import BodyBudget, Receive, Scope, read_body

LARGEST = 1 << 20
LONGEST_ACCEPT = 4096
BODIES = BodyBudget(16 * LARGEST)

EVERY_DOMAIN = Name(NAMESPACE, "*")

_TAKEN = ("*/*", "application/*", "application/json", "application/cloudevents+json", "application/problem+json")


class VngAnswer(NamedTuple):
    """What is answered; `location` of something new. None as `body`: no body at all."""

    status: HTTPStatus
    body: Any = None
    location: str = ""

    def headers(self) -> list[tuple[bytes, bytes]]:
        """What goes with the body, its length left out."""
        headers = [VERSION]
        if self.body is not None:
            headers.append((b"content-type", b"application/json"))
        if self.location:
            headers.append((b"location", self.location.encode()))
        return headers

    def encoded(self) -> bytes:
        return b"" if self.body is None else msgspec.json.encode(self.body)


class VngRequest(NamedTuple):
    """The request, once it is known who asks. `address` is where the door is found, without a slash at the end."""

    parts: ApiParts
    by: Principal
    address: str
    scope: Scope
    receive: Receive

    @property
    def headers(self) -> RawHeaders:
        headers: RawHeaders = self.scope["headers"]
        return headers

    @property
    def query(self) -> Mapping[str, str]:
        return dict(parse_qsl(self.scope["query_string"].decode("latin-1"), keep_blank_values=True))

    async def document(self, *more: str) -> dict[str, Any]:
        """The JSON object of the body. `more`: content types that are taken beside JSON. Raises UnsupportedFormat and Malformed."""
        named = content_type_of(self.headers)
        if content_types.essence_of(named) not in (content_types.JSON, *more):
            expected = " or ".join((content_types.JSON, *more))
            raise UnsupportedFormat("this content type is not read here", at="content-type", found=named, expected=expected)
        if content_types.charset_of(named) not in ("", "utf-8", "utf8"):
            raise UnsupportedFormat("JSON is written in UTF-8", at="content-type", found=named, expected="UTF-8")
        return object_in(await read_body(self.headers, self.receive, LARGEST, BODIES))

    async def patch(self) -> dict[str, Any]:
        """The merge patch of the body."""
        return await self.document(MERGE_PATCH)

    def require_reader(self) -> None:
        """Whoever publishes or consumes may look. Raises Forbidden."""
        if not (self.by.may(Right.PUBLISH) or self.by.may(Right.SUBSCRIBE)):
            raise Forbidden(f"{self.by.name} may neither publish nor consume events", expected="one of these rights")

    @property
    def sees_all(self) -> bool:
        """Publishers see every subscription; consumers their own ones (VNG-37)."""
        return self.by.may(Right.PUBLISH)


def accepts(headers: RawHeaders) -> bool:
    """Whether the client takes what this door answers (VNG-35)."""
    given = [value for name, value in headers if name == b"accept"]
    return not given or any(map(_takes, given)) or not b"".join(given).strip()


@lru_cache(maxsize=1000)
def _takes(accept: bytes) -> bool:
    kinds = [part.partition(";")[0].strip().lower() for part in accept[:LONGEST_ACCEPT].decode("latin-1").split(",")]
    return any(kind in _TAKEN for kind in kinds)
