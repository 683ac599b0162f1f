"""One request to the Subscriptions API, and its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tidings.access.principals import Principal
from tidings.doors.api_parts import ApiParts
from tidings.errors import Malformed
from tidings.events import json_text
from tidings.server.asgi import Receive, Scope, read_body

LARGEST = 1 << 20
"""Bytes of a body. A filter has at most 64 KiB, and headers and types have bounds of their own."""

_encode = msgspec.json.Encoder(decimal_format="number").encode


@dataclass(frozen=True, slots=True)
class SubscriptionsReply:
    """What is answered. `value` None: no body."""

    status: int
    value: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def body(self) -> bytes:
        return b"" if self.value is None else _encode(self.value)

    def lines(self) -> list[tuple[bytes, bytes]]:
        """The headers, the length left out."""
        kind = {"content-type": "application/json"} if self.value is not None else {}
        return [*((name.encode(), value.encode("latin-1")) for name, value in (kind | dict(self.headers)).items())]


@dataclass(frozen=True, slots=True)
class SubscriptionsRequest:
    """Who asks for what. `prefix`: what stands before the door's paths where it was asked. `id`: what the path names."""

    parts: ApiParts
    caller: Principal
    scope: Scope
    receive: Receive
    prefix: str
    id: str

    async def body(self) -> bytes:
        """The body, within its limit."""
        return await read_body(self.scope["headers"], self.receive, LARGEST, self.parts.body_budget)

    async def members(self, known: Sequence[str]) -> Mapping[str, Any]:
        """The members of a small body that may be left out. Raises Malformed."""
        body = await self.body()
        members = json_text.parse(body) if body else {}
        if not isinstance(members, dict):
            raise Malformed(f"expected a JSON object, not {json_text.kind_of(members)}")
        for name in members:
            if name not in known:
                raise Malformed("there is no such member", at=f"/{name[:80]}", expected=" or ".join(known))
        return members
