"""The Python SDK of CloudEvents reads what we write and the other way round (CT-26 for Python, CE-C1)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from cloudevents.core.bindings.http import (
    HTTPMessage,
    from_http_event,
    to_binary_event,
    to_structured_event,
)
from cloudevents.core.v1.event import CloudEvent

from tests.builders import an_event
from tests.events.requests import LIMITS
from tidings.events.http_binding import decode, encode_binary, encode_structured
from tidings.events.model import Event

TIME = "2018-04-05T03:56:24.123456Z"
FORMS_OUT = [encode_binary, encode_structured]
FORMS_IN = [to_binary_event, to_structured_event]

PAYLOADS: list[tuple[str | None, bytes, Any]] = [
    ("application/json", b'{"total": 5, "name": "\xc3\xa9"}', {"total": 5, "name": "é"}),
    ("application/json; charset=utf-8", b'{"a":[1,2]}', {"a": [1, 2]}),
    ("application/vnd.order+json", b"{}", {}),
    ("text/plain", b"h\xc3\xa9llo", "héllo"),
    ("application/xml", b"<a/>", "<a/>"),
    ("application/octet-stream", b"\xff\x00", b"\xff\x00"),
]


def received(event: Event, encode: Any) -> CloudEvent:
    """The event as a subscriber that uses the SDK gets it."""
    headers, body = encode(event)
    return from_http_event(HTTPMessage(headers=dict(headers), body=body))


def published(event: CloudEvent, write: Any) -> Event:
    """The event as we get it from a publisher that uses the SDK."""
    message = write(event)
    (back,) = decode([(name.encode(), value.encode()) for name, value in message.headers.items()], message.body, LIMITS)
    return back


@pytest.mark.parametrize("encode", FORMS_OUT)
@pytest.mark.parametrize(("type", "data", "value"), PAYLOADS)
def test_the_sdk_reads_what_we_write(type: str, data: bytes, value: Any, encode: Any) -> None:
    event = received(an_event(data, datacontenttype=type, time=TIME, subject='Euro € 100% "x"', ext="a b"), encode)
    assert event.get_data() == value
    assert event.get_attributes() == {
        "specversion": "1.0",
        "id": "1",
        "source": "/orders",
        "type": "order.created",
        "datacontenttype": type,
        "time": datetime(2018, 4, 5, 3, 56, 24, 123456, UTC),
        "subject": 'Euro € 100% "x"',
        "ext": "a b",
    }


@pytest.mark.parametrize("encode", FORMS_OUT)
def test_the_sdk_reads_events_without_payload_and_with_an_implied_type(encode: Any) -> None:
    assert received(an_event(time=TIME), encode).get_data() is None
    assert received(an_event(b'{"a":1}', time=TIME), encode).get_data() == {"a": 1}
    assert received(an_event(b"\xff", base64=True, time=TIME), encode).get_data() == b"\xff"


def test_the_sdk_sees_the_types_of_extensions_in_the_structured_form() -> None:
    attributes = received(an_event(number=5, flag=True, time=TIME), encode_structured).get_attributes()
    assert (attributes["number"], attributes["flag"]) == (5, True)


@pytest.mark.parametrize("write", FORMS_IN)
@pytest.mark.parametrize(("type", "data", "value"), PAYLOADS)
def test_we_read_what_the_sdk_writes(type: str, data: bytes, value: Any, write: Any) -> None:
    sent = {"id": "1", "source": "/orders", "type": "order.created", "subject": 'Euro € 100% "x"', "datacontenttype": type}
    event = published(CloudEvent({**sent, "time": datetime(2018, 4, 5, 3, 56, 24, 123456, UTC)}, value), write)
    assert event.attributes == {**sent, "specversion": "1.0", "time": TIME}
    if isinstance(value, dict):
        assert json.loads(event.data or b"") == value
    else:
        assert event.data == data


@pytest.mark.parametrize("write", FORMS_IN)
def test_we_read_what_the_sdk_adds_by_itself(write: Any) -> None:
    event = published(CloudEvent({"source": "/s", "type": "t", "specversion": "1.0"}), write)
    assert {"id", "time"} <= event.attributes.keys()
    assert event.data is None
