"""Small requests as an ASGI server would hand them over."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidings.errors import EventFault, InvalidEvent
from tidings.events.http_binding import Headers, Limits, RawHeaders, decode
from tidings.events.model import Event

REQUIRED = {"specversion": "1.0", "id": "1", "source": "/orders", "type": "order.created"}
LIMITS = Limits()


def raw(headers: Headers) -> RawHeaders:
    """Headers that were to be sent, as they are received."""
    return [(name.encode(), value.encode()) for name, value in headers]


def content_type(value: str) -> RawHeaders:
    return [(b"content-type", value.encode())]


def an_object(**members: Any) -> bytes:
    """An event as a JSON object with these members on top of the required ones."""
    return json.dumps({**REQUIRED, **members}).encode()


def structured(body: bytes, limits: Limits = LIMITS) -> Event:
    (event,) = decode(content_type("application/cloudevents+json"), body, limits)
    return event


def batch(body: bytes, limits: Limits = LIMITS) -> list[Event]:
    return decode(content_type("application/cloudevents-batch+json"), body, limits)


def binary(body: bytes = b"", type: str | None = "application/json", limits: Limits = LIMITS, **context: str | bytes) -> Event:
    """A binary request with these ce- headers on top of the required ones."""
    headers = [(f"ce-{name}".encode(), _bytes(value)) for name, value in {**REQUIRED, **context}.items()]
    (event,) = decode(headers + list(content_type(type) if type else []), body, limits)
    return event


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def only_fault(refused: pytest.ExceptionInfo[InvalidEvent]) -> EventFault:
    (fault,) = refused.value.faults
    return fault
