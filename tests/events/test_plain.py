"""Plain requests of the native door."""

from __future__ import annotations

import itertools

import pytest

from tests.events.requests import LIMITS, REQUIRED, an_object, content_type, raw
from tidings.clock import Instant
from tidings.errors import InvalidEvent, Malformed, TooLarge
from tidings.events.http_binding import Limits
from tidings.events.model import Event
from tidings.events.plain import Unnamed, plain, published

MADE = {
    "specversion": "1.0",
    "id": "made-1",
    "source": "/topics/orders",
    "type": "orders",
    "time": "2023-11-14T22:13:20.000001Z",
    "datacontenttype": "application/json",
}


def unnamed() -> Unnamed:
    numbers = itertools.count(1)
    return Unnamed("/topics/orders", "orders", Instant(1_700_000_000_000_001), lambda: f"made-{next(numbers)}")


def read(type: str, body: bytes, limits: Limits = LIMITS) -> list[Event]:
    return plain(content_type(type), body, limits, unnamed())


@pytest.mark.parametrize("body", [b'{"total": 5.0}', b"[1, 2]", b"null", b' "x"\n'])
def test_plain_json_is_one_event_with_the_body_as_it_is(body: bytes) -> None:
    (event,) = read("application/json", body)
    assert event.attributes == MADE
    assert (event.data, event.base64) == (body, False)


def test_no_content_type_means_json() -> None:
    (event,) = plain([], b"{}", LIMITS, unnamed())
    assert event.datacontenttype == "application/json"
    with pytest.raises(Malformed, match="needs a Content-Type"):
        plain([], b"hello", LIMITS, unnamed())


@pytest.mark.parametrize("body", [b"", b"{", b'{"a":1,"a":1}', b"NaN", b'"\xff"', b"\xef\xbb\xbf{}", b"[" * 5_000])
def test_broken_json_is_malformed(body: bytes) -> None:
    with pytest.raises(Malformed):
        read("application/json; charset=utf-8", body)


@pytest.mark.parametrize("type", ["text/plain; charset=latin1", "image/png", "application/x-www-form-urlencoded"])
def test_any_other_type_keeps_its_bytes(type: str) -> None:
    (event,) = read(type, b"\xff\x00{")
    assert event.attributes == {**MADE, "datacontenttype": type}
    assert event.data == b"\xff\x00{"


def test_a_content_type_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidEvent) as refused:
        read("nonsense", b"x")
    assert refused.value.faults[0].attribute == "datacontenttype"


def test_lines_are_events_of_either_kind() -> None:
    named = an_object(id="mine", data={"a": 1})
    events = read("application/x-ndjson", b'{"a": 1.0}\r\n\n  [1]  \n' + named + b'\n"last"')
    assert [event.id for event in events] == ["made-1", "made-2", "mine", "made-3"]
    assert [event.data for event in events] == [b'{"a": 1.0}', b"[1]", b'{"a": 1}', b'"last"']
    assert {event.attributes.get("time") for event in events} == {MADE["time"], None}


def test_one_bad_line_refuses_all_and_is_named() -> None:
    with pytest.raises(InvalidEvent) as refused:
        read("application/x-ndjson; charset=utf-8", b'1\n{\n{"specversion":"0.3","id":"1","source":"/s","type":"t"}\n2')
    assert [(fault.index, fault.attribute) for fault in refused.value.faults] == [(1, ""), (2, "specversion")]


def test_lines_have_the_limits_of_a_batch() -> None:
    small = Limits(max_event_bytes=10, batch_events=2, batch_bytes=30)
    assert len(read("application/x-ndjson", b"1\n\n\n2\n", small)) == 2
    with pytest.raises(TooLarge, match="too many events"):
        read("application/x-ndjson", b"1\n2\n3", small)
    with pytest.raises(TooLarge, match="a batch of 31 bytes"):
        read("application/x-ndjson", b" " * 31, small)
    with pytest.raises(TooLarge, match="at event 1"):
        read("application/x-ndjson", b'1\n"234567890"\n', small)


def test_a_plain_event_has_the_limit_of_an_event() -> None:
    assert read("text/plain", b"x" * 65_536)[0].id == "made-1"
    with pytest.raises(TooLarge):
        read("text/plain", b"x" * 65_537)


def test_transport_headers_are_kept_for_plain_events_too() -> None:
    (event,) = plain([*content_type("application/json"), (b"traceparent", b"00-ab")], b"1", LIMITS, unnamed())
    assert event.transport == {"traceparent": "00-ab"}


def test_what_the_door_gives_a_plain_event_is_checked_too() -> None:
    with pytest.raises(InvalidEvent) as refused:
        plain(content_type("application/json"), b"1", LIMITS, Unnamed("not a uri", "", Instant(0), lambda: "1"))
    assert [fault.attribute for fault in refused.value.faults] == ["source", "type"]


def test_published_tells_the_two_kinds_apart() -> None:
    headers = raw([(f"ce-{name}", value) for name, value in REQUIRED.items()])
    assert published(headers, b"x", LIMITS, unnamed())[0].source == "/orders"
    assert published(content_type("application/cloudevents+json"), an_object(), LIMITS, unnamed())[0].source == "/orders"
    assert published(content_type("application/json"), an_object(), LIMITS, unnamed())[0].source == "/topics/orders"
    with pytest.raises(InvalidEvent):
        published([(b"ce-id", b"1"), *content_type("application/json")], b"{}", LIMITS, unnamed())
