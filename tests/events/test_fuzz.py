"""Whatever a request holds, reading it gives valid events or one of our own errors."""

from __future__ import annotations

import contextlib

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.events.requests import REQUIRED
from tidings.clock import Instant
from tidings.errors import Rejected
from tidings.events.attribute_rules import checked
from tidings.events.http_binding import Limits, RawHeaders, decode, encode_batch, encode_binary, is_cloudevent
from tidings.events.model import Event
from tidings.events.plain import Unnamed, published
from tidings.events.stored import event_from, head_of

UNNAMED = Unnamed("/topics/orders", "orders", Instant(0), lambda: "1")
LIMITS = Limits(max_event_bytes=2_000, batch_events=5, batch_bytes=4_000)

header_names = st.sampled_from(
    [b"content-type", b"Content-Type", b"ce-id", b"CE-Source", b"ce-type", b"ce-time", b"ce-x", b"ce-", b"baggage", b"ce-\xff"]
)
content_types = st.sampled_from(
    [
        b"application/json",
        b"application/cloudevents+json",
        b"application/cloudevents-batch+json; charset=utf-8",
        b"application/x-ndjson",
        b"text/plain; charset=latin1",
        b"application/cloudevents; charset=",
    ]
)
header_values = content_types | st.binary(max_size=30) | st.sampled_from([b"1.0", b"%", b'"', b'"\\"', b"2018-04-05T03:56:24Z"])
required_headers = st.just([(b"ce-" + name.encode(), value.encode()) for name, value in REQUIRED.items()])
headers = st.builds(
    lambda first, more: first + more,
    required_headers | st.just([]),
    st.lists(st.tuples(header_names, header_values), max_size=5),
)
typed_headers = st.builds(lambda type, more: [(b"content-type", type), *more], content_types, headers)

pieces = [b'"id":"1"', b'"source":"/s"', b'"specversion":"1.0"', b'"type":"t"', b'"datacontenttype":"text/plain"']
pieces += [b'"data":', b'"data_base64":', b"null", b"1e400", b"\\u0022", b"\\ud800", b"\xff", b"\xef\xbb\xbf"]
pieces += [b"{", b"}", b"[", b"]", b",", b"\n", b'"', b" "]
fragments = st.sampled_from(pieces)
members = st.lists(fragments, max_size=8).map(b",".join).map(lambda inside: b"{%b}" % inside)
bodies = (
    st.binary(max_size=60) | st.lists(fragments, max_size=12).map(b"".join) | members | members.map(lambda one: b"[%b]" % one)
)


@settings(max_examples=400)
@given(headers | typed_headers, bodies)
@example([(b"content-type", b"application/cloudevents+json")], b"[" * 1_900)
@example([(b"content-type", b"application/x-ndjson")], b'{"a":' * 300 + b"\n" + b"[" * 1_000)
@example([(b"content-type", b"application/json")], b'{"a":' * 380)
def test_arbitrary_requests_never_raise_anything_foreign(given_headers: RawHeaders, body: bytes) -> None:
    is_cloudevent(given_headers)
    with contextlib.suppress(Rejected):
        assert_valid(decode(given_headers, body, LIMITS))
    with contextlib.suppress(Rejected):
        assert_valid(published(given_headers, body, LIMITS, UNNAMED))


def assert_valid(events: list[Event]) -> None:
    """Events that were accepted can be checked, stored and sent without trouble."""
    for event in events:
        assert checked(event.attributes, event.data, base64=event.base64, transport=event.transport) == event
        assert event_from(head_of(event), event.data) == event
        for name, value in encode_binary(event)[0]:
            assert (name + value).isascii() and (name + value).isprintable()
    encode_batch(events)
